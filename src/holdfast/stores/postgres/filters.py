"""Turns a `TaskFilter` into a query, out of fixed parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from holdfast.core.ids import is_task_id
from holdfast.core.lifecycle import TERMINAL, UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.stores.columns import in_us
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.values import can_be_text

Value = str | int | list[str]

NOTHING_MORE: Final[Mapping[str, Value]] = MappingProxyType({})
_FEW: Final = 20_000
_LEADING: Final = ("ids", "parent_id", "unique_key", "idempotency_key")
_PLACES: Final = {
    State.QUEUED: ("ready", "waiting"),
    State.RETRYING: ("retrying",),
    State.BLOCKED: ("blocked",),
    State.RUNNING: ("running",),
}
"""Where exactly the tasks of a state are."""
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


class Query(NamedTuple):
    """A FROM and WHERE, and the values to bind. `is_done`: it walks ended tasks. `is_deep`: it
    walks all tasks for unfinished ones, because so many are in their places.
    """

    parts: Sequence[str]
    values: dict[str, Value]
    is_done: bool = False
    is_deep: bool = False


class BoundStatement(NamedTuple):
    """A statement as the driver wants it."""

    text: str
    arguments: list[Value]


async def query(
    db: Connection,
    sql: Queries,
    where: TaskFilter,
    *extra: str,
    more: Mapping[str, Value] = NOTHING_MORE,
    in_order: bool = True,
    by_end: bool = False,
) -> Query | None:
    """Find the matching tasks; None if there cannot be any. Only ever walks all of them if the
    filter leaves no better way. `extra` are further clauses, `more` those that have a value.
    `in_order`: a few will be asked for by their ids; `by_end`: ended ones, by their ends.
    """
    if not _is_possible(where):
        return None
    is_done = by_end or is_of_ended(where)
    values = {**dict(_values(where, is_done=is_done)), **more}
    places = () if is_done else _places(where)
    is_deep = bool(places) and in_order and await _is_deep(db, sql, places)
    source = sql["from_done"] if is_done else sql["from_tasks"]
    if places and not is_deep:
        del values["states"]  # the places tell
        source = " ".join((from_places(sql, where), sql["places_end"]))
    clauses = [sql[name] for name in (*values, *extra)]
    if is_done and where.states and where.states != TERMINAL:
        clauses.append(_ended(sql, where.states))
    condition = ["WHERE", " AND ".join(clauses)] if clauses else []
    return Query([source, *condition], values, is_done, is_deep)


def bind(found: Query, *before_and_after: str, **more: Value) -> BoundStatement:
    """The statement: the first part goes before the query, the others behind it."""
    first, *last = before_and_after
    values = found.values | more
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    text = _PARAMETER.sub(number, " ".join([first, *found.parts, *last]))
    return BoundStatement(text, [values[name] for name in names])


def is_of_ended(where: TaskFilter) -> bool:
    """Whether its query walks ended tasks, as `d`."""
    return not _is_led(where) and where.states is not None and where.states <= TERMINAL


def from_places(sql: Queries, where: TaskFilter) -> str:
    """The beginning of a query that finds tasks in the places of their states."""
    there = f" {sql['or_there']} ".join(sql[place] for place in _places(where))
    return f"{sql['from_places']} {there}"


def narrowed(where: TaskFilter, states: frozenset[State]) -> TaskFilter:
    """The same filter, for tasks in these states only."""
    return replace(where, states=states if where.states is None else where.states & states)


def _is_possible(where: TaskFilter) -> bool:
    """An empty collection matches nothing, nor does text that no database can hold."""
    if where.ids is not None and not any(map(is_task_id, where.ids)):
        return False
    if where.states is not None and not where.states:
        return False
    values = [getattr(where, field.name) for field in fields(where)]
    return all(can_be_text(value) for value in values if isinstance(value, str))


def _values(where: TaskFilter, *, is_done: bool) -> Iterator[tuple[str, Value]]:
    """The clauses that the filter needs, with their values."""
    for clause in fields(where):
        match getattr(where, clause.name):
            case None:
                continue
            case frozenset() if is_done and clause.name == "states":
                continue  # written out: see `_ended`
            case frozenset() as words:
                yield clause.name, sorted(str(word) for word in words if can_be_text(word))
            case tuple() as ids:
                yield "ids", [task_id for task_id in ids if is_task_id(task_id)]
            case datetime() as instant:
                yield clause.name, in_us(instant)
            case value:
                yield clause.name, str(value)


def _ended(sql: Queries, states: frozenset[State]) -> str:
    alternatives = (sql[f"done_{state.value}"] for state in sorted(states))
    either = f" {sql['or_ended']} ".join(alternatives)
    return f"({either})"


def _is_led(where: TaskFilter) -> bool:
    """Whether an index leads straight to the few tasks that can match, whatever their states."""
    return any(getattr(where, name) is not None for name in _LEADING)


def _places(where: TaskFilter) -> Sequence[str]:
    """Where the tasks asked for must be, if that is known."""
    if _is_led(where) or not where.states or not where.states <= UNFINISHED:
        return ()
    return sorted({place for state in where.states for place in _PLACES[state]})


async def _is_deep(db: Connection, sql: Queries, places: Sequence[str]) -> bool:
    """Whether so many are there that sorting them would take long. Running tasks are always few."""
    number: int = await db.fetchval(sql["how_many"], places)
    return number >= _FEW
