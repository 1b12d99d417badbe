"""Where a command's answer goes: one JSON document, or text for people.

On a terminal tables are drawn by Rich; anywhere else they are plain aligned columns that `grep` and
`awk` can read. Rich is imported only when it draws.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from holdfast.core.task import Json, State
from holdfast.views import to_json

if TYPE_CHECKING:
    from rich.console import Console

STYLES: dict[str, str] = {
    State.QUEUED: "cyan",
    State.RUNNING: "bold blue",
    State.RETRYING: "yellow",
    State.BLOCKED: "yellow",
    State.COMPLETED: "green",
    State.FAILED: "red",
    State.CANCELLED: "dim",
    State.DEAD_LETTER: "bold red",
    "active": "green",
    "draining": "yellow",
    "dead": "red",
    "stopped": "dim",
    "ok": "green",
    "warning": "yellow",
    "problem": "bold red",
}
"""Colours by word; a word means the same thing wherever it stands."""

GAP = 2
"""Blanks between two columns."""

STUB = 24
"""How many characters of the last column are worth more than another column."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found: the same facts for machines and for people.

    `ok` False means that the thing asked for failed, and the exit code is 1.
    """

    data: Json
    human: Callable[[Screen], None]
    ok: bool = True


class Screen:
    """Prints text and tables on standard output, coloured if somebody is looking."""

    def __init__(self, file: TextIO | None = None) -> None:
        self.file = file or sys.stdout
        self.is_terminal = self.file.isatty()
        self._console: Console | None = None

    @property
    def ascii_only(self) -> bool:
        """Whether bars must do without block characters."""
        return "utf" not in (self.file.encoding or "").lower()

    @property
    def console(self) -> Console:
        """Rich, for what only a terminal shows. It keeps to NO_COLOR by itself."""
        if self._console is None:
            from rich.console import Console  # noqa: PLC0415

            self._console = Console(file=self.file, highlight=False, markup=False, emoji=False)
        return self._console

    def line(self, text: str = "", style: str | None = None) -> None:
        """Print one line."""
        text = _clean(text)
        if self.is_terminal:
            self.console.print(text, style=style, soft_wrap=True)
        else:
            self.file.write(f"{text}\n")

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        spare: Sequence[str] = (),
    ) -> None:
        """Print rows under their headings; a cell that is a known word gets its colour.

        On a terminal that is too narrow the `spare` columns are left out, the first named first,
        and then the last column is cut. Elsewhere everything is printed.
        """
        cells = [[one_line(str(cell)) for cell in row] for row in rows]
        if self.is_terminal:
            self._draw(columns, cells, spare)
            return
        widths = _widths([list(columns), *cells])
        for row in [[column.upper() for column in columns], *cells]:
            padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.file.write("  ".join(padded).rstrip() + "\n")

    def status(self, text: str | None) -> None:
        """Replace the status line on a terminal, print a line elsewhere; None wipes it off."""
        if self.is_terminal:
            self.file.write(f"\r\x1b[2K{_clean(text or '')}")
            self.file.flush()
        elif text is not None:
            self.line(text)

    def fields(self, pairs: Iterable[tuple[str, object]]) -> None:
        """Print named values, one a line, names aligned; empty ones are left out."""
        kept = [(name, str(value)) for name, value in pairs if value not in {None, ""}]
        width = max((len(name) for name, _ in kept), default=0)
        for name, value in kept:
            self.line(f"{name.ljust(width)}  {one_line(value)}", STYLES.get(value))

    def _draw(self, columns: Sequence[str], cells: list[list[str]], spare: Sequence[str]) -> None:
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        kept = _fitting(columns, _widths([list(columns), *cells]), spare, self.console.width)
        table = Table(box=None, header_style="bold underline", padding=(0, GAP, 0, 0))
        for index in kept:
            # Only the last column may be cut: half an id is no id.
            is_last = index == kept[-1]
            least = None if is_last else max(len(row[index]) for row in [columns, *cells])
            table.add_column(columns[index], no_wrap=True, overflow="ellipsis", min_width=least)
        for row in cells:
            table.add_row(
                *(Text(row[i], STYLES.get(row[i], ""), overflow="ellipsis") for i in kept)
            )
        self.console.print(table)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _fitting(
    columns: Sequence[str], widths: Sequence[int], spare: Sequence[str], room: int
) -> list[int]:
    """Which columns to show: all but as many of the spare ones as it takes to fit in `room`."""
    kept = list(range(len(columns)))
    needed = [*widths[:-1], min(widths[-1], STUB)]
    for name in spare:
        if sum(needed[index] + GAP for index in kept) - GAP <= room:
            break
        kept.remove(columns.index(name))
    return kept


def _clean(text: str) -> str:
    """Make control characters visible: what a task says must not steer somebody's terminal."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def one_line(text: str) -> str:
    """The same for a cell or a field: a line break in it would look like the next one."""
    return _clean(text).replace("\n", "\\n").replace("\t", "\\t")


def show(answer: Answer, *, as_json: bool) -> None:
    """Print the answer, and nothing else, on standard output."""
    if as_json:
        print_json(answer.data)
    else:
        answer.human(Screen())


def print_json(data: Json) -> None:
    """One JSON document: on one line for programs, indented for eyes."""
    sys.stdout.write(to_json(data, indented=sys.stdout.isatty()).decode() + "\n")
    sys.stdout.flush()


def print_error(code: str, message: str, *, as_json: bool, details: Json = None) -> None:
    """Say on standard error what went wrong: a sentence, or JSON with a stable code."""
    if as_json:
        error = {"code": code, "message": message} | (details or {})
        sys.stderr.write(json.dumps({"error": error}, ensure_ascii=False) + "\n")
        return
    coloured = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    word = "\x1b[1;31merror:\x1b[0m" if coloured else "error:"
    sys.stderr.write(f"{word} {message}\n")
