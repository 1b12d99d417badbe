"""The wake-ups of an app: who is called for which keys, and who knows what should be armed.

    app.wake_ups.on("schedule", fire, find)      # keys such as "schedule:01J9…"
    await app.wake_ups.arm("schedule:01J9…", at)

Without a `timer_url` nothing is armed: a process that is always there needs no timers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from holdfast.logs import EventLog
from holdfast.ports.store import Store
from holdfast.ports.timer import Timer
from holdfast.timers.arming import Arming, Find, Fire, Wanted

log = EventLog("holdfast.timers")

SWEEP_EVERY: Final = 60.0


class WakeUps:
    """Joins `Arming` to an app, whose store opens late and whose parts come one by one."""

    def __init__(
        self, store: Callable[[], Awaitable[Store]], open_timer: Callable[[], Timer | None]
    ) -> None:
        self._store = store
        self._open_timer = open_timer
        self._timer: Timer | None = None
        self._fires: dict[str, Fire] = {}
        self._finds: dict[str, Find] = {}

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of keys that somebody is called for."""
        return frozenset(self._fires)

    def on(self, kind: str, fire: Fire, find: Find | None = None) -> None:
        """Call `fire` for the keys that begin with `kind:`, and ask `find` what should be armed of
        them. Said again, it replaces what was said before.
        """
        self._fires[kind] = fire
        if find is not None:
            self._finds[kind] = find

    async def arm(self, key: str, at: datetime) -> None:
        """Be woken with this key at that instant (`Arming.arm`)."""
        if (arming := await self._arming()) is not None:
            await arming.arm(key, at)

    async def arm_by(self, key: str, at: datetime) -> None:
        """Be woken with this key at that instant at the latest (`Arming.arm_by`)."""
        if (arming := await self._arming()) is not None:
            await arming.arm_by(key, at)

    async def arm_missing(self, found: Sequence[Wanted]) -> None:
        """The same for several, looked up together (`Arming.arm_missing`)."""
        if (arming := await self._arming()) is not None:
            await arming.arm_missing(found)

    async def cancel(self, key: str) -> None:
        """Do not be woken with this key."""
        if (arming := await self._arming()) is not None:
            await arming.cancel(key)

    async def execute(self, key: str) -> None:
        """A timer has called with this key (`Arming.execute`)."""
        if (arming := await self._arming()) is not None:
            await arming.execute(key)

    async def sweep(self) -> float | None:
        """Arm what was lost (`Arming.sweep`)."""
        arming = await self._arming()
        return None if arming is None else await arming.sweep()

    async def tick(self) -> float:
        """For the maintenance of a process that is there for a while: sweep, and rest."""
        late = await self.sweep()
        return SWEEP_EVERY if late is None else min(SWEEP_EVERY, max(1.0, late))

    async def close(self) -> None:
        """Let go of the timer service; the next use connects again."""
        timer, self._timer = self._timer, None
        if timer is not None:
            await timer.close()

    def forget(self) -> None:
        """Begin anew in a forked child: a connection must not be carried over."""
        self._timer = None

    async def _arming(self) -> Arming | None:
        if self._timer is None:
            self._timer = self._open_timer()
        if self._timer is None:
            return None
        return Arming(
            await self._store(), self._timer, self._fire, find=tuple(self._finds.values())
        )

    async def _fire(self, key: str) -> None:
        fire = self._fires.get(key.partition(":")[0])
        if fire is None:  # of another release, or of an app that has given it up
            log.warning("timer.unknown", key=key)
            return
        await fire(key)
