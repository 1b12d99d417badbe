"""Schedules without a resident worker: a timer calls when one is due, and the call fires it.

Every schedule has a wake-up of its own (`schedule:<name>`), armed whenever it changes and after
each call. A call fires whatever is due, so a doubled or a stale one does no harm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from holdfast.companions import firer_of
from holdfast.core.record import Record
from holdfast.errors import InvalidOption
from holdfast.schedules.series import SERIES, load_series
from holdfast.timers.arming import Wanted

if TYPE_CHECKING:
    from holdfast.app import Holdfast

KIND: Final = "schedule"
PAGE: Final = 1000


class ScheduleTimers:
    """Arms and answers the wake-ups of one app's schedules."""

    def __init__(self, app: Holdfast) -> None:
        self._app = app

    async def fire(self, key: str) -> None:
        """Fire what is due, and arm the next run of this one."""
        client = await self._app.verbs()
        firer = firer_of(
            client.store,
            client.dispatcher,
            self._app.settings,
            stored=self._app.registry.middleware.stored,
        )
        await firer.round()
        name = key.partition(":")[2]
        series = await client.schedules.get(name)
        await self.changed(name, None if series is None else series.due_at)

    async def changed(self, name: str, due_at: datetime | None) -> None:
        """Be called when this one is due, or not any more."""
        key = f"{KIND}:{name}"
        if due_at is None:
            await self._app.wake_ups.cancel(key)
        else:
            await self._app.wake_ups.arm(key, due_at)

    async def find(self) -> AsyncIterator[Wanted]:
        """All schedules that are due some time."""
        store = (await self._app.verbs()).store
        after: Record | None = None
        while page := await store.records(SERIES, limit=PAGE, after=after):
            for record in page:
                try:
                    due_at = load_series(record).due_at
                except InvalidOption:  # it cannot be read any more, and says so itself
                    continue
                if due_at is not None:
                    yield Wanted(f"{KIND}:{record.key}", due_at)
            after = page[-1]


def wake_schedules(app: Holdfast) -> None:
    """Have the schedules of this app fired by timers, too."""
    timers = ScheduleTimers(app)
    app.wake_ups.on(KIND, timers.fire, timers.find)
    app.registry.schedule_changed.append(timers.changed)
