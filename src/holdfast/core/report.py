"""What a running attempt may say about itself, the same on every store.

Checked where it is said. Reports of many attempts are written together: a value that only the store
refused would take its neighbours' along, and one that it took for something else would be kept.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Final, NamedTuple

from holdfast.core.attempt import Report
from holdfast.core.payload import check_text
from holdfast.core.task import Cost, Progress
from holdfast.errors import PayloadRefused

MOST_UNITS: Final = 1e15
MOST_TOKENS: Final = 10**12
"""In one report. It takes nine million of them to overflow what a store can hold."""
MOST_PROGRESS: Final = 1e300
MOST_LINES: Final = 5000
MOST_BYTES: Final = 1024 * 1024
"""Of the log lines of one attempt; more are dropped, and one last line says so."""


def read_progress(done: float, total: float | None = None, message: str | None = None) -> Progress:
    """Raise `PayloadRefused` for what is no progress."""
    if message is not None:
        _expect_text(message, "progress message")
        check_text(message, "progress message")
    return Progress(
        done=_number(done, "progress done", -MOST_PROGRESS, MOST_PROGRESS),
        total=None
        if total is None
        else _number(total, "progress total", -MOST_PROGRESS, MOST_PROGRESS),
        message=message,
    )


def read_cost(units: float = 0.0, tokens_in: int = 0, tokens_out: int = 0) -> Cost:
    """Raise `PayloadRefused` for what is no cost."""
    return Cost(
        units=_number(units, "cost units", 0, MOST_UNITS),
        tokens_in=_count(tokens_in, "cost tokens_in"),
        tokens_out=_count(tokens_out, "cost tokens_out"),
    )


def read_line(line: str) -> str:
    """Raise `PayloadRefused` for a log line that is no text."""
    _expect_text(line, "log line")
    return line


class LogSize(NamedTuple):
    """How much of a log one attempt has written so far."""

    lines: int = 0
    bytes: int = 0

    @property
    def is_enough(self) -> bool:
        return self.lines >= MOST_LINES or self.bytes >= MOST_BYTES


def bounded(lines: Sequence[str], said: LogSize) -> tuple[tuple[str, ...], LogSize]:
    """Those of an attempt's next lines that are kept, and how much it has said with them."""
    kept: list[str] = []
    for line in lines:
        if said.is_enough:
            break
        said = LogSize(said.lines + 1, said.bytes + len(line.encode(errors="replace")))
        kept.append(line)
        if said.is_enough:
            kept.append(
                f"[this attempt has logged {said.lines:,} lines, {said.bytes:,} bytes: no more "
                "of it is kept]"
            )
    return tuple(kept), said


def merged(earlier: Report, later: Report) -> Report:
    """Two reports of one attempt as one."""
    return later._replace(
        progress=earlier.progress if later.progress is None else later.progress,
        cost=_sum(earlier.cost, later.cost),
        logs=earlier.logs + later.logs,
    )


def parts(report: Report) -> list[Report]:
    """The report in pieces that can be written one by one; itself if it has but one."""
    bare = report._replace(progress=None, cost=None, logs=())
    return [
        *([] if report.progress is None else [bare._replace(progress=report.progress)]),
        *([] if report.cost is None else [bare._replace(cost=report.cost)]),
        *([bare._replace(logs=report.logs)] if report.logs else []),
    ]


def _sum(one: Cost | None, other: Cost | None) -> Cost | None:
    if one is None or other is None:
        return one or other
    return Cost(
        units=min(one.units + other.units, MOST_UNITS),
        tokens_in=min(one.tokens_in + other.tokens_in, MOST_TOKENS),
        tokens_out=min(one.tokens_out + other.tokens_out, MOST_TOKENS),
    )


def _number(value: object, what: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PayloadRefused(what, f"expected a number, got {_shown(value)}; pass float(…)")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not least <= number <= most:
        raise PayloadRefused(
            what, f"expected a number from {least:g} to {most:g}, got {_shown(value)}"
        )
    return number


def _count(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise PayloadRefused(what, f"expected a whole number, got {_shown(value)}; pass int(…)")
    count = operator.index(value)
    if not 0 <= count <= MOST_TOKENS:
        raise PayloadRefused(what, f"expected 0 to {MOST_TOKENS:,}, got {_shown(value)}")
    return count


def _expect_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise PayloadRefused(what, f"expected text, got {_shown(value)}; pass str(…)")


def _shown(value: object) -> str:
    # repr() of an int beyond some thousand digits raises.
    huge = isinstance(value, int) and value.bit_length() > 128
    return f"{type(value).__name__} {'beyond 128 bits' if huge else repr(value)[:40]}"
