"""The client's verbs about events, what a sleeping task waits for, and what steps recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from holdfast.core.events import Emitted, event_id, waiter_of
from holdfast.core.steps import WAIT
from holdfast.core.task import Cause, Json, State, Task
from holdfast.definitions.handle import TaskRef
from holdfast.definitions.readers import read_event, read_event_key
from holdfast.definitions.step_codec import plain_json
from holdfast.definitions.step_verbs import EventKey
from holdfast.filters import read_id
from holdfast.flow.events import Events, waits_for
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.settings import Settings

log = EventLog("holdfast.client")


class EventVerbs:
    """What a client can do with events."""

    store: Store
    dispatcher: Dispatcher
    settings: Settings

    async def emit(self, event: str, key: EventKey, payload: Any = None) -> Emitted:
        """Say that something has happened: `emit("approved", 17, {"by": "ada"})`. Tasks that wait
        for this event, or will, go on with the payload. Of several emits of one event and key the
        first counts, for as long as it is kept (`retention`). When this returns it is durable.
        """
        one = event_id(read_event("event", event), read_event_key("key", key))
        value = plain_json("payload", payload, self.settings.max_payload)
        said = await Events(self.store, self.dispatcher.wake, self.settings).emit(one, value)
        log.info(
            "event.emitted",
            event_name=said.event,
            key=said.key,
            first=said.first,
            woken=said.woken,
        )
        return said

    async def steps(self, task_id: TaskRef) -> Mapping[str, Json]:
        """What the durable steps of a task came to, in the order in which they were recorded.

        Sleeps and waits are among them, under names that no step can have (`core.steps`).
        """
        journal = await self.store.journal(read_id(task_id))
        return {name: orjson.loads(entry)[2] for name, entry in journal.items()}

    async def _waits_for(self, task: Task) -> str | None:
        """The event that a sleeping task waits for, if it does."""
        if task.cause is not Cause.RESUMED or task.state is not State.QUEUED:
            return None
        found = await waits_for(self.store, task.id)
        if found is None:
            return None
        _, event = waiter_of(found)
        return None if WAIT + event in await self.store.journal(task.id) else event
