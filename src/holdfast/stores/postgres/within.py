"""Adds tasks inside a transaction of the caller, through the caller's own connection.

One call of one function with one JSON text, so that every driver can do it. What it raises about
the caller's transaction is the driver's own error: the caller knows it and may be waiting for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from holdfast.borrowed import borrow, borrow_async
from holdfast.core.gate import gates_text, to_pass
from holdfast.core.task import Added, Json, NewTask, State, SubmitOutcome, TaskId
from holdfast.errors import IdempotencyConflict, InvalidOption
from holdfast.stores.columns import in_us
from holdfast.stores.postgres.queries import Queries

_CONFLICT: Final = "conflict"
_NO_FUNCTION: Final = frozenset({"3F000", "42883"})


def add(
    sql: Queries, connection: object, tasks: Sequence[NewTask], *, window: float, now: int | None
) -> Sequence[Added]:
    """Add tasks through a sync connection."""
    caller = borrow(connection)
    _check(caller.dialect())
    if not tasks:
        return []
    try:
        rows = caller.fetch(sql["add_within"], [_as_json(tasks), window, now])
    except Exception as error:
        _explain(error, sql.schema)
        raise
    return _answers(rows)


async def add_async(
    sql: Queries, connection: object, tasks: Sequence[NewTask], *, window: float, now: int | None
) -> Sequence[Added]:
    """Add tasks through an async connection."""
    caller = borrow_async(connection)
    _check(caller.dialect())
    if not tasks:
        return []
    try:
        rows = await caller.fetch(sql["add_within"], [_as_json(tasks), window, now])
    except Exception as error:
        _explain(error, sql.schema)
        raise
    return _answers(rows)


def _as_json(tasks: Sequence[NewTask]) -> str:
    return orjson.dumps([_described(new) for new in tasks]).decode()


def _described(new: NewTask) -> Json:
    return {
        "id": new.id,
        "name": new.name,
        "payload": new.payload.decode(),
        "queue": new.queue,
        "priority": new.priority,
        "head_start": new.head_start,
        "delay": new.delay,
        "run_at": None if new.run_at is None else in_us(new.run_at),
        "expires_in": new.expires_in,
        "expires_at": None if new.expires_at is None else in_us(new.expires_at),
        "max_retries": new.max_retries,
        "timeout": new.timeout,
        "retry": new.retry,
        "unique_key": new.unique_key,
        "idempotency_key": new.idempotency_key,
        "fingerprint": new.fingerprint,
        "lock": new.lock,
        "requires": sorted(new.requires),
        "tags": new.tags,
        "owner": new.owner,
        "trace": new.trace,
        "parent_id": new.parent_id,
        "callback": new.callback,
        "gates": gates_text(to_pass(None, new.gates)),
        "passes": [gate.name for gate in to_pass(new.lock, new.gates)] if new.gates else None,
        "counts": new.counts or None,
    }


def _answers(rows: Sequence[Sequence[Any]]) -> Sequence[Added]:
    for task_id, outcome, key in rows:
        if outcome == _CONFLICT:
            raise IdempotencyConflict(key, task_id)
    return [Added(TaskId(row[0]), SubmitOutcome(row[1]), State(row[2])) for row in rows]


def _check(dialect: str) -> None:
    if dialect != "postgresql":
        raise InvalidOption(
            "connection",
            f"expected a connection to the PostgreSQL database where this app keeps its tasks, got "
            f"one to {dialect}. Nothing was submitted.",
        )


def _explain(error: Exception, schema: str) -> None:
    """Say it if the connection leads to a database without Holdfast."""
    if any(_state(each) in _NO_FUNCTION for each in _chain(error)):
        raise InvalidOption(
            "connection",
            f"that database has no Holdfast in its schema {schema!r}. Submit through a connection "
            "to the database where this app keeps its tasks. Nothing was submitted.",
        ) from error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what the caller's library wrapped into it."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = getattr(found, "orig", None) or found.__cause__


def _state(error: BaseException) -> object:
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
