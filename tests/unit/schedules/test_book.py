"""The verbs of schedules, and firing, on a store in memory."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.unit.schedules.conftest import NOON, Place

from holdfast.core.record import Changes, Put
from holdfast.core.task import State
from holdfast.errors import InvalidOption, ScheduleNotFound
from holdfast.ports.records import one_record
from holdfast.schedules import firing
from holdfast.schedules.occurrence import Origin, RunStatus
from holdfast.schedules.series import SERIES, Status

HOUR = timedelta(hours=1)


async def hourly(place: Place, **words: str) -> None:
    await place.book.create(place.report.call(7), "every 1h", name="hourly", **words)  # type: ignore[arg-type]


async def statuses(place: Place) -> list[tuple[int, RunStatus, Origin]]:
    page = await place.book.runs("hourly")
    return [(run.at.hour, run.status, run.origin) for run in reversed(page.runs)]


async def test_a_run_that_meets_a_task_with_its_unique_key_is_told_of_as_skipped(
    place: Place,
) -> None:
    other = await place.app.client.submit(place.report.options(unique_key="one").call(1))
    call = place.report.options(unique_key="one").call(7)
    await place.book.create(call, "every 1h", name="hourly")
    place.clock.advance(HOUR)

    await place.fire()

    [run] = (await place.book.runs("hourly")).runs
    assert (run.status, run.task_id) == (RunStatus.SKIPPED, None)
    assert other.task_id in (run.reason or "")
    assert await place.tasks() == 1


async def test_a_schedule_is_fired_at_its_time_with_its_arguments(place: Place) -> None:
    await hourly(place)
    place.clock.advance(HOUR)

    await place.fire()
    await place.app.drain_async()

    [task] = (await place.app.client.list(tag="schedule=hourly")).tasks
    assert (task.state, task.value, task.lock) == (State.COMPLETED, "for 7", "7")
    [run] = (await place.book.runs("hourly")).runs
    assert (run.at, run.task_id, run.lateness) == (NOON + HOUR, task.id, 1.0)


async def test_of_many_who_fire_at_once_one_does(place: Place) -> None:
    for n in range(50):
        await place.book.create(place.report.call(n), "every 1h", name=f"s{n}")
    place.clock.advance(HOUR)

    await asyncio.gather(*(place.fire() for _ in range(5)))

    assert await place.tasks() == 50


async def test_new_arguments_bring_new_locks(place: Place) -> None:
    await hourly(place)

    changed = await place.book.update("hourly", arguments={"user": 8})

    assert (changed.template.payload, changed.template.lock) == (b'{"user":8}', "8")
    assert changed.edited


async def test_a_callback_is_told_of_runs_whoever_fires_them(place: Place) -> None:
    call = place.report.options(callback="https://example.org/").call(7)
    await place.book.create(call, "every 1h", name="hourly", overlap="allow")
    place.clock.advance(2 * HOUR)

    await place.book.trigger("hourly")
    await place.book.backfill("hourly", NOON, NOON + HOUR + HOUR / 2)
    await place.fire()

    assert await place.tasks() == 8  # here and at 12, 13 and 14 o'clock, each with its notice


async def test_a_backfill_leaves_out_what_was_fired_under_an_earlier_version(place: Place) -> None:
    await hourly(place)
    place.clock.advance(HOUR)
    await place.fire()
    await place.book.update("hourly", title="another version")
    await place.book.pause("hourly")
    place.clock.advance(2 * HOUR)

    ids = await place.book.backfill("hourly", NOON, NOON + 5 * HOUR)

    assert len(ids) == 3
    assert await statuses(place) == [
        (12, RunStatus.FIRED, Origin.BACKFILL),
        (13, RunStatus.FIRED, Origin.SCHEDULE),
        (14, RunStatus.FIRED, Origin.BACKFILL),
        (15, RunStatus.FIRED, Origin.BACKFILL),
    ]


async def test_two_backfills_at_once_run_each_once(place: Place) -> None:
    await hourly(place)
    place.clock.advance(5 * HOUR)

    answers = await asyncio.gather(
        *(place.book.backfill("hourly", NOON, NOON + 4 * HOUR) for _ in range(4))
    )

    assert sum(map(len, answers)) == 4
    assert await place.tasks() == 4


async def test_what_a_backfill_has_run_is_not_fired_again_and_the_series_goes_on(
    place: Place,
) -> None:
    """Nobody was there; somebody ran what was missing by hand; then the workers came."""
    await hourly(place)
    place.clock.advance(2 * HOUR)
    await place.book.backfill("hourly", NOON + HOUR, NOON + 3 * HOUR)

    await place.fire()

    series = await place.book.get("hourly")
    assert series is not None
    assert series.next_at == NOON + 3 * HOUR
    assert await place.tasks() == 2
    assert await statuses(place) == [
        (13, RunStatus.FIRED, Origin.BACKFILL),
        (14, RunStatus.FIRED, Origin.BACKFILL),
    ]


async def test_an_edit_while_it_is_fired_wins(place: Place) -> None:
    await hourly(place)
    place.clock.advance(HOUR)
    store = place.app.client.store
    taken = await store.take_due(SERIES, limit=10, lease=30.0)
    await place.book.update("hourly", rule="every 2h")

    firer = firing.Firer(store, place.app.client.dispatcher, place.app.settings)
    await firer._fire(taken.records)

    assert await place.tasks() == 0
    series = await place.book.get("hourly")
    assert series is not None
    assert series.next_at == NOON + 2 * HOUR


async def test_who_needs_long_writes_in_between_and_leaves_the_rest(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "WRITE_AFTER", -1.0)
    monkeypatch.setattr(firing, "GIVE_UP_AFTER", -1.0)
    for n in range(3):
        await place.book.create(place.report.call(n), "every 1h", name=f"s{n}")
    place.clock.advance(HOUR)

    fired = []
    for _ in range(3):
        await place.fire()
        fired.append(await place.tasks())
        place.clock.advance(firing.LEASE)

    assert fired == [1, 2, 3]


async def test_a_zone_that_is_gone_fails_one_schedule_visibly_and_can_be_mended(
    place: Place,
) -> None:
    await hourly(place)
    await place.book.create(place.report.call(1), "0 14 * * *", name="lost", tz="Europe/Berlin")
    store = place.app.client.store
    record = await one_record(store, SERIES, "lost")
    assert record is not None
    document = record.document.replace("Europe/Berlin", "Europe/Atlantis")
    put = Put(SERIES, "lost", document, record.version, sort="lost", due_at=record.due_at)
    await store.commit(Changes("test", records=[put]))
    place.clock.advance(HOUR)

    await place.fire()

    assert await place.tasks() == 1
    by_name = {each.id: each for each in (await place.book.list()).schedules}
    assert by_name["lost"].status is Status.FAILED
    assert "Europe/Atlantis" in (by_name["lost"].note or "")
    mended = await place.book.update("lost", tz="Europe/Paris")
    assert mended.status is Status.ACTIVE
    assert mended.rule.tz == "Europe/Paris"


async def test_a_pause_needs_a_time_to_come_with_an_offset(place: Place) -> None:
    await hourly(place)

    with pytest.raises(InvalidOption, match="until: expected a time to come"):
        await place.book.pause("hourly", until=NOON)
    with pytest.raises(InvalidOption, match="until: expected a time with an offset"):
        await place.book.pause("hourly", until=NOON.replace(tzinfo=None))


async def test_what_has_no_run_to_come_cannot_be_resumed(place: Place) -> None:
    await place.book.create(place.report.call(1), "2026-03-02T13:00", name="once")
    place.clock.advance(HOUR)
    await place.fire()

    with pytest.raises(InvalidOption, match="expected a run to come"):
        await place.book.resume("once")


async def test_a_schedule_that_is_not_there_is_named(place: Place) -> None:
    with pytest.raises(ScheduleNotFound, match="no schedule 'x'"):
        await place.book.skip("x")
