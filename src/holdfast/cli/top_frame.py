"""How `holdfast top` looks: facts in, lines of just the terminal's size out."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from holdfast.cli.screen import STYLES, Screen, one_line
from holdfast.cli.top_facts import Facts
from holdfast.cli.words import ago, duration, plural
from holdfast.core.fleet import WorkerInfo
from holdfast.core.stats import QueueStats
from holdfast.core.task import State, Task

KEYS: Final = "tab queues/workers  arrows select  p pause/resume  d drain  r replay  q quit"
BLOCKS, DOTS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
REMEMBERED: Final = 120
"""Seconds that the sparkline goes back at most."""
GAP: Final = 2
NARROWEST: Final = 8
"""Cells that the first column of a table keeps, whatever is left out for it."""


class Pane(StrEnum):
    """Where something can be selected."""

    QUEUES = "queues"
    WORKERS = "workers"


@dataclass(frozen=True, slots=True)
class Column:
    """The cells of one column. Where there is no room `spare` ones go, the highest first."""

    title: str
    cells: Sequence[str]
    spare: int = 0
    right: bool = True


class Picture:
    """What is on the screen: the last facts, what is selected, what is being asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.facts: Facts | None = None
        self.pane = Pane.QUEUES
        self.message = ""
        self.question: str | None = None
        self._chosen: dict[Pane, str] = {}
        self._rates: deque[float] = deque(maxlen=REMEMBERED)
        self._seen: tuple[int, float] | None = None
        self._away: tuple[str, float] | None = None

    # -- what happens ----------------------------------------------------------------------------

    def see(self, facts: Facts) -> None:
        """The store answered."""
        now = time.monotonic()
        if self._seen is not None:
            # What is pruned, discarded or replayed is no work undone.
            ended, at = self._seen
            self._rates.append(max(0, facts.ended - ended) / max(now - at, 0.001))
        self._seen = facts.ended, now
        self.facts, self._away = facts, None

    def lose(self, why: str) -> None:
        """It did not. What was seen last stays on the screen, and says that it is old."""
        self._away = why, self._away[1] if self._away else time.monotonic()

    def switch(self) -> None:
        self.pane = Pane.WORKERS if self.pane is Pane.QUEUES else Pane.QUEUES

    def move(self, steps: int) -> None:
        names = self._names(self.pane)
        if names:
            place = names.index(self._choice(names, self.pane)) + steps
            self._chosen[self.pane] = names[max(0, min(place, len(names) - 1))]

    @property
    def queue(self) -> QueueStats | None:
        """The selected queue."""
        names = self._names(Pane.QUEUES)
        if self.facts is None or not names:
            return None
        chosen = self._choice(names, Pane.QUEUES)
        return next(each for each in self.facts.stats.queues if each.queue == chosen)

    @property
    def worker(self) -> WorkerInfo | None:
        """The selected worker."""
        names = self._names(Pane.WORKERS)
        if self.facts is None or not names:
            return None
        chosen = self._choice(names, Pane.WORKERS)
        return next(each for each in self.facts.workers if each.id == chosen)

    def _names(self, pane: Pane) -> list[str]:
        if self.facts is None:
            return []
        if pane is Pane.QUEUES:
            return [each.queue for each in self.facts.stats.queues]
        return [each.id for each in self.facts.workers]

    def _choice(self, names: Sequence[str], pane: Pane) -> str:
        """By name, so that it stays on what was selected while others come and go."""
        chosen = self._chosen.get(pane, names[0])
        return chosen if chosen in names else names[0]

    # -- how it looks ----------------------------------------------------------------------------

    def print(self, screen: Screen) -> None:
        """All of it, once, for whoever reads or greps."""
        for line in self.lines(screen.console.width, None, ascii_only=screen.ascii_only):
            screen.line(line.plain.rstrip(), str(line.style) or None)

    def lines(self, width: int, height: int | None, *, ascii_only: bool = False) -> list[Text]:
        """A frame of at most so many lines of so many cells; as long as it takes for None."""
        head = list(self._head(width, ascii_only=ascii_only))
        foot = [] if height is None else [self._foot()]
        tables = list(self._tables(width)) if self.facts is not None else []
        room = None if height is None else max(0, height - len(head) - len(foot) - len(tables))
        wanted = [len(table.rows) for table in tables]
        given = wanted if room is None else shared(room, wanted)
        body = [
            line
            for table, rows in zip(tables, given, strict=True)
            if rows or height is None
            for line in table.lines(rows)
        ]
        frame = [*head, *body]
        if height is not None:
            frame = frame[: max(0, height - 1)]
            frame += [Text()] * (height - 1 - len(frame))
        for line in [*frame, *foot]:
            line.truncate(width, overflow="ellipsis")
        return [*frame, *foot]

    def _foot(self) -> Text:
        if self.question is not None:
            return Text(f"{self.question} [y/n]", "bold reverse")
        return Text(self.message or KEYS, "" if self.message else "dim")

    def _head(self, width: int, *, ascii_only: bool) -> Iterator[Text]:
        title = f"holdfast top  {one_line(self.url)}"
        if self._away is not None:
            why, since = self._away
            yield Text(title, "bold")
            gone = duration(time.monotonic() - since)
            yield Text(f"The store is away for {gone}; trying again. {one_line(why)}", "bold red")
        elif self.facts is not None:
            clock = f"{self.facts.at.astimezone():%H:%M:%S}"
            gap = max(1, width - cell_len(title) - len(clock))
            yield Text(f"{title}{' ' * gap}{clock}", "bold")
        if self.facts is None:
            return
        states, last = self.facts.stats.states, self.facts.stats.last_minute
        waiting = ("queued", "running", "retrying", "blocked", "dead_letter")
        yield Text("  ".join(f"{word} {states.get(State(word), 0):,}" for word in waiting))
        done = f"{last.get(State.COMPLETED, 0):,} completed"
        lost = f"{last.get(State.FAILED, 0):,} failed"
        dead = plural(last.get(State.DEAD_LETTER, 0), "dead letter")
        told = f"last minute  {done}  {lost}  {dead}"
        if self._rates:
            told += f"  {self._rates[-1]:,.1f}/s "
            told += spark(list(self._rates)[-max(0, width - len(told)) :], ascii_only=ascii_only)
        yield Text(told, "red" if last.get(State.FAILED) or last.get(State.DEAD_LETTER) else "")

    def _tables(self, width: int) -> Iterator[Table]:
        assert self.facts is not None
        workers, queues = self.facts.workers, self.facts.stats.queues
        here = {pane: self._names(pane) for pane in Pane}
        chosen = {
            pane: names.index(self._choice(names, pane)) if names else None
            for pane, names in here.items()
        }
        is_old = self._away is not None
        yield Table(
            rows_of(_queue_columns(queues), width),
            ["yellow" if each.paused else "" for each in queues],
            "No queue has tasks.",
            chosen[Pane.QUEUES],
            is_active=self.pane is Pane.QUEUES,
            is_old=is_old,
        )
        yield Table(
            rows_of(_worker_columns(workers, self.facts), width),
            [STYLES.get(each.status.value, "") for each in workers],
            "No worker is alive.",
            chosen[Pane.WORKERS],
            is_active=self.pane is Pane.WORKERS,
            is_old=is_old,
        )
        yield Table(
            rows_of(_error_columns(self.facts.errors, self.facts), width, last_fills=True),
            [STYLES[each.state] for each in self.facts.errors],
            "No failed task is kept.",
            None,
            is_old=is_old,
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Lines of equal length under a heading, of which a few may be shown."""

    text: Sequence[str]
    styles: Sequence[str]
    nothing: str
    chosen: int | None
    is_active: bool = False
    is_old: bool = False

    @property
    def rows(self) -> Sequence[str]:
        return self.text[1:] or (f"  {self.nothing}",)

    def lines(self, room: int) -> Iterator[Text]:
        """The heading, and so many rows around the chosen one."""
        yield Text(self.text[0], "bold underline")
        first = max(0, min((self.chosen or 0) - room // 2, len(self.rows) - room))
        for at, row in list(enumerate(self.rows))[first : first + room]:
            is_chosen = at == self.chosen and len(self.text) > 1
            mark = ">" if is_chosen and self.is_active else " "
            style = self.styles[at] if at < len(self.styles) else "dim"
            if self.is_old:
                style = "dim"
            yield Text(mark + row[1:], f"{style} reverse" if mark == ">" else style)


def rows_of(columns: Sequence[Column], width: int, *, last_fills: bool = False) -> list[str]:
    """A heading and rows that fit: spare columns go first, then the first, or the last, is cut."""
    kept = list(columns)
    sizes = {c.title: max(map(cell_len, [c.title, *c.cells])) for c in columns}

    def least() -> int:
        cut = kept[-1] if last_fills else kept[0]
        whole = sum(sizes[c.title] for c in kept) - sizes[cut.title]
        return 2 + whole + min(NARROWEST, sizes[cut.title]) + GAP * (len(kept) - 1)

    for spare in sorted((c for c in columns if c.spare), key=lambda c: -c.spare):
        if least() <= width:
            break
        kept.remove(spare)
    cut = kept[-1] if last_fills else kept[0]
    rest = 2 + GAP * (len(kept) - 1) + sum(sizes[c.title] for c in kept if c is not cut)
    sizes[cut.title] = max(1, min(sizes[cut.title], width - rest))
    lines = zip(*([c.title, *c.cells] for c in kept), strict=True)
    return [
        "  " + (" " * GAP).join(_cell(c, text, sizes) for c, text in zip(kept, line, strict=True))
        for line in lines
    ]


def _cell(column: Column, text: str, sizes: Mapping[str, int]) -> str:
    size = sizes[column.title]
    if cell_len(text) > size:
        return set_cell_size(text, size - 1) + "…"
    gap = " " * (size - cell_len(text))
    return gap + text if column.right else text + gap


def shared(room: int, wanted: Sequence[int]) -> list[int]:
    """So many lines among those who want some: one each in their order, until none is left."""
    given = [0] * len(wanted)
    while room > 0 and given != list(wanted):
        for at, most in enumerate(wanted):
            if given[at] < most and room > 0:
                given[at] += 1
                room -= 1
    return given


def spark(rates: Sequence[float], *, ascii_only: bool = False) -> str:
    """A line whose height is how much there was; the highest of them is full height."""
    marks = DOTS if ascii_only else BLOCKS
    top = max(rates, default=0.0)
    full = len(marks) - 1
    return "".join(marks[round(rate / top * full) if top else 0] for rate in rates)


def _queue_columns(queues: Sequence[QueueStats]) -> list[Column]:
    waits = [
        max((d.oldest_seconds for d in each.depths if d.oldest_seconds is not None), default=None)
        for each in queues
    ]
    return [
        Column("queue", [one_line(each.queue) for each in queues], right=False),
        Column("ready", [f"{each.ready:,}" for each in queues]),
        Column("running", [f"{each.running:,}" for each in queues]),
        Column("waiting", [f"{each.waiting:,}" for each in queues], spare=1),
        Column("blocked", [f"{each.blocked:,}" for each in queues], spare=2),
        Column("oldest", ["-" if wait is None else duration(wait) for wait in waits]),
        Column("", ["paused" if each.paused else "" for each in queues], right=False),
    ]


def _worker_columns(workers: Sequence[WorkerInfo], facts: Facts) -> list[Column]:
    return [
        Column("worker", [one_line(each.id) for each in workers], right=False),
        Column("load", [f"{each.load}/{each.capacity}" for each in workers]),
        Column("status", [each.status.value for each in workers], right=False),
        Column(
            "last beat",
            ["-" if each.beat_at is None else ago(each.beat_at, facts.at) for each in workers],
            spare=2,
        ),
        Column(
            "queues",
            ["all" if w.queues is None else one_line(", ".join(w.queues)) for w in workers],
            spare=1,
            right=False,
        ),
    ]


def _error_columns(errors: Sequence[Task], facts: Facts) -> list[Column]:
    return [
        Column("when", [ago(each.finished_at or each.created_at, facts.at) for each in errors]),
        Column("task", [one_line(each.name) for each in errors], right=False),
        Column("id", [each.id for each in errors], spare=1, right=False),
        Column("newest errors", [_error(each) for each in errors], right=False),
    ]


def _error(task: Task) -> str:
    if task.error is None:
        return task.reason or ""
    first = task.error.message.splitlines()[0] if task.error.message else ""
    return one_line(f"{task.error.type}: {first}")
