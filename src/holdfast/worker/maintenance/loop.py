"""How a maintenance loop is kept going: one bounded round, a rest, and again.

The loops hold no policy and elect no leader. Any number of processes may run them at once; every
write they make is one that only one of them can win.
"""

from __future__ import annotations

import asyncio
import random
from typing import Protocol

from holdfast.errors import StoreUnavailable
from holdfast.logs import EventLog, trace_of
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
