"""Pages of ended tasks, in the order of their ends.

Dead ends have an index by when they ended. For what completed there is only a summary of which ends
lie where, as more would make every task dearer. So before the last ones are sorted out, a span of
time is sought in which there are enough of them, and not many more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import Edge, Order, TaskFilter
from holdfast.core.task import State
from holdfast.stores.columns import in_us
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.filters import NOTHING_MORE, Query, Value, bind, narrowed, query
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.values import Row

_BY_END: Final = {
    Order.LAST_ENDED: ("last_ended", "pictures_last_ended"),
    Order.FIRST_ENDED: ("first_ended", "pictures_first_ended"),
}
_SPANS: Final = tuple(1_000_000 * 16**n for n in range(9))
"""Microseconds: from a second to a hundred years."""
_FEW: Final = 2000
"""So many are sorted in no time."""
_TRIES: Final = 48


@dataclass(frozen=True, slots=True)
class Ends:
    """What is asked for: up to `limit` ended tasks behind the edge."""

    db: Connection
    sql: Queries
    where: TaskFilter
    limit: int
    edge: Edge | None
    order: Order

    async def rows(self) -> list[Row]:
        where = narrowed(self.where, TERMINAL)
        within = await self._span(where) if self._is_worth_a_search(where) else NOTHING_MORE
        found = await self._query(where, within)
        if found is None:
            return []
        inside, outside = _BY_END[self.order]
        sql = self.sql
        bound = bind(found, sql["pictures_of"], sql[inside], sql[outside], limit=self.limit)
        rows: list[Row] = await self.db.fetch(bound.text, *bound.arguments)
        return rows

    async def _query(self, where: TaskFilter, within: Mapping[str, Value]) -> Query | None:
        side = "ended_later_than" if self.order.is_ascending else "ended_after"
        more = dict(within)
        if self.edge is not None and self.edge.ended_at is not None:
            more |= {side: in_us(self.edge.ended_at), "edge": self.edge.task_id}
        found = await query(self.db, self.sql, where, more=more, by_end=True)
        if found is not None and _is_by_state_alone(where):
            return found._replace(parts=[self.sql["from_ends"], *found.parts[1:]])
        return found

    def _is_worth_a_search(self, where: TaskFilter) -> bool:
        """Of others a span with enough matching tasks could be very long."""
        has_completed = where.states is not None and State.COMPLETED in where.states
        return has_completed and _is_by_state_alone(where)

    async def _span(self, where: TaskFilter) -> Mapping[str, Value]:
        """Clauses for a span with enough ends in it, and few more."""
        origin = await self._origin()
        short, long, number = 0, 0, 0
        for span in _SPANS:
            short, long = long, span
            number = await self._number(where, self._within(origin, span))
            if number >= self.limit:
                break
        else:
            return NOTHING_MORE
        for _ in range(_TRIES):
            if number < _FEW or long - short <= 1:
                break
            middle = (short + long) // 2
            tried = await self._number(where, self._within(origin, middle))
            if tried < self.limit:
                short = middle
            else:
                long, number = middle, tried
        return self._within(origin, long)

    async def _origin(self) -> int:
        """Where the page begins, in microseconds: at the edge, now, or with time itself."""
        if self.edge is not None and self.edge.ended_at is not None:
            return in_us(self.edge.ended_at)
        return 0 if self.order.is_ascending else int(await self.db.fetchval(self.sql["now"], None))

    def _within(self, origin: int, span: int) -> dict[str, Value]:
        if self.order.is_ascending:
            return {"ended_since": origin, "ended_until": origin + span}
        until: dict[str, Value] = {} if self.edge is None else {"ended_until": origin}
        return {"ended_since": origin - span, **until}

    async def _number(self, where: TaskFilter, within: Mapping[str, Value]) -> int:
        """How many ended within; it counts no further than to a few."""
        found = await self._query(where, within)
        if found is None:
            return 0
        bound = bind(found, self.sql["count_of"], self.sql["up_to_limit"], limit=_FEW)
        return int(await self.db.fetchval(bound.text, *bound.arguments))


def _is_by_state_alone(where: TaskFilter) -> bool:
    """Whether the row of an end can answer it, without the task."""
    return all(getattr(where, each.name) is None for each in fields(where) if each.name != "states")
