"""Groups that are too large for one commit: stored in slices, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import HoldfastError, InvalidOption, Link, State, chord, group
from holdfast.core.gate import GateKind
from holdfast.definitions.composing import SLICE, Composite
from holdfast.definitions.definition import Definition
from holdfast.flow.slicing import PATIENCE
from holdfast.flow.trees import Trees
from holdfast.testing import MemoryApp

MANY = 2 * SLICE + 500
Inc = Definition[[int], int, int]


@pytest.fixture
def inc(app: MemoryApp) -> Inc:
    @app.task
    def inc(x: int) -> int:
        return x + 1

    return inc


def unfinished(app: MemoryApp) -> int:
    return app.count(state=["queued", "blocked", "running", "retrying"])


def test_a_group_of_any_size_has_one_handle_and_one_result(app: MemoryApp, inc: Inc) -> None:
    handle = inc.map(range(MANY)).submit()

    app.drain()

    assert handle.result(timeout=5) == list(range(1, MANY + 1))
    assert app.count() == MANY + 1


def test_a_large_header_of_a_chord_is_counted_by_its_callback(app: MemoryApp, inc: Inc) -> None:
    @app.task
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    handle = chord(inc.map(range(MANY)), total.s()).submit()

    app.drain()

    assert handle.result(timeout=5) == MANY * (MANY + 1) // 2


async def test_async_code_submits_large_groups_too(app: MemoryApp, inc: Inc) -> None:
    handle = await group([inc.s(n) for n in range(SLICE + 1)]).submit_async()

    assert (await handle.task_async()).state is State.BLOCKED
    assert await app.count_async(parent_id=handle.id) == SLICE + 1


def test_a_parent_does_not_end_before_its_last_member_is_stored(app: MemoryApp, inc: Inc) -> None:
    seen: list[State] = []

    def links() -> Iterator[Link[int]]:
        for n in range(MANY):
            if n == SLICE + 600:  # the first slice is stored, and all of it is done
                app.drain()
                (parent,) = app.list(name="holdfast.batch").tasks
                seen.append(parent.state)
                assert app.count(state="completed") == SLICE
            yield inc.s(n)

    handle = group(links()).submit()
    app.drain()

    assert seen == [State.BLOCKED]
    assert handle.status() is State.COMPLETED


def broken(inc: Inc) -> Iterator[Link[int]]:
    yield from (inc.s(n) for n in range(SLICE + 10))
    raise ValueError("the source is gone")


def wrong(inc: Inc) -> Iterator[Link[int]]:
    yield from (inc.s(n) for n in range(SLICE + 10))
    yield inc.s("ten")


@pytest.mark.parametrize(
    ("links", "error"), [(broken, ValueError), (wrong, HoldfastError)], ids=["raises", "wrong"]
)
def test_a_group_that_cannot_be_stored_whole_is_cancelled(
    app: MemoryApp, inc: Inc, links: object, error: type[Exception]
) -> None:
    assert callable(links)

    with pytest.raises(error):
        group(links(inc)).submit()

    assert app.count(state="cancelled") == SLICE + 1
    assert unfinished(app) == 0
    assert latches(app) == []


def latches(app: MemoryApp) -> list[str]:
    """The latches that nobody will ever open."""
    found = app.wait_for(app.client.store.gates(limit=1000))
    return [gate.name for gate in found if gate.kind is GateKind.LATCH and not gate.is_open]


async def abandoned(app: MemoryApp, part: Composite[list[int]]) -> None:
    """Store a part of a group and die."""
    slices = (await app.verbs()).slices(part)
    await slices.begin()
    await slices.store(next(part.members.slices()))


async def test_what_a_dead_submitter_left_is_cancelled_by_others(app: MemoryApp, inc: Inc) -> None:
    part = group(inc.s(n) for n in range(MANY))
    assert part.is_large
    await abandoned(app, part)
    chores = Trees(app.client.store, app.client.dispatcher, app.settings).chores

    app.clock.advance(PATIENCE - 1)
    await chores.round()
    assert await app.count_async(state="cancelled") == 0
    app.clock.advance(2)
    await chores.round()

    assert await app.count_async(state="cancelled") == SLICE + 1
    assert await app.client.store.records("chore", limit=10) == []


async def test_a_submitter_that_was_given_up_is_told(app: MemoryApp, inc: Inc) -> None:
    part = group(inc.s(n) for n in range(MANY))
    assert part.is_large
    slices = (await app.verbs()).slices(part)
    await slices.begin()
    app.clock.advance(PATIENCE + 1)
    await Trees(app.client.store, app.client.dispatcher, app.settings).chores.round()

    with pytest.raises(HoldfastError, match="was given up: no member came for 600 s"):
        await slices.store(next(part.members.slices()))

    assert await app.count_async() == 1


def test_a_key_stores_a_large_group_once(app: MemoryApp, inc: Inc) -> None:
    def submit() -> object:
        return inc.map(range(MANY)).options(idempotency_key="k").submit()

    first, again = submit(), submit()

    assert again == first
    assert app.count() == MANY + 1


def test_members_of_a_stream_cannot_wait_for_each_other(app: MemoryApp, inc: Inc) -> None:
    with pytest.raises(InvalidOption, match="more than 1,000 cannot wait for each other"):
        group(inc.s(n).named(f"n{n}") for n in range(MANY)).submit()

    assert unfinished(app) == 0


def test_a_plan_of_more_than_10000_tasks_is_refused(app: MemoryApp, inc: Inc) -> None:
    with pytest.raises(InvalidOption, match="more than 10,000 tasks would have to be stored"):
        group(inc.map(range(10_000)), inc.s(1)).submit()

    assert app.count() == 0
