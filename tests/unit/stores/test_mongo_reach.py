"""How far down a line a claim looks, where looking at all of it is slow."""

from __future__ import annotations

from holdfast.core.ids import uuid7
from holdfast.stores.mongo.documents import order_of, ready_of
from holdfast.stores.mongo.reach import Reach

SLOW = 1.0
Line = list[bytes]


def line(count: int, *, batch: int, apart: int = 40_000) -> Line:
    """Tasks as they stand in line: `batch` submitted at each instant, their ids one after the
    other.
    """
    return [
        ready_of(order_of(number // batch * apart, uuid7(number, 0)), 1) for number in range(count)
    ]


def claim(waiting: Line, reach: Reach, limit: int, *, seconds: float = SLOW) -> tuple[int, int]:
    """Take the first of the line; returns how many queries that took, and how much they read."""
    queries = read = 0
    found: Line = []
    for bound in reach.bounds(limit):
        within = [place for place in waiting if bound is None or place < bound]
        queries, read, found = queries + 1, read + len(within), within[:limit]
        if len(found) == limit:
            break
    reach.learn(found, more=len(found) == limit, seconds=seconds)
    assert found == waiting[:limit]
    del waiting[:limit]
    return queries, read


def test_a_claim_reads_little_more_than_it_takes_from_tasks_submitted_together() -> None:
    waiting, reach = line(5000, batch=5000), Reach()
    claim(waiting, reach, 100)

    costs = [claim(waiting, reach, 100) for _ in range(40)]

    assert all(cost <= (1, 115) for cost in costs)


def test_a_claim_reads_little_more_than_it_takes_from_tasks_submitted_one_by_one() -> None:
    waiting, reach = line(5000, batch=1), Reach()
    claim(waiting, reach, 100)

    costs = [claim(waiting, reach, 100) for _ in range(40)]

    assert all(cost <= (1, 115) for cost in costs)


def test_at_most_two_are_read_for_each_that_is_taken_where_batches_meet() -> None:
    waiting, reach = line(20_000, batch=1000), Reach()
    for _ in range(20):
        claim(waiting, reach, 100)  # the first meeting of two batches teaches how far they are

    costs = [claim(waiting, reach, 100) for _ in range(150)]

    assert sum(read for _, read in costs) <= 2 * 150 * 100
    assert max(queries for queries, _ in costs) <= 4


def test_a_line_that_is_short_or_quick_to_look_at_is_looked_at_whole() -> None:
    reach = Reach()
    waiting = line(50, batch=10)
    claim(waiting, reach, 100)
    assert list(reach.bounds(100)) == [None]

    claim(line(5000, batch=10), reach, 100, seconds=0.001)

    assert list(reach.bounds(100)) == [None]


def test_whatever_was_guessed_the_whole_line_is_looked_at_in_the_end() -> None:
    reach = Reach()
    claim(line(1000, batch=1000), reach, 100)

    far = line(200, batch=1, apart=10**15)[100:]

    assert claim(far, reach, 100)[1] == 100
