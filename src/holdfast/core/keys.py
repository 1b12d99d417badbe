"""Unique and idempotency keys belong to the owner: those of two owners never meet.

A store compares keys as they are; so the key of a task with an owner is kept with a short hash of
the owner before it, and shown without. A key of a task without an owner is kept as it is, unless it
begins like one with an owner: nobody can write by hand what is another's key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Final

from holdfast.core.query import TaskFilter
from holdfast.core.task import Task
from holdfast.errors import IdempotencyConflict

_MARK: Final = "\x1f"
_BEFORE: Final = len(_MARK) + 32


def stored_key(owner: str | None, key: str | None) -> str | None:
    """The key as a store keeps it."""
    if key is None or (owner is None and not key.startswith(_MARK)):
        return key
    return f"{_MARK}{sha256((owner or '').encode(errors='surrogatepass')).hexdigest()[:32]}{key}"


def shown_key(key: str | None) -> str | None:
    """The key as it was given."""
    return key[_BEFORE:] if key is not None and key.startswith(_MARK) else key


def shown(task: Task) -> Task:
    """The task with its keys as they were given."""
    if task.owner is None and task.unique_key is None and task.idempotency_key is None:
        return task
    unique, idempotency = shown_key(task.unique_key), shown_key(task.idempotency_key)
    if (unique, idempotency) == (task.unique_key, task.idempotency_key):
        return task
    return replace(task, unique_key=unique, idempotency_key=idempotency)


def by_stored_key(which: TaskFilter) -> TaskFilter:
    """The filter as a store takes it: a key is that of the owner who is named, or of tasks without
    one.
    """
    unique, idempotency = which.unique_key, which.idempotency_key
    if unique is None and idempotency is None:
        return which
    return replace(
        which,
        unique_key=stored_key(which.owner, unique),
        idempotency_key=stored_key(which.owner, idempotency),
    )


@contextmanager
def as_given() -> Iterator[None]:
    """Let an error inside name a key as it was given, not as it is kept."""
    try:
        yield
    except IdempotencyConflict as error:
        raise with_given_key(error) from None


def with_given_key(error: IdempotencyConflict) -> IdempotencyConflict:
    return IdempotencyConflict(shown_key(error.key) or "", error.task_id)
