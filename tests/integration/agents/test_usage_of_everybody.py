"""What everybody's runs have used is found beside any number of tasks that nobody scheduled."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Holdfast
from holdfast.core.query import TaskFilter
from holdfast.core.task import Task

PLAIN = 600


async def test_the_runs_are_added_up_and_nothing_else_is_read(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(name="answer")
    async def answer(ctx: Context) -> None:
        ctx.cost(2, tokens_in=300)

    for name in ("first", "second"):
        await app.schedules.create_async(answer.call(), "0 9 * * *", name=name, owner=name)
        await app.schedules.trigger_async(name)
    await app.schedules.trigger_async("first")
    await app.submit_many_async([answer.call() for _ in range(PLAIN)])
    await app.run_worker(burst=True)
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
