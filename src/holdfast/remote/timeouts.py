"""Ends attempts that outlive their timeout, though their worker beats: nobody here can stop them.

Every server process may run it. What this process handed out it knows by heart; what others did, or
it did itself before a restart, it finds by looking at what the workers over HTTP run. Before an
attempt is ended the store is asked whether it still runs: a result may have come in elsewhere.
"""

from __future__ import annotations

import time

from holdfast.core.attempt import Claim
from holdfast.core.fleet import ALIVE, HTTP
from holdfast.core.lifecycle import Outcome
from holdfast.engine.judging import Judge, out_of_time
from holdfast.ports.store import Store
from holdfast.remote.leases import Leases
from holdfast.remote.registrations import Registrations

EVERY = 0.5
LOOK_EVERY = 15.0
"""Seconds between looks at what the workers run."""
AT_A_TIME = 200


class TimeoutEnforcer:
    """A maintenance agent: `tick` does one round."""

    def __init__(
        self, store: Store, registrations: Registrations, leases: Leases, judge: Judge
    ) -> None:
        self._store = store
        self._registrations = registrations
        self._leases = leases
        self._judge = judge
        self._look_at = 0.0

    async def tick(self) -> float:
        """End what is overdue; now and then look at what there is."""
        if time.monotonic() >= self._look_at:
            await self.look()
            self._look_at = time.monotonic() + LOOK_EVERY
        overdue = self._leases.overdue()[:AT_A_TIME]
        claims = await self._leases.still_running(overdue)
        await self._leases.settle([(claim, self._timed_out(claim)) for claim in claims])
        return 0.0 if len(overdue) == AT_A_TIME else EVERY

    async def look(self) -> None:
        """Learn what every living worker runs."""
        alive = [
            worker.id
            for worker in await self._store.workers()
            if worker.kind == HTTP and worker.status in ALIVE
        ]
        self._registrations.keep(alive)
        self._leases.keep_workers(alive)
        for worker_id in alive:
            await self._leases.look_at(worker_id)

    def _timed_out(self, claim: Claim) -> Outcome:
        silent = f"; worker {claim.worker_id} had not said how it ended, and what it says later "
        return out_of_time(self._judge.timeout_of(claim), f"{silent}does not count")
