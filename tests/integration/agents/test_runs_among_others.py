"""Runs, and what they have used, are found beside any number of tasks that nobody scheduled."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Holdfast
from holdfast.agents import executions, executions_of
from holdfast.core.query import TaskFilter
from holdfast.core.task import Task

PLAIN = 600


@pytest.fixture(autouse=True)
async def runs(app: Holdfast) -> list[str]:
    """Three runs, oldest first, and behind them many tasks that are none."""

    @app.task(name="answer")
    async def answer(ctx: Context) -> None:
        ctx.cost(2, tokens_in=300)

    for name in ("first", "second"):
        await app.schedules.create_async(answer.call(), "0 9 * * *", name=name, owner=name)
    made = [await app.schedules.trigger_async(name) for name in ("first", "second", "first")]
    await app.submit_many_async([answer.call() for _ in range(PLAIN)])
    await app.run_worker(burst=True)
    return list(map(str, made))


async def test_the_runs_are_added_up_and_nothing_else_is_read(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = app.client.store, list[Task]()
    list_of = store.list

    async def listed(which: TaskFilter, **words: Any) -> Any:
        page = await list_of(which, **words)
        read.extend(page.tasks)
        return page

    monkeypatch.setattr(store, "list", listed)

    found = await app.usage_async(by="schedule")

    assert (found.totals.runs, found.totals.tokens_in) == (3, 900)
    assert [(row.key, row.totals.runs) for row in found.rows] == [("first", 2), ("second", 1)]
    assert len(read) == 3


async def test_the_newest_executions_are_found_behind_them(
    app: Holdfast, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "MOST_STEPS", 2)

    page = await app.executions.list_async(limit=2)
    rest = await app.executions.list_async(limit=2, after=page.next)
    of_second = await app.executions.list_async(owner="second", status="success")

    assert [one.id for one in page.executions] == [runs[2], runs[1]]
    assert [one.id for one in rest.executions] == [runs[0]]
    assert rest.next is None
    assert [one.id for one in of_second.executions] == [runs[1]]


async def test_of_very_many_runs_a_page_may_be_short_and_leads_on(
    app: Holdfast, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "MOST_STEPS", 2)
    monkeypatch.setattr(executions_of, "MOST_PAGES", 0)
    found, after = list[str](), None

    for _ in range(PLAIN):
        page = await app.executions.list_async(limit=100, after=after)
        found += [one.id for one in page.executions]
        after = page.next
        if after is None:
            break

    assert found == runs[::-1]
