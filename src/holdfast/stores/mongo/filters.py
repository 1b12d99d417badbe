"""Turns a `TaskFilter` into a query.

The clause that an index serves best comes first: the server's planner does not mind, smaller
servers that speak its protocol do. No operator stands at the top (`$or` and the like), for the same
reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from holdfast.core.ids import is_task_id
from holdfast.core.query import TaskFilter
from holdfast.core.task import Json, State, TaskId
from holdfast.stores.columns import in_us
from holdfast.stores.mongo.documents import Document, text_in
from holdfast.stores.mongo.texts import can_be_text

BY_ID: Final = "_id_"
_INDEXED: Final = frozenset({"lock", "parent_id", "state"})
_NOBODY: Final[Document] = {"_id": {"$in": []}}
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
_TEXTS: Final = (
    "lock", "unique_key", "idempotency_key", "parent_id", "worker_id", "owner", "queue", "priority"
)  # fmt: skip


def query_of(
    where: TaskFilter,
    *,
    states: frozenset[State] | None = None,
    after: TaskId | None = None,
    before: TaskId | None = None,
) -> Document:
    """Finds what the filter means, in these states only, with ids between these."""
    texts = [getattr(where, name) for name in ("name", "name_prefix", "tag", "requires", *_TEXTS)]
    if not all(text is None or can_be_text(text) for text in texts):
        return _NOBODY
    found: Document = {}
    if ids := _ids(where.ids, after, before):
        found["_id"] = ids
    found |= dict(_clauses(where, states))
    return found


def hint_of(query: Document) -> str | None:
    """The index to walk, if the query leaves a choice between two bad ones: all ids in order, or
    all tasks and a sort. The former may stop early.
    """
    return None if _INDEXED & query.keys() or "$in" in query.get("_id", ()) else BY_ID


def _ids(ids: Iterable[TaskId] | None, after: TaskId | None, before: TaskId | None) -> Document:
    clause: Document = {}
    if ids is not None:
        clause["$in"] = sorted({task_id for task_id in ids if is_task_id(task_id)})
    if after is not None:
        clause["$gt"] = after
    if before is not None:
        clause["$lt"] = before
    return clause


def _clauses(where: TaskFilter, states: frozenset[State] | None) -> Iterator[tuple[str, Json]]:
    for name in _TEXTS:
        if name != "queue" and (value := getattr(where, name)) is not None:
            yield name, str(value)
    if queues := _either(where.queue, where.queues):
        yield "queue", queues
    wanted = [given for given in (where.states, states) if given is not None]
    if wanted:
        yield "state", _one_of(frozenset.intersection(*wanted))
    if named := _name(where):
        yield "name", named
    if where.tag is not None:
        yield "tags", where.tag
    if where.requires is not None:
        yield "requires", where.requires
    if due := _between(None, where.run_before):
        yield "run_at", due
    if where.error_type is not None:
        yield "error.type", text_in(where.error_type)
    if created := _between(where.created_after, where.created_before):
        yield "created_at", created
    if finished := _between(where.finished_after, where.finished_before):
        yield "finished_at", finished


def _one_of(states: frozenset[State]) -> Json:
    words = sorted(state.value for state in states)
    return words[0] if len(words) == 1 else {"$in": words}


def _name(where: TaskFilter) -> Json:
    clause = _either(where.name, where.names)
    if where.name_prefix is None:
        return clause
    clause["$gte"] = where.name_prefix
    if beyond := _after_all_with(where.name_prefix):
        clause["$lt"] = beyond
    return clause


def _either(one: str | None, several: frozenset[str] | None) -> Document:
    clause: Document = {} if one is None else {"$eq": one}
    if several is not None:
        clause["$in"] = sorted(text for text in several if can_be_text(text))
    return clause


def _between(first: datetime | None, end: datetime | None) -> Document:
    clause: Document = {}
    if first is not None:
        clause["$gte"] = in_us(first)
    if end is not None:
        clause["$lt"] = in_us(end)
    return clause


def _after_all_with(prefix: str) -> str:
    """The smallest text that is larger than every text that begins so; empty if there is none."""
    prefix = prefix.rstrip(chr(_LAST))
    if not prefix:
        return ""
    following = ord(prefix[-1]) + 1
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return prefix[:-1] + chr(following)
