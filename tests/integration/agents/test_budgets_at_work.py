"""Budgets that hold however many runs start at once, on every store."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from tests.integration.agents.due import due_again, due_now, fire, fired, schedule
from tests.kit.at_work import Working

from holdfast import Context, Holdfast
from holdfast.agents.budget_records import load_ledger
from holdfast.agents.ledger import BudgetKeeper
from holdfast.core.record import Changes, Record
from holdfast.core.task import NewTask, TaskId
from holdfast.core.usage import Totals
from holdfast.errors import BudgetExceeded, ScheduleNotFound
from holdfast.ports.records import one_record
from holdfast.schedules import firing
from holdfast.schedules.budgeting import LEDGER, OverBudget, Wanted
from holdfast.schedules.firing import Firer
from holdfast.schedules.occurrence import RunStatus
from holdfast.schedules.series import Series, Status
from holdfast.testing.eventually import eventually


@pytest.fixture(autouse=True)
def answer(app: Holdfast) -> None:
    @app.task(name="answer", max_retries=0)
    async def answer(ctx: Context) -> dict[str, object]:
        ctx.cost(2, tokens_in=300, tokens_out=100)
        return {"content": "done", "usage": {"cost": 0.25}}


@pytest.mark.parametrize("at_a_time", [3, 200])
async def test_of_ten_due_at_once_three_run_and_the_others_are_paused(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    monkeypatch.setattr(firing, "AT_A_TIME", at_a_time)
    await app.budgets.set_async("owner:ann", day={"runs": 3})
    names = await due_now(app, 10)

    await fire(app, firers=2)

    assert len(await fired(app)) == 3
    found = [await schedule(app, name) for name in names]
    assert Counter(each.status for each in found) == {Status.ACTIVE: 3, Status.PAUSED: 7}
    paused = [each for each in found if each.status is Status.PAUSED]
    midnight = (datetime.now(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0)
    for each in paused:
        assert each.paused_until is not None
        assert abs(midnight - each.paused_until) < timedelta(seconds=1)
        assert each.note is not None
        assert each.note.startswith("paused: the budget of owner ann has no room")
        (run,) = (await app.schedules.runs_async(each.id)).runs
        assert run.status is RunStatus.SKIPPED
        assert run.reason is not None
        assert "of 3 runs" in run.reason
        assert run.task_id is None


async def test_another_owners_runs_are_not_held_up(app: Holdfast) -> None:
    await app.budgets.set_async("owner:ann", day={"runs": 0})
    names = await due_now(app, 2, owner="bob")

    await fire(app)

    assert len(await fired(app)) == 2
    assert (await schedule(app, names[0])).status is Status.ACTIVE


async def test_what_runs_really_used_is_what_counts(app: Holdfast, working: Working) -> None:
    limits = {
        "ann": ({"tokens": 1000}, 2), "bob": ({"cost": 1.0}, 4),
        "cem": ({"units": 7}, 3), "dan": ({"runs": 5}, 5),
    }  # fmt: skip

    async def use_up(owner: str, name: str, most: int) -> None:
        for number in range(most):
            if number:
                await due_again(app, name)
            await eventually(partial(_completed, app, number + 1, owner))
        await due_again(app, name)
        await eventually(lambda: _is_paused(app, name))

        assert len([task for task in await fired(app) if task.owner == owner]) == most
        state = await app.budgets.get_async(f"owner:{owner}")
        assert state is not None
        assert state.month.used == Totals(
            runs=most, units=2.0 * most, tokens_in=300 * most, tokens_out=100 * most,
            cost=0.25 * most,
        )  # fmt: skip
        assert state.month.reserved == Totals()

    names: dict[str, str] = {}
    for owner, (limit, _) in limits.items():
        await app.budgets.set_async(f"owner:{owner}", month=limit)  # type: ignore[arg-type] # limits
        (names[owner],) = await due_now(app, 1, owner=owner)
    async with working():
        await asyncio.gather(*(use_up(one, names[one], most) for one, (_, most) in limits.items()))


async def _completed(app: Holdfast, number: int, owner: str = "ann") -> bool:
    return await app.count_async(name="answer", owner=owner, state="completed") >= number


async def _is_paused(app: Holdfast, name: str) -> bool:
    return (await schedule(app, name)).status is Status.PAUSED


async def test_a_raised_budget_lets_the_schedule_be_resumed_at_once(app: Holdfast) -> None:
    (name,) = await due_now(app, 1)
    await app.budgets.set_async(f"schedule:{name}", day={"runs": 0})
    await fire(app)
    assert (await schedule(app, name)).status is Status.PAUSED

    await app.budgets.set_async(f"schedule:{name}", day={"runs": 1})
    await app.schedules.resume_async(name)
    await due_again(app, name)
    await fire(app)

    assert len(await fired(app)) == 1
    assert (await schedule(app, name)).note is None


async def test_a_run_asked_for_by_hand_is_refused_and_names_the_budget(app: Holdfast) -> None:
    (name,) = await due_now(app, 1)
    await app.budgets.set_async("owner:ann", day={"runs": 2})

    many = [app.schedules.trigger_async(name) for _ in range(5)]
    answers = await asyncio.gather(*many, return_exceptions=True)

    refused = [each for each in answers if isinstance(each, BudgetExceeded)]
    assert len(refused) == 3
    assert {each.budget for each in refused} == {"owner:ann"}
    assert len(await fired(app)) == 2
    now = await app.client.now()
    with pytest.raises(BudgetExceeded, match="Raise the budget 'owner:ann'"):
        await app.schedules.backfill_async(name, now - timedelta(hours=5), now)
    assert len(await fired(app)) == 2


async def test_a_budget_that_is_new_counts_what_this_month_has_used(
    app: Holdfast, working: Working
) -> None:
    await due_now(app, 2)
    async with working():
        await eventually(lambda: _completed(app, 2))

    state = await app.budgets.set_async("owner:ann", day={"runs": 3})

    assert state.day.used.runs == state.month.used.runs == 2
    assert state.day.used.tokens == 800


async def test_a_day_that_is_over_is_kept_and_the_next_one_begins_anew(app: Holdfast) -> None:
    (name,) = await due_now(app, 1)
    await app.budgets.set_async("owner:ann", day={"runs": 1})
    await app.schedules.trigger_async(name)
    client = app.client
    later = await client.now() + timedelta(days=1)
    series = await schedule(app, name)

    # As whoever fires tomorrow does.
    keeper = BudgetKeeper(client.store)
    wanted = [Wanted(series, [TaskId("01900000-0000-7000-8000-000000000000")])]
    reserved = await keeper.reserve(wanted, later)
    assert reserved is not None
    assert reserved.verdicts[0].over is None
    await client.store.commit(Changes("tomorrow", records=reserved.records))

    record = await one_record(client.store, LEDGER, "owner:ann")
    assert record is not None
    assert f'"day":"{later.date()}"' in record.document
    assert len(_open(record)) == 2  # today's run has not ended: it is still reserved
    again = await keeper.reserve(wanted, later)
    assert again is not None
    assert again.verdicts[0].over is not None


def _open(record: Record) -> list[str]:
    return list(load_ledger(record).open)


async def test_people_are_told_in_the_commit_that_pauses(app: Holdfast) -> None:
    client = await app.verbs()

    def notice(series: Series, over: OverBudget) -> list[NewTask]:
        text = f'{{"says": "{series.id} waits until {over.until:%Y}"}}'
        return [NewTask(client.new_tasks([app.registry["answer"].call()])[0].id, "tell",
                        text.encode(), owner=series.about.owner)]  # fmt: skip

    await app.budgets.set_async("owner:ann", day={"runs": 1})
    await due_now(app, 3)
    keeper = BudgetKeeper(client.store, notice_tasks=notice)
    await Firer(client.store, client.dispatcher, app.settings, budgets=keeper).round()

    told = (await app.list_async(name="tell")).tasks
    assert [each.owner for each in told] == ["ann", "ann"]
    assert await app.count_async(name="answer") == 1


async def test_a_run_that_made_no_task_gives_its_reservation_back(app: Holdfast) -> None:
    @app.task(name="only", unique="one")
    async def only() -> None: ...

    await only.submit_async()
    await app.budgets.set_async("owner:ann", day={"runs": 1})
    (name,) = await due_now(app, 1, task="only")

    await fire(app)

    assert (await app.schedules.runs_async(name)).runs[0].status is RunStatus.SKIPPED
    state = await app.budgets.get_async("owner:ann")
    assert state is not None
    assert (state.day.used.runs, state.day.reserved.runs) == (0, 0)


async def test_usage_is_told_by_day_and_by_schedule_with_a_budget_and_without(
    app: Holdfast, working: Working
) -> None:
    one, two = await due_now(app, 2)
    async with working():
        await eventually(lambda: _completed(app, 2))
    await due_now(app, 1, owner="bob")

    for _ in range(2):
        report = await app.usage_async(owner="ann", by="schedule")
        assert report.totals == Totals(runs=2, units=4, tokens_in=600, tokens_out=200, cost=0.5)
        assert [(row.key, row.totals.runs) for row in report.rows] == [(one, 1), (two, 1)]
        (day,) = (await app.usage_async(owner="ann", by="day")).rows
        assert day.totals == report.totals
        await app.budgets.set_async("owner:ann")
    assert (await app.usage_async()).totals.runs == 2  # that of bob has not started
    assert (await app.usage_async(owner="eve")).totals == Totals()


async def test_budgets_are_listed_and_forgotten(app: Holdfast) -> None:
    for owner in ("ann", "bob", "eve"):
        await app.budgets.set_async(f"owner:{owner}", day={"runs": 1})
    with pytest.raises(ScheduleNotFound):
        await app.budgets.set_async("schedule:none", day={"runs": 1})

    page = await app.budgets.list_async(limit=2)
    assert [each.key for each in page.budgets] == ["owner:ann", "owner:bob"]
    rest = await app.budgets.list_async(limit=2, after=page.next or "")
    assert ([each.key for each in rest.budgets], rest.next) == (["owner:eve"], None)
    assert [each.key for each in (await app.budgets.list_async(owner="bob")).budgets] == [
        "owner:bob"
    ]

    assert await app.budgets.delete_async("owner:ann") is True
    assert await app.budgets.delete_async("owner:ann") is False
    assert await app.budgets.get_async("owner:ann") is None
