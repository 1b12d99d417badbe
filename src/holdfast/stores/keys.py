"""Which submits are new work and which repeat some: unique keys and idempotency keys."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.task import NewTask, SubmitOutcome, TaskId
from holdfast.errors import IdempotencyConflict


class Seen(NamedTuple):
    """An idempotency key in use: which task it made, of what body, until when (µs)."""

    task_id: TaskId
    fingerprint: str | None
    until: int


class Plan(NamedTuple):
    """What a batch amounts to: an answer for each submit, the new tasks and their keys."""

    answers: Sequence[tuple[TaskId, SubmitOutcome]]
    fresh: Collection[NewTask]
    seen: Mapping[str, Seen]


class KeyBook:
    """Remembers idempotency keys, and sorts batches without changing anything."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}

    def plan(
        self,
        batch: Sequence[NewTask],
        *,
        known: Collection[TaskId],
        unique: dict[tuple[str, str], TaskId],
        now: int,
        until: int,
    ) -> Plan:
        """Tell new from known; `IdempotencyConflict` if one key comes with two bodies."""
        fresh: dict[TaskId, NewTask] = {}
        all_unique = ChainMap[tuple[str, str], TaskId]({}, unique)
        all_seen = ChainMap[str, Seen]({}, self.seen)
        answers: list[tuple[TaskId, SubmitOutcome]] = []
        for new in batch:
            repeated = new.id in known or new.id in fresh
            existing = None if repeated else _existing(new, all_unique, all_seen, now)
            answers.append(existing or (new.id, SubmitOutcome.CREATED))
            if repeated or existing:
                continue
            fresh[new.id] = new
            if new.unique_key is not None:
                all_unique[new.name, new.unique_key] = new.id
            if new.idempotency_key is not None:
                all_seen[new.idempotency_key] = Seen(new.id, new.fingerprint, until)
        return Plan(answers, fresh.values(), all_seen.maps[0])

    def forget(self, *, tasks: Collection[TaskId] = (), used_up: int | None = None) -> None:
        """Drop the keys of these tasks, and those whose window ended at this instant or before."""
        self.seen = {
            key: seen
            for key, seen in self.seen.items()
            if seen.task_id not in tasks and (used_up is None or seen.until > used_up)
        }


def _existing(
    new: NewTask,
    unique: Mapping[tuple[str, str], TaskId],
    seen: Mapping[str, Seen],
    now: int,
) -> tuple[TaskId, SubmitOutcome] | None:
    """The task that one of its keys already names, if any."""
    if new.idempotency_key is not None:
        first = seen.get(new.idempotency_key)
        if first and first.until > now:
            if first.fingerprint != new.fingerprint:
                raise IdempotencyConflict(new.idempotency_key, first.task_id)
            return first.task_id, SubmitOutcome.IDEMPOTENCY_KEY
    if new.unique_key is not None and (new.name, new.unique_key) in unique:
        return unique[new.name, new.unique_key], SubmitOutcome.UNIQUE_KEY
    return None
