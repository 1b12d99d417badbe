"""Schedules that code declares, and what a deploy makes of them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.unit.schedules.conftest import Place

from holdfast.definitions.declaration import Declaration
from holdfast.errors import InvalidArguments, InvalidOption
from holdfast.schedules.declared import Reconciled, reconcile
from holdfast.schedules.series import Series, Status

HERE = __name__


def declared(name: str = "nightly", rule: object = "0 2 * * *", **changes: object) -> Declaration:
    said = Declaration(name=name, task="report", rule=rule, module=HERE)
    return replace(said, **changes)  # type: ignore[arg-type]  # tests say what fits


async def one(place: Place, name: str = "nightly") -> Series:
    series = await place.book.get(name)
    assert series is not None
    return series


async def test_the_first_deploy_adds_and_the_second_has_nothing_to_do(place: Place) -> None:
    first = await reconcile(place.book, [declared(), declared("hourly", "every 1h")])
    second = await reconcile(place.book, [declared(), declared("hourly", "every 1h")])

    assert first == Reconciled(added=["nightly", "hourly"])
    assert second == Reconciled()
    assert (await one(place)).version == 1


async def test_the_decorator_declares_under_the_tasks_name_and_leaves_the_task_as_it_is(
    place: Place,
) -> None:
    decorated = place.app.schedule("0 9 * * 1-5", tz="Europe/Berlin")(place.report)

    done = await place.app.schedules.reconcile_async()

    assert decorated is place.report
    assert done.added == ["report"]
    assert (await one(place, "report")).rule.tz == "Europe/Berlin"


async def test_a_changed_rule_goes_on_from_now_with_what_it_has_come_to(place: Place) -> None:
    await reconcile(place.book, [declared(rule="every 1h")])
    place.clock.advance(3600)
    await place.fire()
    before = await one(place)

    done = await reconcile(place.book, [declared(rule="every 2h")])

    after = await one(place)
    assert done == Reconciled(changed=["nightly"])
    assert (after.version, after.runs, after.last_at) == (2, 1, before.last_at)
    assert after.open == before.open
    assert after.next_at == datetime(2026, 3, 2, 14, tzinfo=UTC)
    assert after.created_at == before.created_at


async def test_a_change_beside_the_rule_keeps_the_run_to_come_skips_and_a_pause(
    place: Place,
) -> None:
    await reconcile(place.book, [declared()])
    skipped = await place.book.skip("nightly")
    await place.book.pause("nightly", note="on holiday")

    done = await reconcile(place.book, [declared(words={"title": "Nightly report"})])

    after = await one(place)
    assert done.changed == ["nightly"]
    assert after.about.title == "Nightly report"
    assert (after.next_at, after.skips) == (skipped.next_at, skipped.skips)
    assert (after.status, after.note) == (Status.PAUSED, "on holiday")


async def test_what_is_not_declared_any_more_goes(place: Place) -> None:
    await reconcile(place.book, [declared(), declared("hourly", "every 1h")])

    done = await reconcile(place.book, [declared()])

    assert done == Reconciled(removed=["hourly"])
    assert await place.book.get("hourly") is None


async def test_what_people_have_edited_stays_until_somebody_forces_it(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await reconcile(place.book, [declared()])
    await place.book.update("nightly", rule="0 5 * * *")

    with caplog.at_level(logging.WARNING, "holdfast.schedules"):
        unchanged = await reconcile(place.book, [declared()])
        kept = await reconcile(place.book, [declared(rule="0 3 * * *")])

    assert unchanged == Reconciled()
    assert kept == Reconciled(kept=["nightly"])
    assert (await one(place)).rule.line == "0 5 * * *"
    assert "schedule.kept_as_edited" in caplog.text

    forced = await reconcile(place.book, [declared(rule="0 3 * * *")], force=True)

    assert forced == Reconciled(changed=["nightly"])
    assert (await one(place)).rule.line == "0 3 * * *"
    assert not (await one(place)).edited


async def test_an_edited_one_that_is_not_declared_any_more_stays_too(place: Place) -> None:
    await reconcile(place.book, [declared(), declared("other")])
    await place.book.update("nightly", title="mine")

    kept = await reconcile(place.book, [declared("other")])
    forced = await reconcile(place.book, [declared("other")], force=True)

    assert kept == Reconciled(kept=["nightly"])
    assert forced == Reconciled(removed=["nightly"])


async def test_one_that_somebody_created_under_the_name_is_not_taken_over(place: Place) -> None:
    await place.book.create(place.report.call(1), "0 5 * * *", name="nightly")

    done = await reconcile(place.book, [declared()])

    assert done == Reconciled(kept=["nightly"])
    assert (await one(place)).rule.line == "0 5 * * *"


async def test_created_ones_are_never_removed(place: Place) -> None:
    await place.book.create(place.report.call(1), "0 5 * * *", name="by-hand")

    assert await reconcile(place.book, [], force=True) == Reconciled()


@pytest.mark.parametrize("module", ["elsewhere.tasks", "holdfast.schedules.book"])
async def test_those_of_other_apps_are_left_alone(place: Place, module: str) -> None:
    """Of another package, and of another module of this one that is still there."""
    await reconcile(place.book, [declared("theirs", module=module)])

    done = await reconcile(place.book, [declared(module="holdfast.schedules.declared")])

    assert done == Reconciled(added=["nightly"])
    assert await place.book.get("theirs") is not None


@pytest.mark.parametrize("module", ["holdfast.gone", "holdfast.gone.tasks"])
async def test_those_of_a_module_that_is_gone_are_removed(place: Place, module: str) -> None:
    await reconcile(place.book, [declared("old", module=module)])

    done = await reconcile(place.book, [declared(module="holdfast.schedules.declared")])

    assert done == Reconciled(added=["nightly"], removed=["old"])


async def test_processes_that_start_at_once_add_change_and_remove_once(place: Place) -> None:
    async def all_at_once(*declarations: Declaration) -> list[Reconciled]:
        return await asyncio.gather(*(reconcile(place.book, declarations) for _ in range(8)))

    added = await all_at_once(declared(), declared("old"))
    changed = await all_at_once(declared(rule="0 4 * * *"))

    assert sorted(name for done in added for name in done.added) == ["nightly", "old"]
    assert [name for done in changed for name in done.changed] == ["nightly"]
    assert [name for done in changed for name in done.removed] == ["old"]
    assert all(done.kept == [] for done in [*added, *changed])
    assert (await one(place)).version == 2


async def test_a_rule_that_is_over_is_declared_as_completed(place: Place) -> None:
    await reconcile(place.book, [declared(rule="2026-01-01T09:00")])

    assert (await one(place)).status is Status.COMPLETED


async def test_a_declaration_that_cannot_be_is_refused_and_nothing_is_stored(place: Place) -> None:
    floor = replace(place.book.settings, schedule_floor=60.0)
    strict = replace(place.book, settings=floor)
    with pytest.raises(InvalidOption, match="schedule_floor"):
        await reconcile(strict, [declared(), declared("often", "every 1s")])
    with pytest.raises(InvalidArguments):
        await reconcile(place.book, [declared(), declared("x", arguments={"user": "seven"})])

    assert (await place.book.list()).schedules == []


def test_two_schedules_of_a_task_need_two_names(place: Place) -> None:
    place.app.schedule("0 9 * * *")(place.report)
    place.app.schedule("0 17 * * *", name="evening")(place.report)

    with pytest.raises(InvalidOption, match="there is a schedule 'report' in the code already"):
        place.app.schedule("0 12 * * *")(place.report)
