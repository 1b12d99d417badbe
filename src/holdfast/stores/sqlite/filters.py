"""Turns a `TaskFilter` into a WHERE clause, out of fixed parts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final, NamedTuple

from holdfast.core.lifecycle import UNFINISHED
from holdfast.core.task import State, TaskFilter
from holdfast.stores.sqlite.queries import FILTERS, Value, as_json
from holdfast.stores.sqlite.values import in_us, safe_text

_FEW: Final = 20_000
_DEAD_ENDS: Final = frozenset({State.FAILED, State.CANCELLED, State.DEAD_LETTER})


class Query(NamedTuple):
    """The FROM and WHERE of a query, and the values to bind."""

    text: str
    values: dict[str, Value]


def query(db: sqlite3.Connection, where: TaskFilter, *, after: str | None = None) -> Query:
    """Find the matching tasks. Only ever walks all of them if the filter leaves no better way."""
    values = dict(_values(where))
    if after is not None:
        values["after"] = safe_text(after)
    clauses = [FILTERS[name] for name in values]
    source = FILTERS["from_unfinished" if _are_few(db, where) else "from_all"]
    text = " ".join([source, *(["WHERE", " AND ".join(clauses)] if clauses else [])])
    return Query(text, values)


def narrowed(where: TaskFilter, states: frozenset[State]) -> TaskFilter:
    """The same filter, for tasks in these states only."""
    return replace(where, states=states if where.states is None else where.states & states)


def _values(where: TaskFilter) -> Iterator[tuple[str, Value]]:
    """The clauses that the filter needs, with their values."""
    for clause in fields(where):
        match getattr(where, clause.name):
            case None:
                continue
            case frozenset() as states if len(states) == 1 and states <= _DEAD_ENDS:
                yield "dead_end", next(iter(states)).value
            case frozenset() as states:
                yield "states", as_json(sorted(states))
            case tuple() as ids:
                yield "ids", as_json([safe_text(task_id) for task_id in ids])
            case value if clause.name.startswith("created_"):
                yield clause.name, in_us(value)
            case value:
                yield clause.name, safe_text(value)


def _are_few(db: sqlite3.Connection, where: TaskFilter) -> bool:
    """Whether the unfinished tasks alone are asked for, and are few enough to sort."""
    if where.ids is not None or where.states is None or not where.states <= UNFINISHED:
        return False
    (number,) = db.execute(FILTERS["unfinished_count"]).fetchone()
    return bool(number < _FEW)
