"""Counts of many processes add up to one sum, whoever dies, is silent, or does not know."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson
import pytest

from holdfast.core import metrics
from holdfast.core.alerts import Severity
from holdfast.core.record import Changes
from holdfast.core.task import Added, Priority
from holdfast.counting import Tally, tally_of
from holdfast.errors import StoreUnavailable
from holdfast.metrics.fleet import Fleet, read_fleet
from holdfast.metrics.keeping import COUNTS, TAKEN, CountsKeeper, CountsTaker, MinuteKeeper
from holdfast.metrics.keeping import fleet_counts as told_by
from holdfast.metrics.minutes import MINUTE
from holdfast.ports.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import new_task, worker_info


class Process:
    """A process that counts dead letters: a keeper with a tally of its own."""

    def __init__(self, store: Store) -> None:
        self._tally = Tally()
        self.keeper = CountsKeeper(store)
        self.keeper._tally = self._tally  # all tests run in one process

    def count(self, number: int) -> None:
        self._tally.add(metrics.DEAD, by=number)
        self._tally.observe(metrics.LOCK_WAITS, values=[0.1] * number)

    async def keep(self) -> None:
        while await self.keeper.tick() == 0.0:
            pass


async def total(store: Store) -> int:
    counts = await told_by(store)
    assert counts.spread(metrics.LOCK_WAITS).count == counts.number(metrics.DEAD)
    return int(counts.number(metrics.DEAD))


async def take_over(store: Store, clock: FakeClock) -> None:
    clock.advance(61)
    await CountsTaker(store).tick()


async def test_the_counts_of_all_processes_are_summed(timed: Store) -> None:
    one, other = Process(timed), Process(timed)
    one.count(3)
    other.count(4)

    await one.keep()
    await other.keep()
    one.count(10)
    await one.keep()

    assert await total(timed) == 17


async def test_what_has_not_changed_is_not_written_again(timed: Store) -> None:
    one = Process(timed)
    await one.keep()
    assert await timed.records(COUNTS, limit=5) == []

    one.count(1)
    await one.keep()
    await one.keep()

    (record,) = await timed.records(COUNTS, limit=5)
    assert record.version == 1


async def test_a_silent_process_is_taken_over_once_by_however_many(
    timed: Store, clock: FakeClock
) -> None:
    processes = [Process(timed) for _ in range(5)]
    for each in processes:
        each.count(7)
        await each.keep()
    clock.advance(59)
    await processes[0].keep()
    assert [one.group for one in await timed.records(COUNTS, limit=9)] == [""] * 5

    clock.advance(2)
    await asyncio.gather(*(CountsTaker(timed).tick() for _ in range(4)))

    assert [one.group for one in await timed.records(COUNTS, limit=9)] == [TAKEN] * 5
    assert await total(timed) == 35


async def test_a_process_that_lives_on_after_it_was_taken_over_loses_and_doubles_nothing(
    timed: Store, clock: FakeClock
) -> None:
    one = Process(timed)
    one.count(3)
    await one.keep()

    for expected in (8, 13, 18):
        await take_over(timed, clock)
        one.count(5)
        await one.keep()

        assert await total(timed) == expected
    await take_over(timed, clock)
    assert await total(timed) == 18


async def test_a_process_that_was_silent_for_days_goes_on_where_it_was(
    timed: Store, clock: FakeClock
) -> None:
    one = Process(timed)
    one.count(3)
    await one.keep()
    await take_over(timed, clock)
    clock.advance(86_401)
    await CountsTaker(timed).tick()
    assert await timed.records(COUNTS, limit=5) == []

    one.count(5)
    await one.keep()

    assert await total(timed) == 8


async def test_a_process_whose_mark_is_about_to_be_forgotten_subtracts_it_once(
    timed: Store, clock: FakeClock
) -> None:
    one = Process(timed)
    one.count(3)
    await one.keep()
    await take_over(timed, clock)
    clock.advance(86_401)
    one.count(5)
    assert await one.keeper.tick() == 0.0  # it has looked, and not written yet
    await timed.take_due(COUNTS, limit=5, lease=10)

    await one.keep()

    assert await total(timed) == 8


async def test_a_process_that_writes_while_it_is_taken_over_stays(
    timed: Store, clock: FakeClock
) -> None:
    one, taker = Process(timed), CountsTaker(timed)
    one.count(3)
    await one.keep()
    clock.advance(61)
    due = await timed.take_due(COUNTS, limit=5, lease=30)
    one.count(4)
    await one.keep()

    await taker._take(due.records)

    (record,) = await timed.records(COUNTS, limit=5)
    assert record.group == ""
    assert await total(timed) == 7


class Vague:
    """A store that does not answer commits; what was asked for is done or not."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.fails: str | None = None

    async def commit(self, changes: Changes) -> Sequence[Added]:
        if self.fails == "before":
            raise StoreUnavailable("away")
        done = await self._store.commit(changes)
        if self.fails == "after":
            raise StoreUnavailable("away")
        return done

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@pytest.mark.parametrize("fails", ["before", "after"])
@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("taken", [False, True])
async def test_a_write_whose_outcome_is_unknown_counts_once(
    timed: Store, clock: FakeClock, fails: str, written: bool, taken: bool
) -> None:
    vague = Vague(timed)
    one = Process(vague)  # type: ignore[arg-type]  # it is one but for what it lacks
    one.count(3)
    if written:
        await one.keep()
        one.count(4)
    vague.fails = fails
    with pytest.raises(StoreUnavailable):
        await one.keep()
    one.count(5)
    if taken:
        await take_over(timed, clock)

    vague.fails = None
    await one.keep()
    await one.keep()

    assert await total(timed) == (12 if written else 8)
    await take_over(timed, clock)
    assert await total(timed) == (12 if written else 8)


async def test_last_words_are_said_after_a_write_that_was_cut_off(timed: Store) -> None:
    vague = Vague(timed)
    one = Process(vague)  # type: ignore[arg-type]  # as above
    one.count(3)
    vague.fails = "after"
    with pytest.raises(StoreUnavailable):
        await one.keep()
    one.count(5)

    vague.fails = None
    await one.keeper.close()

    assert await total(timed) == 8


async def test_last_words_to_a_store_that_is_away_hold_up_nobody(timed: Store) -> None:
    vague = Vague(timed)
    one = Process(vague)  # type: ignore[arg-type]  # as above
    one.count(3)
    vague.fails = "before"

    async with asyncio.timeout(5):
        await one.keeper.close()

    assert await total(timed) == 0


async def test_the_sum_never_shrinks_while_others_are_taken_over(
    timed: Store, clock: FakeClock
) -> None:
    for number in range(8):
        one = Process(timed)
        one.count(1)
        await one.keep()
        clock.advance(10 - number)
    seen: list[int] = []
    done = asyncio.Event()

    async def look() -> None:
        while not done.is_set():
            seen.append(await total(timed))
            await asyncio.sleep(0)

    async def take() -> None:
        for _ in range(8):
            clock.advance(10)
            await CountsTaker(timed).tick()
        done.set()

    await asyncio.gather(look(), take())

    assert set(seen) == {8}


async def test_a_minute_is_noted_once_though_many_note_it(timed: Store, clock: FakeClock) -> None:
    keepers = [MinuteKeeper(timed) for _ in range(5)]

    rests = await asyncio.gather(*(each.tick() for each in keepers))

    assert len(await timed.records(MINUTE, limit=9)) == 1
    assert all(0 < rest <= 66 for rest in rests)
    clock.advance(60)
    await keepers[0].tick()
    assert len(await timed.records(MINUTE, limit=9)) == 2


async def test_old_minutes_go(timed: Store, clock: FakeClock) -> None:
    await MinuteKeeper(timed).tick()
    clock.advance(25 * 3600 - 1)
    await CountsTaker(timed).tick()
    assert len(await timed.records(MINUTE, limit=9)) == 1

    clock.advance(2)
    await CountsTaker(timed).tick()

    assert await timed.records(MINUTE, limit=9) == []


# -- the overview ------------------------------------------------------------------------------


async def fleet(store: Store) -> Fleet:
    return await read_fleet(store, await store.stats(), await store.workers())


async def alerts(store: Store) -> list[str]:
    return [alert.name for alert in (await fleet(store)).alerts]


async def pass_minutes(store: Store, clock: FakeClock, minutes: int) -> None:
    for _ in range(minutes):
        await MinuteKeeper(store).tick()
        clock.advance(60)


async def test_an_empty_store_has_no_numbers_and_no_alerts_yet(timed: Store) -> None:
    found = await fleet(timed)

    assert found.alerts == []
    assert found.minutes == []
    assert found.used == 0.0
    assert found.lately.completed == 0


async def test_no_worker_for_two_minutes_is_told(timed: Store, clock: FakeClock) -> None:
    await pass_minutes(timed, clock, 1)
    assert await alerts(timed) == []

    await pass_minutes(timed, clock, 1)
    (alert,) = (await fleet(timed)).alerts

    assert (alert.name, alert.severity) == ("HoldfastNoWorker", Severity.CRITICAL)
    await timed.register(worker_info())
    assert await alerts(timed) == []


async def test_workers_that_are_full_for_ten_minutes_are_told(
    timed: Store, clock: FakeClock
) -> None:
    await timed.register(worker_info(capacity=10, load=10))

    await pass_minutes(timed, clock, 9)
    assert await alerts(timed) == []
    await pass_minutes(timed, clock, 1)

    assert await alerts(timed) == ["HoldfastBusy"]


async def test_what_failed_is_told_of_the_last_five_minutes(timed: Store, clock: FakeClock) -> None:
    await timed.register(worker_info())
    tally = tally_of(timed)
    keeper = CountsKeeper(timed)
    tally.add(metrics.TASK_STATES, "completed", by=1000)
    tally.observe(metrics.WAITS, "low", values=[100.0] * 1000)
    await keeper.tick()
    await pass_minutes(timed, clock, 6)
    tally.add(metrics.TASK_STATES, "completed", by=140)
    tally.add(metrics.TASK_STATES, "dead_letter", by=60)
    tally.observe(metrics.WAITS, "low", values=[0.3] * 10)
    await keeper.tick()

    found = await fleet(timed)

    assert [alert.name for alert in found.alerts] == ["HoldfastFailures", "HoldfastDeadLetters"]
    assert (found.lately.completed, found.lately.failed, found.lately.dead) == (140, 60, 60)
    assert found.lately.seconds == 300
    assert found.lately.waits[Priority.LOW].count == 10
    await pass_minutes(timed, clock, 2)
    minutes = (await fleet(timed)).minutes
    assert [one.completed for one in minutes] == [0, 0, 0, 0, 0, 140, 0][: len(minutes)]
    assert all(one.seconds == 60 for one in minutes)


async def test_backlogs_and_long_waits_are_told(timed: Store, clock: FakeClock) -> None:
    await timed.register(worker_info())
    low = new_task(priority=Priority.LOW)
    await timed.add([low], idempotency_window=0)
    clock.advance(1501)
    lot = [new_task(queue="lot", priority=Priority.HIGH) for _ in range(5001)]
    await timed.add(lot, idempotency_window=0)

    found = (await fleet(timed)).alerts

    assert [alert.text for alert in found] == [
        "5,001 tasks of high or critical priority are ready and wait.",
        "A task of low priority has waited for 25 minutes.",
        "5,001 tasks of queue 'lot' are ready and wait.",
    ]


async def test_notes_of_this_release_are_json_that_another_can_read(clock: FakeClock) -> None:
    async with MemoryStore(clock=clock) as store:
        await MinuteKeeper(store).tick()

        (record,) = await store.records(MINUTE, limit=1)

    said = orjson.loads(record.document)
    assert said.keys() == {"at", "counts", "depths", "oldest", "workers", "capacity", "running"}
