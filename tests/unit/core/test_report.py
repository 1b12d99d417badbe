"""What an attempt may say about itself is checked where it says it."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from holdfast.core.attempt import Report
from holdfast.core.report import (
    MOST_LINES,
    MOST_TOKENS,
    MOST_UNITS,
    LogSize,
    bounded,
    merged,
    parts,
    read_cost,
    read_line,
    read_progress,
)
from holdfast.core.task import Cost, Progress, TaskId, WorkerId
from holdfast.errors import PayloadRefused

BARE = Report(TaskId("a"), 1, WorkerId("w"))


def test_numbers_of_every_kind_are_costs() -> None:
    cost = read_cost(Fraction(3, 2), tokens_in=7)  # type: ignore[arg-type] # a number all the same
    assert cost == Cost(units=1.5, tokens_in=7)
    assert type(read_cost(3).units) is float


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"units": Decimal("1.5")}, r"cost units: expected a number, got Decimal .*pass float\("),
        ({"units": "12"}, r"got str '12'; pass float\("),
        ({"units": True}, r"got bool True"),
        ({"units": math.nan}, "from 0 to 1e.15, got float nan"),
        ({"units": math.inf}, "got float inf"),
        ({"units": 10**400}, "got int beyond 128 bits"),
        ({"units": -1.0}, "from 0 to"),
        ({"tokens_in": 2**70}, "cost tokens_in: expected 0 to 1,000,000,000,000, got int"),
        ({"tokens_in": "12"}, r"expected a whole number, got str '12'; pass int\("),
        ({"tokens_out": 1.0}, r"cost tokens_out: .*got float 1.0; pass int\("),
        ({"tokens_out": False}, "got bool False"),
        ({"tokens_out": -1}, "expected 0 to"),
    ],
)
def test_what_is_no_cost_is_refused_with_the_fix(given: dict[str, Any], words: str) -> None:
    with pytest.raises(PayloadRefused, match=words):
        read_cost(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("3",), "progress done: expected a number, got str '3'"),
        ((Decimal(3), 10), r"pass float\("),
        ((math.nan,), "got float nan"),
        ((1, math.inf), "progress total"),
        ((1, 2, 3), r"progress message: expected text, got int 3; pass str\("),
        ((1, 2, "\x00"), "NUL"),
    ],
)
def test_what_is_no_progress_is_refused_with_the_fix(given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(PayloadRefused, match=words):
        read_progress(*given)


def test_a_line_is_text() -> None:
    line: Any = b"bytes"
    with pytest.raises(PayloadRefused, match=r"log line: expected text, got bytes b'bytes'"):
        read_line(line)


def test_what_gathers_between_two_writes_does_not_overflow() -> None:
    most = BARE._replace(cost=read_cost(MOST_UNITS, MOST_TOKENS, MOST_TOKENS))

    assert merged(most, most) == most


def test_a_report_falls_into_its_parts() -> None:
    whole = BARE._replace(progress=Progress(done=1.0), cost=Cost(units=1.0), logs=("a", "b"))

    progress, cost, logs = parts(whole)

    assert merged(merged(progress, cost), logs) == whole
    assert parts(progress) == [progress]


def test_an_attempts_log_ends_with_a_line_that_says_so() -> None:
    first, said = bounded(["a"] * (MOST_LINES - 1), LogSize())
    second, said = bounded(["b", "c"], said)
    third, _ = bounded(["d"], said)

    assert len(first) == MOST_LINES - 1
    assert second[0] == "b"
    assert second[1:] == (
        "[this attempt has logged 5,000 lines, 5,000 bytes: no more of it is kept]",
    )
    assert third == ()
