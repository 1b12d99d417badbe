"""The maintenance that every process may do: beside its work, or, like a server, instead of any."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from holdfast.core.task import WorkerId
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.settings import Settings
from holdfast.worker.maintenance.abandoner import Abandoner
from holdfast.worker.maintenance.loop import Agent, keep_ticking
from holdfast.worker.maintenance.pruner import Pruner
from holdfast.worker.maintenance.rescuer import Rescuer


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
    ]


async def maintain(
    store: Store, dispatcher: Dispatcher, settings: Settings, *, more: Sequence[Agent] = ()
) -> None:
    """Let them, and whoever else is given, do their rounds until cancelled."""
    agents = [*maintenance_agents(store, dispatcher, settings), *more]
    await asyncio.gather(*(keep_ticking(agent) for agent in agents))
