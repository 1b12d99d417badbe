"""The verbs about limits, rates, shares and breakers that a client has."""

from __future__ import annotations

from holdfast.core.breaker import BreakerState
from holdfast.core.gate import GateKind, kind_of
from holdfast.core.limit_state import LimitChange, LimitDetails, LimitPage
from holdfast.core.scope import LOOKED_AT, is_lock
from holdfast.definitions.gate_makers import read_limit_name, read_limit_value
from holdfast.definitions.readers import LONGEST_KEY, read_name, read_text
from holdfast.definitions.registry import Registry
from holdfast.filters import page_size
from holdfast.flow import limits
from holdfast.logs import EventLog
from holdfast.ports.store import Store

log = EventLog("holdfast.client")


class LimitVerbs:
    """A part of the client."""

    store: Store
    registry: Registry

    async def limits(self, *, after: str = "", limit: int = 100) -> LimitPage:
        """The limits, rates, shares and breakers that somebody uses or has set, by name. `next`,
        passed as `after`, brings those after.
        """
        return await limits.list_limits(self.store, after=after, limit=page_size(limit))

    async def limit(self, name: str) -> LimitDetails | None:
        """One of them, with who holds it and who waits; None if it is neither used nor set."""
        found = await limits.find_limit(self.store, read_limit_name(name))
        return None if found is None else await limits.details(self.store, found)

    async def gates(
        self, *, kind: GateKind | None = None, text: str = "", after: str = "", limit: int = 100
    ) -> LimitPage:
        """The same with locks: those of one kind, if one is given, and with this text in their
        names, in any case.
        """
        return await limits.list_limits(
            self.store,
            after=after,
            limit=page_size(limit),
            kinds=LOOKED_AT if kind is None else [each for each in LOOKED_AT if each is kind],
            containing=text,
        )

    async def gate(self, name: str) -> LimitDetails | None:
        """`limit`, for locks too: `gate("lock:image:7")`."""
        wanted = read_text("name", name, LONGEST_KEY + 10)
        found = await limits.find_limit(
            self.store, wanted if is_lock(wanted) else read_limit_name(wanted)
        )
        return None if found is None else await limits.details(self.store, found)

    async def limits_of_queue(self, queue: str, *, limit: int = 20) -> LimitPage:
        """The limits of a queue that somebody uses or has set; of each kind so many with keys."""
        return await limits.of_queue(self.store, read_name("queue", queue), limit=page_size(limit))

    async def set_limit(self, name: str, value: int | str) -> LimitChange:
        """How many may pass from now on, until `unset_limit`: `set_limit("limit:stripe", 10)`; of a
        breaker "open" or "closed". Those who wait pass at once if there is room.
        """
        return await self._set(name, read_limit_value(read_limit_name(name), value))

    async def unset_limit(self, name: str) -> LimitChange:
        """Undo `set_limit`: tasks say how many may pass, failures whether a breaker is open."""
        return await self._set(read_limit_name(name), None)

    async def _set(self, name: str, wanted: int | BreakerState | None) -> LimitChange:
        before = await limits.find_limit(self.store, name)
        capacity = wanted if isinstance(wanted, int) else None
        state = wanted if isinstance(wanted, BreakerState) else None
        if kind_of(name) is GateKind.BREAKER:
            changed = await limits.force_breaker(self.store, name, state)
        else:
            changed = await limits.set_capacity(self.store, name, capacity)
        if changed:
            log.info("limit.set", limit=name, value=wanted)
        known = before is not None or self.registry.has_limit(name)
        return LimitChange(name=name, capacity=capacity, state=state, changed=changed, known=known)
