"""Pages of tasks, in the order of their ids.

Ended tasks and those in places where there are few are found there. Otherwise all tasks are walked
by id until the page is full, which is quick if matching ones are near. For unfinished tasks they
need not be: when a million ended before the oldest that waits, a walk would pass over every one of
them. So that walk has a limit; if the page is not full by then, the first ids are picked out of the
places, which costs a look at each that is unfinished but none at the history.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from holdfast.core.query import Edge, Order, Page, TaskFilter, page_of
from holdfast.core.task import TaskId
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.ends import Ends
from holdfast.stores.postgres.filters import (
    BoundStatement,
    Query,
    Value,
    bind,
    from_places,
    is_of_ended,
    query,
)
from holdfast.stores.postgres.lanes import Lanes
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.reads import snapshot
from holdfast.stores.postgres.values import Row, task_of

_PICKED: Final = 1000
_SHOWN_IN_PLACES: Final = frozenset({"states", "queue", "priority"})
"""Fields of a filter that a row in a place can answer by itself."""
_UNINDEXED: Final = ("name", "name_prefix", "tag", "lock")


async def page(
    db: Connection,
    sql: Queries,
    lanes: Lanes,
    where: TaskFilter,
    *,
    limit: int,
    edge: Edge | None,
    order: Order,
) -> Page:
    """One row more than asked for tells whether there is another page."""
    if limit <= 0:
        return Page(tasks=())
    async with snapshot(db, sql):
        if order.is_by_end:
            rows = await Ends(db, sql, where, limit + 1, edge, order).rows()
        else:
            last = None if edge is None else edge.task_id
            listing = Listing(sql, where, limit + 1, last, order.is_ascending)
            rows = await listing.rows(db)
        known = await lanes.know(db, {row["lane"] for row in rows})
    tasks = [task_of(row, known[row["lane"]]) for row in rows]
    return page_of(tasks, limit=limit, order=order)


@dataclass(frozen=True, slots=True)
class Listing:
    """What is asked for: up to `limit` tasks behind the one that was `last`."""

    sql: Queries
    where: TaskFilter
    limit: int
    last: TaskId | None
    oldest_first: bool

    async def rows(self, db: Connection) -> list[Row]:
        found = await self._query(db, self.where)
        if found is None:
            return []
        if not found.is_deep:
            if self._may_walk_far:
                return await self._found_first(db, found)
            return await self._fetch(db, self._page(found))
        rows = await self._fetch(db, self._page(self._nearby(found)))
        if len(rows) < self.limit:
            picked = await self._picked(db)
            rows = await self._fetch(db, self._page(found)) if picked is None else picked
        return rows

    async def _found_first(self, db: Connection, found: Query) -> list[Row]:
        """The same in two statements. Who looks for the ids may walk all tasks there are, which
        several processes of the server do together, but not where pictures are made as well.
        """
        bound = bind(found, self.sql["ids_of"], self._order_of(found), limit=self.limit)
        ids = tuple(TaskId(row[0]) for row in await db.fetch(bound.text, *bound.arguments))
        by_id = await query(db, self.sql, TaskFilter(ids=ids)) if ids else None
        return [] if by_id is None else await self._fetch(db, self._page(by_id))

    async def _picked(self, db: Connection) -> list[Row] | None:
        """Those of the first in the places that match; None if that is not enough to tell."""
        wanted = self.limit if self._is_shown_in_places else max(self.limit, _PICKED)
        bound = bind(self._places(), self.sql["ids_of"], self._order, limit=wanted)
        ids = tuple(TaskId(row[0]) for row in await db.fetch(bound.text, *bound.arguments))
        found = await self._query(db, replace(self.where, states=None, ids=ids))
        rows = [] if found is None else await self._fetch(db, self._page(found))
        return rows if len(rows) == self.limit or len(ids) < wanted else None

    async def _query(self, db: Connection, where: TaskFilter) -> Query | None:
        side = f"done_{self._side}" if is_of_ended(where) else self._side
        more: dict[str, Value] = {} if self.last is None else {side: self.last}
        return await query(db, self.sql, where, more=more)

    def _nearby(self, found: Query) -> Query:
        """The same among the next tasks by id, however many of them match."""
        clause = f"{self._side}_nearby"
        edge = "00000000-0000-0000-0000-000000000000" if self.oldest_first else "f" * 32
        return Query(
            [self.sql[clause], *found.parts[1:]], found.values | {"edge": self.last or edge}
        )

    @property
    def _may_walk_far(self) -> bool:
        """Whether no index leads to what is asked for, so that few of very many may match."""
        return any(getattr(self.where, name) is not None for name in _UNINDEXED)

    @property
    def _is_shown_in_places(self) -> bool:
        given = (f.name for f in fields(self.where) if getattr(self.where, f.name) is not None)
        return _SHOWN_IN_PLACES.issuperset(given)

    def _places(self) -> Query:
        values: dict[str, Value] = {
            field.name: str(value)
            for field in fields(self.where)
            if field.name in _SHOWN_IN_PLACES - {"states"}
            and (value := getattr(self.where, field.name)) is not None
        }
        if self.last is not None:
            values[self._side] = self.last
        clauses = [self.sql[name] for name in values]
        condition = ["WHERE", " AND ".join(clauses)] if clauses else []
        source = from_places(self.sql, self.where)
        return Query([source, self.sql["places_by_id_end"], *condition], values)

    def _page(self, found: Query) -> BoundStatement:
        first = "oldest" if self.oldest_first else "newest"
        end = self.sql[f"pictures_{first}_first"]
        order = self._order_of(found)
        return bind(found, self.sql["pictures_of"], order, end, limit=self.limit)

    def _order_of(self, found: Query) -> str:
        first = "oldest" if self.oldest_first else "newest"
        return self.sql[f"{first}_done_first"] if found.is_done else self._order

    async def _fetch(self, db: Connection, bound: BoundStatement) -> list[Row]:
        rows: list[Row] = await db.fetch(bound.text, *bound.arguments)
        return rows

    @property
    def _side(self) -> str:
        return "later_than" if self.oldest_first else "after"

    @property
    def _order(self) -> str:
        return self.sql["oldest_first" if self.oldest_first else "newest_first"]
