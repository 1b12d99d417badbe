"""Order and aging: the bound that `core.priority` states, tried on every kind of load."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.priority import CENTURY, MICROSECONDS, Aging, parse_priority
from holdfast.core.task import Priority

MINUTE = 60 * MICROSECONDS
agings = st.builds(Aging, low=st.floats(0, 1e5), normal=st.floats(0, 1e5))
instants = st.integers(0, 2**52)


@dataclass(frozen=True)
class Work:
    """A task in the simulated line."""

    number: int
    priority: Priority
    eligible: int

    def rank(self, aging: Aging) -> tuple[int, int]:
        return self.eligible - aging.head_start(self.priority), self.number


works = st.lists(
    st.tuples(st.sampled_from([Priority.HIGH, Priority.NORMAL, Priority.LOW]), st.integers(0, 90)),
    min_size=1,
    max_size=80,
).map(
    lambda drawn: [
        Work(number, priority, minute * MINUTE)
        for number, (priority, minute) in enumerate(sorted(drawn, key=lambda pair: pair[1]))
    ]
)


def run(works: list[Work], slots: int, aging: Aging) -> list[tuple[int, Work]]:
    """Start `slots` tasks every minute, smallest rank first; return (minute, task) in order."""
    coming = sorted(works, key=lambda work: work.eligible, reverse=True)
    line: list[tuple[tuple[int, int], Work]] = []
    starts: list[tuple[int, Work]] = []
    minute = 0
    while coming or line:
        while coming and coming[-1].eligible <= minute * MINUTE:
            work = coming.pop()
            heapq.heappush(line, (work.rank(aging), work))
        starts += [(minute, heapq.heappop(line)[1]) for _ in range(min(slots, len(line)))]
        minute += 1
    return starts


class TestHeadStart:
    def test_the_defaults_are_ten_and_thirty_minutes(self) -> None:
        aging = Aging()

        assert [aging.head_start(p) for p in reversed(Priority)] == [
            0,
            10 * MINUTE,
            30 * MINUTE,
            CENTURY,
        ]

    @given(agings)
    def test_more_urgent_is_never_worth_less(self, aging: Aging) -> None:
        worth = [aging.head_start(priority) for priority in Priority]

        assert worth == sorted(worth, reverse=True)
        assert min(worth) == 0

    @given(agings, st.sampled_from(list(Priority)), instants, instants)
    def test_within_a_priority_the_order_is_by_age(
        self, aging: Aging, priority: Priority, one: int, other: int
    ) -> None:
        head_start = aging.head_start(priority)

        assert (one - head_start < other - head_start) == (one < other)


class TestEffectivePriority:
    @given(st.sampled_from(list(Priority)), instants)
    def test_a_fresh_task_has_the_priority_it_was_given(self, priority: Priority, now: int) -> None:
        aging = Aging()

        assert aging.effective(now - aging.head_start(priority), now) is priority

    @pytest.mark.parametrize(
        ("priority", "waited", "effective"),
        [
            (Priority.LOW, 10 * MINUTE - 1, Priority.LOW),
            (Priority.LOW, 10 * MINUTE, Priority.NORMAL),
            (Priority.LOW, 30 * MINUTE - 1, Priority.NORMAL),
            (Priority.LOW, 30 * MINUTE, Priority.HIGH),
            (Priority.LOW, 365 * 1440 * MINUTE, Priority.HIGH),
            (Priority.NORMAL, 20 * MINUTE - 1, Priority.NORMAL),
            (Priority.NORMAL, 20 * MINUTE, Priority.HIGH),
            (Priority.HIGH, 365 * 1440 * MINUTE, Priority.HIGH),
            (Priority.CRITICAL, 0, Priority.CRITICAL),
        ],
    )
    def test_waiting_makes_urgent_but_never_critical(
        self, priority: Priority, waited: int, effective: Priority
    ) -> None:
        aging = Aging()
        now = 1_800_000_000 * MICROSECONDS
        rank = now - waited - aging.head_start(priority)

        assert aging.effective(rank, now) is effective

    @given(agings, instants, instants, st.integers(0, 2**40))
    def test_effective_priority_never_falls_with_time(
        self, aging: Aging, rank: int, now: int, later: int
    ) -> None:
        urgency = list(Priority)

        before = urgency.index(aging.effective(rank, now))
        after = urgency.index(aging.effective(rank, now + later))

        assert after <= before


class TestTheBound:
    """The three sentences of `core.priority` about starvation."""

    @given(works, st.integers(1, 6), agings)
    def test_nothing_is_overtaken_by_what_became_eligible_too_long_after_it(
        self, works: list[Work], slots: int, aging: Aging
    ) -> None:
        order = [work for _, work in run(works, slots, aging)]

        for place, work in enumerate(order):
            for earlier in order[:place]:
                lead = aging.head_start(earlier.priority) - aging.head_start(work.priority)
                assert earlier.eligible <= work.eligible + max(lead, 0)

    @given(works, st.integers(1, 6), agings)
    def test_a_task_starts_once_those_before_it_and_those_that_may_overtake_have_started(
        self, works: list[Work], slots: int, aging: Aging
    ) -> None:
        starts = run(works, slots, aging)

        for minute, work in starts:
            standing_before, overtaking = 0, 0
            for start, other in starts:
                if other.eligible <= work.eligible:
                    waits = start * MINUTE >= work.eligible
                    standing_before += waits and other.rank(aging) < work.rank(aging)
                else:
                    lead = aging.head_start(other.priority) - aging.head_start(work.priority)
                    overtaking += other.eligible <= work.eligible + lead
            waited = minute - work.eligible // MINUTE
            assert waited * slots <= standing_before + overtaking

    @pytest.mark.parametrize("high_per_minute", [4, 6])
    def test_low_work_under_endless_high_load_starts_within_the_bound(
        self, high_per_minute: int
    ) -> None:
        slots, backlog, minutes = 4, 60, 120
        low = [Work(n, Priority.LOW, 0) for n in range(backlog)]
        high = [
            Work(backlog + n, Priority.HIGH, n // high_per_minute * MINUTE)
            for n in range(high_per_minute * minutes)
        ]

        starts = run(low + high, slots, Aging())

        until_half_past = [work for minute, work in starts if minute < 30]
        last_low = max(minute for minute, work in starts if work.priority is Priority.LOW)
        assert all(work.priority is Priority.HIGH for work in until_half_past)
        assert last_low <= (30 * high_per_minute + high_per_minute + backlog) / slots


@pytest.mark.parametrize(
    ("word", "priority"),
    [
        ("critical", Priority.CRITICAL),
        (" High ", Priority.HIGH),
        ("NORMAL", Priority.NORMAL),
        ("medium", Priority.NORMAL),
        ("default", Priority.NORMAL),
        ("low", Priority.LOW),
        (Priority.LOW, Priority.LOW),
        ("urgent", None),
        ("", None),
    ],
)
def test_a_priority_is_read_from_its_word(word: str, priority: Priority | None) -> None:
    assert parse_priority(word) is priority
