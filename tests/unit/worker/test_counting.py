"""What a process counts of claims and of ends of attempts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import get_args

import pytest

from holdfast.core import metrics
from holdfast.core.attempt import Claim, Claimed
from holdfast.core.gate import GateKind
from holdfast.core.lifecycle import Outcome, Succeeded
from holdfast.core.priority import Aging
from holdfast.core.task import AttemptEnd, Cause, Priority, Reason, State, TaskId, WorkerId
from holdfast.counting import _STATUS, StoreClock, Tally, tally_of
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import failure, loss, release, success, timeout

NOW = 2_000_000_000_000_000
AGING = Aging()


def claim(
    priority: Priority = Priority.NORMAL,
    attempt: int = 1,
    lock: str | None = None,
    charged: int = 0,
) -> Claim:
    return Claim(
        task_id=TaskId("t1"), attempt=attempt, worker_id=WorkerId("w1"), name="shop.add",
        queue="default", priority=priority, payload=b"{}", charged=charged, max_retries=3,
        crash_count=0, timeout=None, retry=None, lock=lock, fence=None, cause=Cause.SUBMITTED,
        trace=None, owner=None, cancel_requested=False,
    )  # fmt: skip


def claimed(*waited: tuple[Claim, float]) -> Claimed:
    """These claims of tasks that have waited for so many seconds, in the order of their ranks."""
    ranked = sorted(
        ((NOW - round(wait * 1e6) - AGING.head_start(one.priority), one) for one, wait in waited),
        key=lambda each: each[0],
    )
    return Claimed([one for _, one in ranked], None, [rank for rank, _ in ranked])


def tell(tally: Tally, *waited: tuple[Claim, float]) -> metrics.Counts:
    tally.claimed(claimed(*waited), NOW, AGING)
    return tally.counts()


@pytest.mark.parametrize(
    ("own", "waited", "to"),
    [
        (Priority.LOW, 599.9, None),
        (Priority.LOW, 600.1, "normal"),
        (Priority.LOW, 1799.9, "normal"),
        (Priority.LOW, 1800.1, "high"),
        (Priority.NORMAL, 1199.9, None),
        (Priority.NORMAL, 1200.1, "high"),
        (Priority.HIGH, 90_000.0, None),
        (Priority.CRITICAL, 90_000.0, None),
    ],
)
def test_a_task_that_waited_is_promoted_when_it_starts(
    own: Priority, waited: float, to: str | None
) -> None:
    counts = tell(Tally(), (claim(own), waited))

    assert counts.number(metrics.PROMOTED) == (to is not None)
    assert to is None or counts.number(metrics.PROMOTED, own.value, to) == 1
    assert counts.spread(metrics.WAITS, own.value).micros == pytest.approx(waited * 1e6)


def test_of_a_mixed_batch_each_is_counted_as_what_it_is() -> None:
    low, high = claim(Priority.LOW), claim(Priority.HIGH)

    counts = tell(Tally(), (low, 700.0), (low, 10.0), (low, 2000.0), (high, 1.0), (high, 2.0))

    assert counts.number(metrics.PROMOTED, "low", "normal") == 1
    assert counts.number(metrics.PROMOTED, "low", "high") == 1
    assert counts.number(metrics.TASK_STATES, "running") == 5
    assert counts.spread(metrics.WAITS, "low").count == 3
    assert counts.spread(metrics.WAITS, "high").count == 2


def test_only_the_first_attempt_has_waited() -> None:
    counts = tell(Tally(), (claim(Priority.LOW, attempt=2), 5000.0), (claim(Priority.LOW), 1.0))

    assert counts.number(metrics.TASK_STATES, "running") == 2
    assert counts.spread(metrics.WAITS).count == 1
    assert counts.number(metrics.PROMOTED) == 0


def test_waits_for_locks_are_told_apart() -> None:
    counts = tell(Tally(), (claim(lock="a"), 3.0), (claim(), 1.0))

    assert counts.spread(metrics.LOCK_WAITS).micros == 3_000_000


def test_a_clock_that_is_a_little_behind_makes_no_wait_negative() -> None:
    counts = tell(Tally(), (claim(lock="a"), -0.5), (claim(lock="a"), -0.1))

    assert counts.spread(metrics.WAITS).micros == counts.spread(metrics.LOCK_WAITS).micros == 0


def test_a_store_that_tells_no_ranks_costs_its_workers_nothing() -> None:
    tally = Tally()

    tally.claimed(Claimed([claim()], None), NOW, AGING)

    assert tally.counts().number(metrics.TASK_STATES, "running") == 1


def test_ends_are_counted_by_what_became_of_the_task() -> None:
    tally, one = Tally(), claim(Priority.LOW)
    last = claim(Priority.LOW, charged=3)
    ends = [
        (one, success(one)), (one, success(one)), (one, failure(one)), (one, timeout(one)),
        (one, loss(one)), (last, failure(last)), (one, failure(one, retriable=False)),
        (one, release(one)),
    ]  # fmt: skip

    tally.saved([settlement for _, settlement in ends])
    for pair in ends[2:]:
        tally.went_wrong(*pair)
    counts = tally.counts()

    assert counts.number(metrics.TASK_STATES, "completed") == 2
    assert counts.number(metrics.TASK_STATES, "dead_letter") == 1
    assert counts.number(metrics.TASK_STATES, "failed") == 1
    assert counts.number(metrics.DEAD) == 1
    assert counts.number(metrics.FAILED, "retries_exhausted") == 1
    assert counts.number(metrics.FAILED, "not_retriable") == 1
    assert counts.number(metrics.FAILED) == 2
    retried = {key[1:]: n for key, n in counts.numbers.items() if key[0] == "task_retries_total"}
    assert retried == {("error", "low"): 1, ("timeout", "low"): 1, ("worker_lost", "low"): 1}


def test_runs_are_counted_with_the_next_batch() -> None:
    tally = Tally()
    tally.ended += [(Priority.LOW, Succeeded, 0.2), (Priority.HIGH, Succeeded, 0.3)] * 2

    counts = tally.counts()

    assert counts.spread(metrics.DURATIONS, "low", "completed").micros == 400_000
    assert counts.spread(metrics.DURATIONS, "high", "completed").micros == 600_000
    assert tally.counts() == counts


def test_what_is_taken_is_taken_once() -> None:
    tally = Tally()
    tally.add(metrics.DEAD, by=2)
    first = tally.take()
    tally.add(metrics.DEAD)
    second = tally.take()

    assert [each.number(metrics.DEAD) for each in (first, second, tally.take())] == [2, 1, 0]
    assert tally.counts().number(metrics.DEAD) == 3


def test_nothing_is_lost_or_doubled_among_threads() -> None:
    tally, started = Tally(), threading.Barrier(4)
    taken: list[metrics.Counts] = []

    def count() -> None:
        started.wait()
        for _ in range(2000):
            tally.ended.append((Priority.LOW, Succeeded, 0.001))

    def take() -> None:
        started.wait()
        taken.extend(tally.take() for _ in range(200))

    threads = [threading.Thread(target=each) for each in (count, count, take, take)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken.append(tally.take())

    assert sum(each.spread(metrics.DURATIONS).count for each in taken) == 4000


def test_time_is_taken_of_what_succeeds() -> None:
    tally = Tally()

    with tally.timed("save"):
        pass
    with pytest.raises(ZeroDivisionError), tally.timed("claim"):
        raise ZeroDivisionError

    assert tally.counts().spread(metrics.LATENCY, "save").count == 1
    assert tally.counts().spread(metrics.LATENCY).count == 1


def test_all_who_work_on_a_store_count_together() -> None:
    one, other = MemoryStore(), MemoryStore()

    assert tally_of(one) is tally_of(one)
    assert tally_of(one) is not tally_of(other)


class CountedClock(MemoryStore):
    """Says how often it was asked for the time."""

    asked = 0

    async def now(self):  # type: ignore[no-untyped-def]  # the signature is the port's
        self.asked += 1
        return await super().now()


async def test_the_stores_clock_is_asked_once_and_reckoned_on() -> None:
    clock = FakeClock()
    store = CountedClock(clock=clock)
    told = StoreClock(store)

    first = await told.now_us()
    await asyncio.sleep(0.01)
    second = await told.now_us()

    assert abs(first - clock.now_us()) < 1_000_000
    assert 10_000 <= second - first < 5_000_000
    assert store.asked == 1


def test_every_label_comes_from_a_closed_set() -> None:
    """So the number of series has a bound, whatever tasks there are."""
    sets: dict[str, Sequence[str]] = {
        "priority": [*Priority], "from": [*Priority], "to": [*Priority], "state": [*State],
        "status": [*AttemptEnd], "kind": [*GateKind], "operation": ["claim", "save", "add"],
        "reason": [*Reason, *AttemptEnd], "stat": ["oldest", "p50", "p95"], "queue": [],
    }  # fmt: skip

    assert {label for metric in metrics.METRICS for label in metric.labels} <= sets.keys()
    assert [m.name for m in metrics.METRICS if "queue" in m.labels] == ["queue_depth"]
    assert {*_STATUS.values()} <= {*AttemptEnd}
    assert _STATUS.keys() == {*get_args(Outcome)}
