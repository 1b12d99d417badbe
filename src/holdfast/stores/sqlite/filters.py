"""Turns a `TaskFilter` into a WHERE clause, out of fixed parts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import datetime
from typing import Final, NamedTuple

from holdfast.core.lifecycle import UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.stores.columns import in_us
from holdfast.stores.sqlite.queries import FILTERS, Value, as_json
from holdfast.stores.sqlite.values import safe_text

_FEW: Final = 20_000
_LEADING: Final = {
    "parent_id": FILTERS["from_children"],
    "unique_key": FILTERS["from_unique_key"],
    "idempotency_key": FILTERS["from_idempotency_key"],
}
"""Fields with an index that leads straight to the few tasks that can match."""
_PLACES: Final = {
    State.QUEUED: ("ready", "waiting"),
    State.RETRYING: ("waiting",),
    State.BLOCKED: ("blocked",),
    State.RUNNING: ("running",),
}
_DEAD_ENDS: Final = frozenset({State.FAILED, State.CANCELLED, State.DEAD_LETTER})


class Query(NamedTuple):
    """The FROM and WHERE of a query, and the values to bind."""

    text: str
    values: dict[str, Value]


def query(db: sqlite3.Connection, where: TaskFilter, **more: Value) -> Query:
    """Find the matching tasks. Only ever walks all of them if the filter leaves no better way.
    `more` are further clauses by name, with their values.
    """
    values = dict(_values(where)) | more
    clauses = [FILTERS[name] for name in values]
    text = " ".join([_source(db, where), *(["WHERE", " AND ".join(clauses)] if clauses else [])])
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
            case str() as parent if clause.name == "parent_id" and where.ids is not None:
                yield "child_of", safe_text(parent)
            case frozenset() as states if _is_one_dead_end(clause.name, states):
                yield "dead_end", next(iter(states)).value
            case frozenset() as words:
                yield clause.name, as_json(sorted(map(safe_text, words)))
            case tuple() as ids:
                yield "ids", as_json([safe_text(task_id) for task_id in ids])
            case datetime() as instant:
                yield clause.name, in_us(instant)
            case value:
                yield clause.name, safe_text(value)


def _is_one_dead_end(clause: str, words: frozenset[str]) -> bool:
    return clause == "states" and len(words) == 1 and words <= _DEAD_ENDS


def _source(db: sqlite3.Connection, where: TaskFilter) -> str:
    """Where to look: at the children of a parent, at those with a key, at the places of the states
    asked for, if few are there, or at all tasks.

    Few, because what is found in places must be sorted. Running tasks are always few.
    """
    led = [source for field, source in _LEADING.items() if getattr(where, field) is not None]
    if led and where.ids is None:
        return led[0]
    if where.ids is not None or not where.states or not where.states <= UNFINISHED:
        return FILTERS["from_all"]
    places = sorted({place for state in where.states for place in _PLACES[state]})
    (number,) = db.execute(FILTERS["how_many"], (as_json(places),)).fetchone()
    if number >= _FEW:
        return FILTERS["from_all"]
    join = FILTERS["or_there"]
    there = f" {join} ".join(FILTERS[place] for place in places)
    return " ".join((FILTERS["from_places"], there, FILTERS["places_end"]))
