"""Did the promises hold? Compares the store's history with what the bodies wrote down themselves.

Pure: values in, verdicts out, so that a test can feed it a lie and see it caught.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.cli.demo.journal import DONE, ENTER, KILLED, LEAVE, START, JournalEntry
from holdfast.core.attempt import History
from holdfast.core.lifecycle import is_terminal
from holdfast.core.task import AttemptEnd, Cause, State, Task

_UNSTARTED_ENDS = frozenset({AttemptEnd.WORKER_LOST, AttemptEnd.RELEASED, AttemptEnd.CANCELLED})
"""Ends of attempts whose body may never have begun: its worker died or stopped first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedTask:
    """One acknowledged task: how it should end, and what the store says of it (None: gone)."""

    expected: State
    task: Task | None
    history: History | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The counts of the closing table, and every broken promise as a sentence."""

    submitted: int
    completed: int
    dead_lettered: int
    lost: int
    recorded_twice: int
    second_starts: Mapping[str, int]
    bodies_started: int
    late_results_refused: int
    lock_overlaps: int
    broken_promises: tuple[str, ...]

    @property
    def held(self) -> bool:
        return not self.broken_promises


def prove(records: Mapping[str, AcknowledgedTask], journal: Sequence[JournalEntry]) -> Proof:
    """Judge the whole run."""
    starts = Counter((line.task_id, line.attempt) for line in journal if line.event == START)
    done = {(line.task_id, line.attempt) for line in journal if line.event == DONE}
    overlaps = list(overlapping(journal))
    broken = [
        *(text for id_, record in records.items() for text in _judge(id_, record, starts, done)),
        *_strangers(records, starts),
        *(
            f"lock {key}: task {late} entered while {holder} was inside"
            for key, holder, late in overlaps
        ),
    ]
    tasks = [record.task for record in records.values() if record.task is not None]
    return Proof(
        submitted=len(records),
        completed=sum(task.state is State.COMPLETED for task in tasks),
        dead_lettered=sum(task.state is State.DEAD_LETTER for task in tasks),
        lost=sum(_is_lost(record) for record in records.values()),
        recorded_twice=sum(_is_recorded_twice(record) for record in records.values()),
        second_starts=_second_starts(records, starts),
        bodies_started=sum(starts.values()),
        late_results_refused=sum(
            event.kind == "late_result_refused"
            for record in records.values()
            if record.history is not None
            for event in record.history.events
        ),
        lock_overlaps=len(overlaps),
        broken_promises=tuple(broken),
    )


def overlapping(journal: Sequence[JournalEntry]) -> Iterator[tuple[str, str, str]]:
    """Entries into a lock whose holder had neither left nor been killed: (key, holder, late)."""
    inside: dict[str, JournalEntry] = {}
    killed: set[int] = set()
    for line in journal:
        if line.event == KILLED:
            killed.add(line.pid)
        elif line.event == ENTER:
            holder = inside.get(line.detail)
            if holder is not None and holder.pid not in killed:
                yield line.detail, holder.task_id, line.task_id
            inside[line.detail] = line
        elif line.event == LEAVE and inside.get(line.detail, line).task_id == line.task_id:
            inside.pop(line.detail, None)


def _is_lost(record: AcknowledgedTask) -> bool:
    return record.task is None or not is_terminal(record.task.state)


def _is_recorded_twice(record: AcknowledgedTask) -> bool:
    attempts = record.history.attempts if record.history else ()
    ends = [attempt.ended for attempt in attempts]
    return AttemptEnd.COMPLETED in ends[:-1]


def _second_starts(
    records: Mapping[str, AcknowledgedTask], starts: Mapping[tuple[str, int], int]
) -> dict[str, int]:
    """Bodies begun after the task's first one, by the cause that the history gives.

    Attempts that were handed back before their body began are no second start of anything.
    """
    causes: Counter[str] = Counter()
    for task_id, record in records.items():
        attempts = record.history.attempts if record.history else ()
        begun = [attempt for attempt in attempts if (task_id, attempt.number) in starts]
        causes.update(attempt.cause.value for attempt in begun[1:])
    return dict(sorted(causes.items()))


def _judge(
    task_id: str,
    record: AcknowledgedTask,
    starts: Mapping[tuple[str, int], int],
    done: set[tuple[str, int]],
) -> Iterator[str]:
    if record.task is None or record.history is None:
        yield f"task {task_id} was acknowledged and is gone"
        return
    if record.task.state is not record.expected:
        yield f"task {task_id} is {record.task.state}, expected {record.expected}"
    if _is_recorded_twice(record):
        yield f"task {task_id} was recorded as completed and started again"
    for attempt in record.history.attempts:
        key = (task_id, attempt.number)
        if (attempt.number > 1) == (attempt.cause is Cause.SUBMITTED):
            yield f"task {task_id} attempt {attempt.number} has cause {attempt.cause}"
        if starts.get(key, 0) > 1:
            yield f"task {task_id} attempt {attempt.number} was started {starts[key]} times"
        if key not in starts and attempt.ended not in _UNSTARTED_ENDS:
            yield f"task {task_id} attempt {attempt.number} ended {attempt.ended} without a start"
        if attempt.ended is AttemptEnd.COMPLETED and key not in done:
            yield f"task {task_id} attempt {attempt.number} is recorded, but its body did not end"


def _strangers(
    records: Mapping[str, AcknowledgedTask], starts: Mapping[tuple[str, int], int]
) -> Iterator[str]:
    """Bodies that ran without the history knowing: the silent duplicates."""
    known = {
        (task_id, attempt.number)
        for task_id, record in records.items()
        if record.history is not None
        for attempt in record.history.attempts
    }
    for task_id, attempt in starts.keys() - known:
        yield f"task {task_id} attempt {attempt} ran, but the history does not know it"
