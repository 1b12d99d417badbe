"""Schedules that are due right now, and those who fire them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

from holdfast import Holdfast
from holdfast.agents.ledger import BudgetKeeper
from holdfast.core.task import Task
from holdfast.ports.records import one_record
from holdfast.schedules.firing import Firer
from holdfast.schedules.series import SERIES, Series, load_series

A_MOMENT: Final = timedelta(seconds=1)
"""A client reckons the store's clock in between, and may be ahead of it by a round trip."""


async def due_now(app: Holdfast, number: int, *, task: str = "answer", **words: Any) -> list[str]:
    """So many schedules of the owner ann, all of them due."""
    client = await app.verbs()
    now, book = await client.now(), client.schedules
    words = {"owner": "ann", **words}
    first = 1 + len((await book.list(limit=1000)).schedules)
    made = [
        book.made(
            book.template(task), "every 1h", tz="UTC", name=f"s{each:02}", now=now, words=words
        ).going_on(now - A_MOMENT)
        for each in range(first, first + number)
    ]
    await book.add(made)
    return [each.id for each in made]


async def due_again(app: Holdfast, name: str) -> None:
    """Have a schedule be due once more."""
    client = await app.verbs()
    record = await one_record(client.store, SERIES, name)
    assert record is not None
    series = load_series(record).going_on(await client.now() - A_MOMENT)
    await client.schedules.commit(series, series.put(record.version))


async def fire(app: Holdfast, firers: int = 1) -> None:
    """Fire what is due, several at once if wanted."""
    client = await app.verbs()
    made = [
        Firer(client.store, client.dispatcher, app.settings, budgets=BudgetKeeper(client.store))
        for _ in range(firers)
    ]
    await asyncio.gather(*(each.round() for each in made))


async def fired(app: Holdfast) -> list[Task]:
    return list((await app.list_async(name="answer", limit=1000)).tasks)


async def schedule(app: Holdfast, name: str) -> Series:
    found = await app.schedules.get_async(name)
    assert found is not None
    return found
