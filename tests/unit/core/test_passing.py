"""Who may pass a gate now. `line` puts tasks before one; the ids say who passed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.gate import Gate, GateKind
from holdfast.core.passing import CHUNKS, GateRow, Line, Moves, Parked, let_pass, next_stage
from holdfast.core.task import TaskId

LIMIT = Gate(GateKind.LIMIT, "acme", 2)
RATE = Gate(GateKind.RATE, "mail", 1, 60.0)
MINUTE = 60_000_000


def parked(rank: int, *gates: Gate, passed: int = 0) -> Parked:
    return Parked(rank, TaskId(f"t{rank}"), gates or (LIMIT,), passed)


def ready(moves: Moves) -> list[str]:
    return [one.id for one in moves.ready]


def test_the_first_by_rank_pass_as_many_as_there_is_room_for() -> None:
    row = GateRow("limit:acme", capacity=2, held=1)

    moves = let_pass([Line(row, [parked(1), parked(2)])], now=0)

    assert (ready(moves), row.held) == (["t1"], 2)
    assert moves.gates == [row]


def test_nobody_passes_while_too_many_hold_a_lowered_gate() -> None:
    row = GateRow("limit:acme", capacity=5, pinned=1, held=3)

    assert ready(let_pass([Line(row, [parked(1)])], now=0)) == []


def test_one_that_has_more_gates_goes_on_to_the_next() -> None:
    row = GateRow("limit:acme", capacity=1)

    moves = let_pass([Line(row, [parked(1, LIMIT, RATE)])], now=0)

    assert (moves.ready, moves.touched) == ([], {"rate:mail"})


def test_a_gate_that_nobody_needs_is_forgotten_unless_somebody_set_it() -> None:
    idle, pinned = GateRow("limit:a"), GateRow("limit:b", pinned=3)

    moves = let_pass([Line(idle, []), Line(pinned, [])], now=0)

    assert (moves.idle, moves.gates) == (["limit:a"], [pinned])


def test_the_first_who_comes_tells_a_gate_that_was_only_set_how_many_may_pass() -> None:
    row = GateRow("rate:mail", capacity=0, pinned=9)

    let_pass([Line(row, [parked(1, RATE)])], now=0)

    assert (row.capacity, row.period, row.allowed) == (1, MINUTE, 9)


@pytest.mark.parametrize(("rank", "overtakes"), [(1, True), (3, False)])
def test_a_lock_that_nobody_runs_under_goes_to_the_smaller_rank(rank: int, overtakes: bool) -> None:
    lock = Gate(GateKind.LOCK, "doc")
    holder = parked(2, lock, passed=1)

    moves = let_pass([Line(GateRow("lock:doc", held=1), [parked(rank, lock)], holder)], now=0)

    assert ready(moves) == (["t1"] if overtakes else [])
    assert [one.id for one in moves.back] == (["t2"] if overtakes else [])


def test_a_rate_counts_those_who_may_start_and_those_who_did_in_the_last_period() -> None:
    row = GateRow("rate:mail", capacity=2, period=MINUTE)
    let_pass([Line(row, [parked(1, RATE), parked(2, RATE)])], now=0)

    row.start(1, now=10)

    assert (row.held, row.room(11), row.look_at) == (1, 0, 10 + MINUTE)
    assert row.room(10 + MINUTE) == 1


def test_a_latch_opens_once_it_is_counted_down_and_stays_open() -> None:
    latch = GateRow("latch:group", left=2)
    latch.count(-1, 0, now=1)
    assert latch.room(1) == 0

    latch.count(-1, 1, now=2)
    latch.count(+5, 0, now=3)

    assert (latch.opened_at, latch.left, latch.failed) == (2, 0, 1)
    assert ready(let_pass([Line(latch, [parked(1, Gate(GateKind.LATCH, "group"))])], 3)) == ["t1"]
    assert latch.held == 0


def test_gates_are_gone_through_kind_after_kind() -> None:
    assert next_stage({"rate:r", "limit:b", "limit:a"}) == (["limit:a", "limit:b"], {"rate:r"})


@given(
    capacity=st.integers(1, 3 * CHUNKS),
    gaps=st.lists(st.integers(0, MINUTE), min_size=1, max_size=40),
)
def test_no_period_ever_sees_more_starts_than_the_rate(capacity: int, gaps: list[int]) -> None:
    """As many start as may, again and again, and no window of a period has too many of them."""
    row, now, starts = GateRow("rate:mail", capacity=capacity, period=MINUTE), 0, []
    for gap in gaps:
        now += gap
        number = row.room(now)
        row.held += number
        row.start(number, now)
        starts += [now] * number

    for at in set(starts):
        assert sum(at - MINUTE < other <= at for other in starts) <= capacity
