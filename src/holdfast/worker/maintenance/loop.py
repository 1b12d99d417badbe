"""The maintenance that every process may do, beside its work or, like a server, instead of any.

One bounded round, a rest, and again. The loops hold no policy and elect no leader. Any number of
processes may run them at once; every write they make is one that only one of them can win.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast.companions import firer_of
from holdfast.core.task import WorkerId
from holdfast.errors import StoreUnavailable
from holdfast.flow.coalescing import CoalescingSweeper
from holdfast.flow.events import EventKeeper
from holdfast.flow.tidying import Tidier
from holdfast.flow.trees import Trees
from holdfast.logs import EventLog, trace_of
from holdfast.metrics.keeping import CountsKeeper, CountsTaker, MinuteKeeper
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.schedules.firing import OccurrenceKeeper
from holdfast.settings import Settings
from holdfast.worker.maintenance.abandoner import Abandoner
from holdfast.worker.maintenance.forgetter import Pruner
from holdfast.worker.maintenance.rescuer import Rescuer
from holdfast.worker.outage import Outage

log = EventLog("holdfast.worker")

AFTER_A_FAULT = 5.0


class Agent(Protocol):
    """Does one kind of chore."""

    async def tick(self) -> float:
        """Do one bounded round; answer how many seconds to rest."""
        ...


async def keep_ticking(agent: Agent, *, jitter: float = 0.1) -> None:
    """Let the agent tick until cancelled. A fault costs a rest, never the loop."""
    name = type(agent).__name__.lower()
    outage = Outage(name)
    while True:
        try:
            rest = await agent.tick()
            outage.over()
        except StoreUnavailable as error:
            rest = outage.delay(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next round is due
            log.error("maintenance.failed", agent=name, exception=trace_of(error))
            rest = AFTER_A_FAULT
        await asyncio.sleep(rest * random.uniform(1 - jitter, 1 + jitter))  # noqa: S311 - no secret


def maintenance_agents(
    store: Store,
    dispatcher: Dispatcher,
    settings: Settings,
    *,
    own_id: Callable[[], WorkerId | None] = lambda: None,
) -> list[Agent]:
    """Everybody who keeps a store in order. `own_id` is the worker that cannot be lost: us."""
    return [
        Rescuer(store, dispatcher, settings, own_id=own_id),
        Pruner(store, settings),
        Abandoner(store, settings),
        CoalescingSweeper(store),
        Tidier(store, settings),
        EventKeeper(store, dispatcher.wake, settings),
        firer_of(store, dispatcher, settings),
        OccurrenceKeeper(store),
        CountsTaker(store),
        MinuteKeeper(store),
    ]


async def maintain(
    store: Store, dispatcher: Dispatcher, settings: Settings, *, more: Sequence[Agent] = ()
) -> None:
    """Let them, and whoever else is given, do their rounds until cancelled."""
    chores = Trees(store, dispatcher, settings).chores
    counts = CountsKeeper(store)
    agents = [*maintenance_agents(store, dispatcher, settings), chores, counts, *more]
    try:
        await asyncio.gather(*(keep_ticking(agent) for agent in agents))
    finally:
        await counts.close()
