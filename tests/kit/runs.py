"""Runs of schedules with their deliveries, stored as whoever fires a schedule stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from holdfast import Holdfast
from holdfast.core.delivery import delivery_id
from holdfast.core.record import Changes
from holdfast.core.task import Priority, Task, TaskId
from holdfast.definitions.call import Call
from holdfast.schedules.deciding import Fire
from holdfast.schedules.deliveries import delivery_tasks
from holdfast.schedules.firing import Firer
from holdfast.schedules.occurrence import Origin


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was stored."""

    app: Holdfast
    id: TaskId
    channels: Sequence[str]

    async def delivery(self, channel: str) -> Task:
        return await self.app.get_async(delivery_id(self.id, channel))


async def fire(
    app: Holdfast, call: Call[Any], *channels: str, owner: str | None = "ann", **about: Any
) -> Run:
    """Store a run of a new schedule together with its deliveries."""
    client = await app.verbs()
    book, now = client.schedules, await client.store.now()
    words = {"owner": owner, "channels": channels, "title": "News", **about}
    series = book.made(
        book.template(call), "every 1h", tz=None, name=f"s-{uuid4().hex}", now=now, words=words
    )
    run = Firer(client.store, client.dispatcher, app.settings).task_of(
        series, Fire(now, Origin.SCHEDULE)
    )
    head_start = app.settings.aging.head_start(Priority.NORMAL)
    more = delivery_tasks(series, run, head_start=head_start)
    await client.store.commit(Changes(uuid4().hex, [run, *more]))
    return Run(app, run.id, channels)
