"""Timers are armed, hop, are answered, and are armed again if they are lost."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.record import Changes
from holdfast.errors import TimerUnavailable
from holdfast.ports.timer import Timer
from holdfast.stores.memory.store import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.timers.arming import TIMER, Armed, Arming, Wanted, wanted

DAY = 86_400.0
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class FakeTimer:
    """Calls by a fake clock; may lose, double and delay calls, and be away."""

    def __init__(self, clock: FakeClock, horizon: float = 30 * DAY) -> None:
        self.horizon = horizon
        self.clock = clock
        self.calls: dict[str, tuple[datetime, str]] = {}
        self.armed = 0
        self.asked = 0
        self.is_away = False

    async def arm(self, key: str, at: datetime) -> str:
        self.asked += 1
        if self.is_away:
            raise TimerUnavailable("away")
        assert (at - self.clock.now).total_seconds() < self.horizon
        name = f"{key} {at.isoformat()}"
        self.armed += name not in self.calls
        self.calls[name] = (at, key)
        return name

    async def cancel(self, key: str, name: str | None = None) -> None:
        for each in [name] if name else [n for n, (_, k) in self.calls.items() if k == key]:
            self.calls.pop(each, None)

    async def close(self) -> None:
        self.calls.clear()


class World:
    """A store, a timer, and what was fired when."""

    def __init__(self, horizon: float = 30 * DAY, find: tuple[Wanted, ...] = ()) -> None:
        self.clock = FakeClock(START)
        self.store = MemoryStore(clock=self.clock)
        self.timer = FakeTimer(self.clock, horizon)
        self.fired: list[tuple[str, datetime]] = []
        self.fails = 0

        async def fire(key: str) -> None:
            if self.fails:
                self.fails -= 1
                raise RuntimeError("not now")
            self.fired.append((key, self.clock.now))

        async def found() -> AsyncIterator[Wanted]:
            for each in find:
                yield each

        async def sleep(seconds: float) -> None:
            self.clock.advance(seconds)

        timer: Timer = self.timer
        self.arming = Arming(self.store, timer, fire, find=(found,), sleep=sleep)

    async def pass_time(self, until: datetime, *, doubled: bool = False) -> None:
        """Let the timer call whatever comes due until then, each at its time."""
        while True:
            due = [(at, name, key) for name, (at, key) in self.timer.calls.items() if at <= until]
            if not due:
                break
            at, name, key = heapq.nsmallest(1, due)[0]
            self.clock.advance(max(timedelta(0), at - self.clock.now))
            del self.timer.calls[name]
            await self.arming.execute(key)
            if doubled:
                await self.arming.execute(key)
        self.clock.advance(max(timedelta(0), until - self.clock.now))

    async def record(self, key: str) -> Armed | None:
        found = await self.store.records(TIMER, keys=[key], limit=1)
        return Armed.of(found[0]) if found else None


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


async def test_a_timer_fires_at_its_instant_and_is_forgotten() -> None:
    world = World()

    await world.arming.arm("a", after(100))
    await world.pass_time(after(1000))

    assert world.fired == [("a", after(100))]
    assert await world.record("a") is None


async def test_a_year_ahead_is_reached_in_hops_of_30_days() -> None:
    world = World()

    await world.arming.arm("a", after(365 * DAY))
    await world.pass_time(after(366 * DAY))

    assert world.fired == [("a", after(365 * DAY))]
    assert world.timer.armed == 13


async def test_arming_twice_is_arming_once() -> None:
    world = World()

    await world.arming.arm("a", after(100))
    await world.arming.arm("a", after(100))

    assert world.timer.armed == 1


async def test_armed_anew_it_fires_at_the_new_instant_only() -> None:
    world = World()

    await world.arming.arm("a", after(100))
    await world.arming.arm("a", after(200))
    await world.arming.arm("b", after(300))
    await world.arming.arm("b", after(150))
    await world.pass_time(after(1000))

    assert world.fired == [("b", after(150)), ("a", after(200))]


async def test_two_far_instants_that_share_their_first_hop_do_not_cancel_each_other() -> None:
    world = World()

    await world.arming.arm("a", after(60 * DAY))
    await world.arming.arm("a", after(61 * DAY))
    await world.pass_time(after(90 * DAY))

    assert world.fired == [("a", after(61 * DAY))]


async def test_a_cancelled_timer_does_not_fire_even_if_its_call_was_under_way() -> None:
    world = World()
    await world.arming.arm("a", after(100))

    await world.arming.cancel("a")
    await world.arming.execute("a")
    await world.pass_time(after(1000))

    assert world.fired == []
    assert world.timer.calls == {}


async def test_unknown_repeated_and_stale_calls_do_nothing() -> None:
    world = World()
    await world.arming.arm("a", after(100))

    await world.arming.execute("nobody")
    await world.arming.execute("a")  # a hundred seconds early: of a timer that was replaced
    await world.pass_time(after(101), doubled=True)
    await world.arming.execute("a")

    assert world.fired == [("a", after(100))]


async def test_a_call_a_little_early_waits_for_its_time() -> None:
    world = World()
    await world.arming.arm("a", after(100))
    world.clock.advance(97)

    await world.arming.execute("a")

    assert world.fired == [("a", after(100))]


async def test_what_fails_is_called_again_and_raises_meanwhile() -> None:
    world = World()
    world.fails = 1
    await world.arming.arm("a", after(100))
    world.clock.advance(100)

    with pytest.raises(RuntimeError):
        await world.arming.execute("a")
    await world.arming.execute("a")

    assert len(world.fired) == 1


async def test_what_fires_may_arm_its_own_key_anew() -> None:
    world = World()

    async def fire(key: str) -> None:
        world.fired.append((key, world.clock.now))
        if len(world.fired) < 3:
            await world.arming.arm(key, world.clock.now + timedelta(seconds=50))

    world.arming._fire = fire
    await world.arming.arm("a", after(100))
    await world.pass_time(after(1000))

    assert [at for _, at in world.fired] == [after(100), after(150), after(200)]


async def test_a_lost_timer_costs_one_sweep() -> None:
    world = World()
    await world.arming.arm("a", after(100))
    world.timer.calls.clear()

    world.clock.advance(120)
    await world.arming.sweep()
    assert world.timer.calls == {}  # it may merely be late
    world.clock.advance(60)
    await world.arming.sweep()
    await world.pass_time(after(181))

    assert world.fired == [("a", after(180))]


async def test_a_lost_hop_costs_nothing_but_a_sweep_and_never_the_instant() -> None:
    world = World()
    await world.arming.arm("a", after(100 * DAY))
    world.timer.calls.clear()

    world.clock.advance(31 * DAY)
    await world.arming.sweep()
    await world.pass_time(after(200 * DAY))

    assert world.fired == [("a", after(100 * DAY))]


async def test_a_timer_that_is_there_and_fails_gets_no_second_one() -> None:
    world = World()
    await world.arming.arm("a", after(100))
    (name,) = world.timer.calls

    for _ in range(5):
        world.clock.advance(100)
        await world.arming.sweep()

    assert list(world.timer.calls) == [name]


async def test_while_the_service_is_away_the_wish_is_kept_and_armed_later() -> None:
    world = World()
    world.timer.is_away = True

    await world.arming.arm("a", after(100))
    world.timer.is_away = False
    world.clock.advance(61)
    await world.arming.sweep()
    await world.pass_time(after(1000))

    assert world.fired == [("a", after(100))]


async def test_a_sweep_gives_up_at_once_while_the_service_is_away() -> None:
    many = tuple(Wanted(f"k{n:04}", after(100 + n)) for n in range(1200))
    world = World(find=many)
    world.timer.is_away = True

    await world.arming.sweep()
    assert world.timer.asked <= 20
    world.timer.is_away = False
    world.clock.advance(61)
    await world.arming.sweep()

    assert len(world.timer.calls) == 1200


async def test_a_wish_in_a_commit_of_somebody_else_is_armed_by_a_sweep() -> None:
    world = World()

    await world.store.commit(Changes(uuid4().hex, records=(wanted("a", after(100)),)))
    await world.arming.sweep()
    await world.pass_time(after(1000))

    assert world.fired == [("a", after(100))]


async def test_a_sweep_arms_what_should_be_and_is_not() -> None:
    many = tuple(Wanted(f"k{n:04}", after(100 + n)) for n in range(1200))
    world = World(find=many)
    await world.arming.arm("k0000", after(100))
    await world.arming.arm("k0001", after(5000))

    await world.arming.sweep()
    await world.arming.sweep()
    await world.pass_time(after(1000))
    await world.pass_time(after(1300))

    assert world.fired == [(each.key, each.at) for each in many]


async def test_arm_by_leaves_what_is_armed_for_before() -> None:
    world = World()
    await world.arming.arm("a", after(100))

    await world.arming.arm_by("a", after(200))
    await world.arming.arm_by("b", after(200))

    assert [(await world.record(key)) and (await world.record(key)).at for key in "ab"] == [  # type: ignore[union-attr] # just asked
        after(100),
        after(200),
    ]


async def test_many_who_arm_the_same_key_at_once_leave_one_wake_up() -> None:
    world = World()

    await asyncio.gather(*(world.arming.arm("a", after(100 + n % 2)) for n in range(20)))
    await world.pass_time(after(1000))

    assert len(world.fired) == 1


@settings(max_examples=60)
@given(
    ahead=st.lists(st.integers(0, 100 * 86_400), min_size=1, max_size=5, unique=True),
    horizons=st.lists(st.floats(60, 30 * DAY), min_size=1, max_size=4),
    doubled=st.booleans(),
)
def test_the_fire_times_are_the_same_for_every_horizon(
    ahead: list[int], horizons: list[float], doubled: bool
) -> None:
    # A minute's horizon over a hundred days is 160,000 hops: the short ones get a shorter way.
    def fired(horizon: float) -> list[tuple[str, datetime]]:
        return asyncio.run(_fired(ahead, horizon, max(1, reach_of(horizons)), doubled=doubled))

    assert [fired(horizon) for horizon in horizons] == [fired(30 * DAY)] * len(horizons)


def reach_of(horizons: list[float]) -> float:
    """By how much instants are brought nearer so that the shortest horizon takes 300 hops."""
    return 100 * DAY / (300 * min(horizons))


async def _fired(
    ahead: list[int], horizon: float, nearer: float, *, doubled: bool
) -> list[tuple[str, datetime]]:
    world = World(horizon)
    for n, seconds in enumerate(ahead):
        await world.arming.arm(f"k{n}", after(seconds / nearer))
    await world.pass_time(after(101 * DAY), doubled=doubled)
    return sorted(world.fired)


@settings(max_examples=40)
@given(seed=st.integers(), horizon=st.floats(600, 30 * DAY))
def test_nothing_is_lost_and_nothing_early_whatever_the_timer_loses(
    seed: int, horizon: float
) -> None:
    asyncio.run(_lossy(random.Random(seed), horizon))


async def _lossy(chance: random.Random, horizon: float) -> None:
    world = World(horizon)
    ends = {f"k{n}": after(chance.uniform(0, 50 * horizon)) for n in range(5)}
    for key, at in ends.items():
        await world.arming.arm(key, at)
    for _ in range(400):
        await world.pass_time(world.clock.now + timedelta(seconds=horizon / 7))
        for name in [n for n in world.timer.calls if chance.random() < 0.1]:
            del world.timer.calls[name]
        world.timer.is_away = chance.random() < 0.2
        await world.arming.sweep()
    world.timer.is_away = False
    for _ in range(3):
        await world.arming.sweep()
        await world.pass_time(world.clock.now + timedelta(seconds=61))

    assert sorted(key for key, _ in world.fired) == sorted(ends)
    assert all(at >= ends[key] for key, at in world.fired)
