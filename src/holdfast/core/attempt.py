"""An attempt: as a worker holds it, as a store must write its end, as the history shows it.

`Claim` and `Settlement` are tuples because they are made by the thousand every second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from holdfast.core.keys import with_given_key
from holdfast.core.record import Changes
from holdfast.core.shown import without
from holdfast.core.task import (
    AttemptEnd,
    Cause,
    Cost,
    Priority,
    Progress,
    Reason,
    State,
    Task,
    TaskError,
    TaskId,
    WorkerId,
)
from holdfast.errors import IdempotencyConflict, RecordConflict


class Claim(NamedTuple):
    """One started attempt in a worker's hands. (task_id, attempt, worker_id) is the fence.

    `charged` counts the earlier attempts that used up a retry; `fence` grows with every holder
    of the task's lock.
    """

    task_id: TaskId
    attempt: int
    worker_id: WorkerId
    name: str
    queue: str
    priority: Priority
    payload: bytes
    charged: int
    max_retries: int
    crash_count: int
    timeout: float | None
    retry: str | None
    lock: str | None
    fence: int | None
    cause: Cause
    trace: str | None
    owner: str | None
    cancel_requested: bool

    def __repr__(self) -> str:
        return f"Claim({without(self._asdict().items(), 'payload')})"

    @classmethod
    def of(cls, task: Task) -> Claim:
        """A running task as its worker holds it: a claim's fields are a task's, but for the id."""
        return cls._make(_CLAIM_FIELDS(task))


_CLAIM_FIELDS = attrgetter("id", *Claim._fields[1:])


class Claimed(NamedTuple):
    """What a claim brought. `next_due` is the seconds until the earliest waiting task, if any;
    `ranks` are those of the claims, in the same order.
    """

    claims: Sequence[Claim]
    next_due: float | None
    ranks: Sequence[int] = ()


class Settlement(NamedTuple):
    """How an attempt ended and what the task becomes: written by the store, decided by `core`.

    `delay` (seconds) is set when the task waits for another attempt; `cause` is that attempt's
    cause. `charged` and `crash_count` are the task's new totals. `needs` is a capability that the
    task requires from now on, beside what it required before. `also` is written if and only if this
    is. `behind` is the name of a latch: the task, if it waits for another attempt, stands behind it
    from now on, as if it had named that gate. If that is new, `also` counts it up.
    """

    task_id: TaskId
    attempt: int
    worker_id: WorkerId
    state: State
    ended: AttemptEnd
    charged: int
    crash_count: int
    result: bytes | None = None
    error: TaskError | None = None
    delay: float = 0.0
    cause: Cause | None = None
    reason: Reason | None = None
    needs: str | None = None
    also: Changes | None = None
    behind: str | None = None

    def __repr__(self) -> str:
        return f"Settlement({without(self._asdict().items(), 'result')})"


class Report(NamedTuple):
    """What a running attempt wants stored before it ends; fenced like a settlement. `steps` are
    (name, result as JSON) pairs for its journal.
    """

    task_id: TaskId
    attempt: int
    worker_id: WorkerId
    progress: Progress | None = None
    cost: Cost | None = None
    logs: tuple[str, ...] = ()
    steps: tuple[tuple[str, bytes], ...] = ()


class Refusal(NamedTuple):
    """A fenced write that came too late: `holder` has the task now, if anyone has. Or one that held
    its lease, but what it brought along (`Settlement.also`) clashes: `conflict` says with what.
    """

    task_id: TaskId
    attempt: int
    worker_id: WorkerId
    holder: WorkerId | None
    conflict: str | None = None


CLASHES = (RecordConflict, IdempotencyConflict)
"""What may keep `Settlement.also` from being written, and so the settlement."""


def clashed(settlement: Settlement, clash: Exception) -> Refusal:
    """The answer to a settlement whose `also` cannot be written: nothing of it was."""
    if isinstance(clash, IdempotencyConflict):
        clash = with_given_key(clash)
    return Refusal(settlement.task_id, settlement.attempt, settlement.worker_id, None, str(clash))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One start of a task, for the history. An attempt still running has no `ended`."""

    number: int
    cause: Cause
    worker_id: WorkerId
    started_at: datetime
    ended_at: datetime | None = None
    ended: AttemptEnd | None = None
    charged: bool = False
    error: TaskError | None = None

    @property
    def seconds(self) -> float | None:
        """How long it ran."""
        return None if self.ended_at is None else (self.ended_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a task beside its attempts.

    Kinds: `submitted`, `cancel_requested`, `cancelled` (while it was not running; an attempt that
    was stopped tells so itself), `expired`, `unknown_task`, `requeued`,
    `callback_delivered`, `callback_failed` (the `detail` says why), `late_result_refused`, `log`.
    The last two name their attempt and worker; a log line is the `detail`.
    """

    at: datetime
    kind: str
    attempt: int | None = None
    worker_id: WorkerId | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that is known of what happened to one task, each part oldest first."""

    attempts: tuple[Attempt, ...]
    events: tuple[Event, ...]
