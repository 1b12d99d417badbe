"""Schedules with workers at work, on every store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.kit.at_work import Working

from holdfast import Holdfast, State
from holdfast.core.flow import flow_of
from holdfast.core.task import Task
from holdfast.errors import InvalidOption, ScheduleNotFound
from holdfast.recurrence import Schedule
from holdfast.schedules.occurrence import Origin, RunStatus
from holdfast.schedules.series import Status
from holdfast.testing.eventually import eventually


async def tasks_of(app: Holdfast, name: str) -> list[Task]:
    return list((await app.list_async(tag=f"schedule={name}", limit=100)).tasks)


async def test_a_created_schedule_submits_its_task_for_each_run(
    app: Holdfast, working: Working
) -> None:
    seen: list[int] = []

    @app.task(name="say")
    async def say(x: int) -> int:
        seen.append(x)
        return x

    made = await app.schedules.create_async(say.call(7), "every 1s", name="seven")
    assert made.next_at is not None
    async with working(2):
        await eventually(lambda: len(seen) >= 2)

    tasks = await tasks_of(app, "seven")
    runs = [flow.run for task in tasks if (flow := flow_of(task.payload)) is not None]
    assert {run.schedule for run in runs if run} == {"seven"}
    assert len({run.at for run in runs if run}) == len(tasks)
    told = (await app.schedules.runs_async("seven")).runs
    fired = [one for one in told if one.status is RunStatus.FIRED]
    assert {one.task_id for one in fired} == {task.id for task in tasks}
    assert all(one.lateness is not None and one.lateness >= 0 for one in fired)


async def test_a_declared_schedule_comes_with_the_worker_and_goes_with_its_declaration(
    app: Holdfast, working: Working
) -> None:
    ran = asyncio.Event()

    @app.schedule("every 1s", arguments={"x": 3}, title="Tick")
    @app.task(name="tick")
    async def tick(x: int) -> None:
        assert x == 3
        ran.set()

    async with working():
        await eventually(ran.is_set)
    found = await app.schedules.get_async("tick")
    assert found is not None
    assert (found.about.title, found.status, found.declared is not None) == (
        "Tick", Status.ACTIVE, True,
    )  # fmt: skip

    del app.registry.schedules["tick"]
    assert (await app.schedules.reconcile_async()).removed == ["tick"]
    assert await app.schedules.get_async("tick") is None


async def test_runs_that_queue_go_one_after_another_and_a_skipped_one_is_told_of(
    app: Holdfast, working: Working
) -> None:
    running, most = 0, 0

    @app.task(name="slow")
    async def slow() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1.5)
        running -= 1

    for policy in ("skip", "queue_all"):
        await app.schedules.create_async(slow.call(), "every 1s", name=policy, overlap=policy)
    async with working(concurrency=8):
        await eventually(lambda: told(app, "skip", RunStatus.SKIPPED), within=20)
        await eventually(lambda: told(app, "queue_all", RunStatus.FIRED, 3), within=20)
        for policy in ("skip", "queue_all"):
            await app.schedules.delete_async(policy)
        await eventually(lambda: idle(app), within=30)

    assert most == 2  # one of each
    assert {task.state for task in await tasks_of(app, "queue_all")} == {State.COMPLETED}


async def told(app: Holdfast, name: str, status: RunStatus, number: int = 1) -> bool:
    runs = (await app.schedules.runs_async(name)).runs
    return sum(one.status is status for one in runs) >= number


async def idle(app: Holdfast) -> bool:
    return not await app.count_async(state=["queued", "running", "retrying", "blocked"], limit=1)


async def test_a_new_run_cancels_the_one_that_goes_on(app: Holdfast, working: Working) -> None:
    @app.task(name="endless", timeout="none")
    async def endless() -> None:
        await asyncio.sleep(600)

    await app.schedules.create_async(endless.call(), "every 1s", name="e", overlap="cancel_running")
    async with working(concurrency=4):

        async def one_was_stopped() -> bool:
            return any(task.state is State.CANCELLED for task in await tasks_of(app, "e"))

        await eventually(one_was_stopped, within=30)
        await app.schedules.delete_async("e")
        await app.cancel_many_async(tag="schedule=e")
        await eventually(lambda: idle(app), within=30)


async def test_it_pauses_after_failures_and_goes_on_when_resumed(
    app: Holdfast, working: Working
) -> None:
    @app.task(name="bad", max_retries=0)
    async def bad() -> None:
        raise ValueError("no")

    await app.schedules.create_async(bad.call(), "every 1s", name="b", pause_after_failures=2)

    async def is_paused() -> bool:
        found = await app.schedules.get_async("b")
        return found is not None and found.status is Status.PAUSED

    async with working():
        await eventually(is_paused, within=30)
    assert len(await tasks_of(app, "b")) == 2

    resumed = await app.schedules.resume_async("b")
    assert (resumed.status, resumed.failures) == (Status.ACTIVE, 0)


async def test_what_people_do_with_a_schedule(app: Holdfast) -> None:
    @app.task(name="report")
    async def report(user: int) -> None: ...

    schedules, start = app.schedules, datetime.now(UTC) - timedelta(days=3)
    made = await schedules.create_async(
        "report", Schedule.rrule("FREQ=HOURLY", dtstart=start, tz="Europe/Berlin"),
        name="r", arguments={"user": 7}, owner="ann", title="Report", channels=["inbox"],
    )  # fmt: skip

    task = (await app.list_async(ids=[await schedules.trigger_async("r")])).tasks[0]
    assert (task.owner, task.arguments) == ("ann", {"user": 7})
    assert (await schedules.get_async("r")).next_at == made.next_at  # type: ignore[union-attr]

    filled = await schedules.backfill_async("r", start, start + timedelta(hours=5))
    assert len(filled) == 5
    assert await schedules.backfill_async("r", start, start + timedelta(hours=5)) == []
    origins = {one.origin for one in (await schedules.runs_async("r")).runs}
    assert origins == {Origin.MANUAL, Origin.BACKFILL}

    assert (await schedules.skip_async("r")).skips == (made.next_at,)
    assert len((await schedules.skip_async("r")).skips) == 2
    paused = await schedules.pause_async("r", note="holidays")
    assert (paused.status, paused.note, paused.due_at) == (Status.PAUSED, "holidays", None)
    assert (await schedules.resume_async("r")).status is Status.ACTIVE
    moved = await schedules.update_async("r", tz="Asia/Tokyo", arguments={"user": 8}, title="R")
    assert (moved.version, moved.rule.tz, moved.about.title, moved.about.owner) == (
        2, "Asia/Tokyo", "R", "ann",
    )  # fmt: skip
    page = await schedules.list_async(owner="ann")
    assert [one.id for one in page.schedules] == ["r"]
    assert (await schedules.list_async(owner="bob")).schedules == []
    assert await schedules.delete_async("r")
    assert not await schedules.delete_async("r")


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("tz", {"rule": "0 9 * * *", "tz": "Europe/Berln"}),
        ("cron", {"rule": "61 9 * * *"}),
        ("rrule", {"rule": "FREQ=SOMETIMES"}),
        ("rrule", {"rule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}),
        ("at", {"rule": "2020-01-01T00:00"}),
        ("rule", {"rule": 7}),
        ("overlap", {"rule": "every 1h", "overlap": "skp"}),
        ("catch_up_most", {"rule": "every 1h", "catch_up_most": 0}),
        ("titel", {"rule": "every 1h", "titel": "x"}),
        ("every", {"rule": "every 0.5s"}),
    ],
)
async def test_what_is_wrong_is_refused_by_name_and_nothing_is_stored(
    app: Holdfast, field: str, given: dict[str, object]
) -> None:
    @app.task(name="report")
    async def report() -> None: ...

    words = {name: value for name, value in given.items() if name != "rule"}
    with pytest.raises(InvalidOption) as refused:
        await app.schedules.create_async(report.call(), given["rule"], name="x", **words)  # type: ignore[arg-type]

    assert refused.value.option == field
    assert (await app.schedules.list_async()).schedules == []
    with pytest.raises(ScheduleNotFound):
        await app.schedules.pause_async("x")
