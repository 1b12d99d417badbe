"""Notices of ended tasks: taken, and done with."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.callback import Callback
from holdfast.core.ids import is_task_id
from holdfast.core.task import TaskId
from holdfast.stores.columns import as_time, in_us, span_us
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.values import safe_text


async def take(
    db: Connection, sql: Queries, *, limit: int, lease: float, now: int | None
) -> Sequence[Callback]:
    rows = await db.fetch(sql["due_callbacks"], limit, span_us(lease), now)
    return [
        Callback(TaskId(task_id), url, tries, as_time(ended_at))
        for task_id, url, tries, ended_at in rows
    ]


async def done(
    db: Connection,
    sql: Queries,
    callback: Callback,
    *,
    retry_in: float | None,
    error: str | None,
    now: int | None,
) -> bool:
    if not is_task_id(callback.task_id):
        return False
    return bool(
        await db.fetchval(
            sql["callback_done"],
            callback.task_id,
            callback.tries,
            in_us(callback.ended_at),
            None if retry_in is None else span_us(retry_in),
            None if error is None else safe_text(error),
            now,
        )
    )
