"""How far down a line a claim looks, where looking at all of it is dear."""

from __future__ import annotations

import random
from zlib import crc32

import pytest

from holdfast.core.ids import uuid7
from holdfast.stores.mongo.documents import MILESTONES, order_of, ready_of
from holdfast.stores.mongo.reach import Reach

Line = list[bytes]


def line(count: int, *, batch: int, apart: int = 40_000) -> Line:
    """Tasks as they stand in line: `batch` submitted at each instant, their ids one after the
    other.
    """
    bits = random.Random(7)
    return [
        ready_of(
            order_of(n // batch * apart, uuid7(n // 8, (n % 8) << 70 | bits.getrandbits(70))), 1
        )
        for n in range(count)
    ]


def scouted(waiting: Line, *, now: float = 0.0) -> Reach:
    """Knows the milestones of a line."""
    reach = Reach()
    scout(waiting, reach, now)
    return reach


def scout(waiting: Line, reach: Reach, now: float) -> None:
    marked = [place for place in waiting if crc32(place) % MILESTONES == 0]
    reach.scouted(marked, now, more=False)


def claim(waiting: Line, reach: Reach, limit: int) -> tuple[int, int]:
    """Take the first of the line; returns how many queries that took, and how much they read."""
    queries = read = 0
    found: Line = []
    seen = b""
    for bound in reach.bounds(limit):
        part = [place for place in waiting if seen <= place and (not bound or place < bound)]
        queries, read = queries + 1, read + len(part)
        found += part[: limit - len(found)]
        if bound is None or len(found) == limit:
            break
        seen = bound
    reach.learn(found)
    assert found == waiting[:limit]
    del waiting[:limit]
    return queries, read


@pytest.mark.parametrize("batch", [1, 7, 100, 1000, 20_000])
def test_at_most_two_are_read_for_each_that_is_taken_however_they_were_submitted(
    batch: int,
) -> None:
    waiting = line(20_000, batch=batch)
    reach = scouted(waiting)

    costs = [claim(waiting, reach, 100) for _ in range(150)]

    assert sum(read for _, read in costs) <= 1.8 * 150 * 100
    assert sum(queries for queries, _ in costs) <= 1.5 * 150


def test_the_first_claim_of_all_reads_little() -> None:
    waiting = line(20_000, batch=2000)

    assert claim(waiting, scouted(waiting), 100)[1] <= 400


def test_a_line_of_which_others_took_much_is_read_in_a_few_steps() -> None:
    waiting = line(20_000, batch=2000)
    reach = scouted(waiting)
    del waiting[:5000]

    queries, read = claim(waiting, reach, 100)

    assert queries <= 12
    assert read <= 10_000


def test_without_milestones_the_whole_line_is_looked_at() -> None:
    assert list(Reach().bounds(100)) == [None]
    assert list(scouted(line(50, batch=10)).bounds(100)) == [None]


def test_whatever_was_guessed_the_whole_line_is_looked_at_in_the_end() -> None:
    waiting = line(1000, batch=1000)
    reach = scouted(waiting)
    claim(waiting, reach, 100)

    far = line(200, batch=1, apart=10**15)[100:]

    assert claim(far, reach, 100)[1] == 100


def test_milestones_are_asked_for_at_first_and_when_they_run_out() -> None:
    reach = Reach()
    assert reach.wants_milestones(100, 0.0)
    waiting = line(2000, batch=100)
    scout(waiting, reach, 0.0)
    assert not reach.wants_milestones(100, 1000.0)

    while len(waiting) > 100:
        claim(waiting, reach, 100)

    assert not reach.wants_milestones(100, 1.0), "there were no others a second ago"
    assert reach.wants_milestones(100, 60.0)
    reach.scouted([waiting[-1]], 60.0, more=True)
    assert reach.wants_milestones(100, 60.0)
