"""Judges what a store says happened against the promises, and against what was seen from outside.

A queue that loses or doubles work rarely says so itself. So handlers write each start to a
`StartLog` (one appended line, which survives the death of the process that wrote it), the submitter
keeps the ids that were acknowledged, and `check` compares both with what the store tells:

    log = StartLog(path)                        # in the handler: with log.body(ctx): ...
    pictures = await collect(store)
    assert check(pictures, acknowledged=ids, starts=log.starts()) == []

It reads only what a store shows, so it works on every store. Each finding is a `Broken`: the rule,
the task, and what was seen.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.kit.startlog import Start, StartLog

from holdfast.core.attempt import Attempt, History
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cause, Reason, State, Task, TaskId
from holdfast.ports.store import TaskStore

__all__ = ["Broken", "Picture", "Start", "StartLog", "check", "check_task", "collect"]

TOGETHER = 8
"""Histories read at the same time."""

_FOLLOWS = {
    AttemptEnd.ERROR: (Cause.RETRY,),
    AttemptEnd.TIMEOUT: (Cause.TIMEOUT,),
    AttemptEnd.WORKER_LOST: (Cause.WORKER_LOST,),
    AttemptEnd.RELEASED: (Cause.RELEASED, Cause.RESUMED),
}
"""What must have caused the next attempt, if no operator did."""

_ENDS = {
    State.COMPLETED: {AttemptEnd.COMPLETED},
    State.FAILED: {AttemptEnd.ERROR},
    State.DEAD_LETTER: {AttemptEnd.ERROR, AttemptEnd.TIMEOUT, AttemptEnd.WORKER_LOST},
}
"""How the last attempt of a task in that state ended. Cancelled says nothing about it."""


class Broken(NamedTuple):
    """One broken promise. `rule` is a stable word; `detail` says what was seen."""

    rule: str
    task_id: str | None
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}" + (f" (task {self.task_id})" if self.task_id else "")


class Picture(NamedTuple):
    """All that a store says about one task."""

    task: Task
    history: History


async def collect(store: TaskStore, where: TaskFilter | None = None) -> list[Picture]:
    """Read every task that matches, with its history."""
    pictures: list[Picture] = []
    after: str | None = None
    while True:
        page = await store.list(where or TaskFilter(), limit=500, after=after)
        for start in range(0, len(page.tasks), TOGETHER):
            some = page.tasks[start : start + TOGETHER]
            histories = await asyncio.gather(*(store.history(task.id) for task in some))
            pictures += [
                Picture(task, history)
                for task, history in zip(some, histories, strict=True)
                if history is not None
            ]
        if page.next is None:
            return pictures
        after = page.next


def check(
    pictures: Sequence[Picture],
    *,
    acknowledged: Collection[str] = (),
    starts: Sequence[Start] = (),
    crash_limit: int = 3,
    finished: bool = True,
    steady_clock: bool = True,
) -> list[Broken]:
    """Everything that does not hold, in no particular order; an empty list is well.

    `finished` expects every task to be in a terminal state. Turn `steady_clock` off where the
    store's clock was set back: then instants are not compared.
    """
    broken = list(_check_lost(pictures, acknowledged))
    for picture in pictures:
        broken += check_task(picture, crash_limit=crash_limit, steady_clock=steady_clock)
        if finished and picture.task.state not in TERMINAL:
            broken.append(Broken("stuck", picture.task.id, f"still {picture.task.state}"))
    broken += _check_starts(pictures, starts)
    broken += _check_unique(pictures)
    if steady_clock:
        broken += _check_locks(pictures)
    return broken + list(_check_fences(starts))


def check_task(
    picture: Picture, *, crash_limit: int = 3, steady_clock: bool = True
) -> Iterator[Broken]:
    """What does not hold within one task's own history."""
    task, history = picture
    for rule, detail in _faults(task, history, crash_limit):
        yield Broken(rule, task.id, detail)
    for detail in _count_faults(task, history, steady_clock=steady_clock):
        yield Broken("counts", task.id, detail)
    if steady_clock:
        for detail in _time_faults(history.attempts):
            yield Broken("times", task.id, detail)


def _faults(task: Task, history: History, crash_limit: int) -> Iterator[tuple[str, str]]:
    attempts = history.attempts
    numbers = [a.number for a in attempts]
    if numbers != list(range(1, len(attempts) + 1)):
        yield "attempt_numbers", f"attempts are numbered {numbers}"
    if task.attempt != len(attempts):
        yield "attempt_numbers", f"attempt {task.attempt}, but {len(attempts)} in the history"
    yield from _end_faults(task, history)
    yield from _cause_faults(history)
    for life in _lives(attempts):
        yield from _limit_faults(task, life, crash_limit)


def _end_faults(task: Task, history: History) -> Iterator[tuple[str, str]]:
    attempts = history.attempts
    open_ones = [a.number for a in attempts if a.ended is None]
    if open_ones != ([task.attempt] if task.state is State.RUNNING else []):
        yield "open_attempt", f"{task.state} with unended attempts {open_ones}"
    if (task.finished_at is not None) != (task.state in TERMINAL):
        yield "terminal", f"{task.state} with finished_at {task.finished_at}"
    if task.state in _ENDS:
        last = attempts[-1].ended if attempts else None
        if last not in _ENDS[task.state]:
            yield "terminal", f"{task.state}, but its last attempt ended as {last}"
    if task.state is State.CANCELLED and task.reason not in (Reason.CANCELLED, Reason.EXPIRED):
        yield "terminal", f"cancelled with reason {task.reason}"
    completed = sum(a.ended is AttemptEnd.COMPLETED for a in attempts)
    if completed > 1 + sum(e.kind == "requeued" for e in history.events):
        yield "recorded_twice", f"{completed} attempts completed without an operator between them"


def _cause_faults(history: History) -> Iterator[tuple[str, str]]:
    requeues = [e for e in history.events if e.kind == "requeued"]
    previous: Attempt | None = None
    for attempt in history.attempts:
        expected = (Cause.SUBMITTED,) if previous is None else _follows(previous)
        if attempt.cause is Cause.OPERATOR:
            if not requeues:
                yield "cause", f"attempt {attempt.number} has cause operator, nobody requeued it"
        elif attempt.cause not in expected:
            ended = previous.ended if previous else "never started"
            yield "cause", f"attempt {attempt.number}: cause {attempt.cause} after {ended}"
        previous = attempt
    operators = sum(a.cause is Cause.OPERATOR for a in history.attempts)
    if operators > len(requeues):
        yield "cause", f"{operators} starts by an operator, {len(requeues)} requeues"


def _follows(previous: Attempt) -> Sequence[Cause]:
    return () if previous.ended is None else _FOLLOWS.get(previous.ended, ())


def _lives(attempts: Iterable[Attempt]) -> Iterator[list[Attempt]]:
    """Split at each operator's restart: the counts begin anew there."""
    life: list[Attempt] = []
    for attempt in attempts:
        if attempt.cause is Cause.OPERATOR and life:
            yield life
            life = []
        life.append(attempt)
    if life:
        yield life


def _limit_faults(task: Task, life: list[Attempt], limit: int) -> Iterator[tuple[str, str]]:
    charged, crashes = _charged(life), _crashes(life)
    if charged > task.max_retries + 1:
        yield "retry_limit", f"{charged} charged attempts with max_retries {task.max_retries}"
    if crashes > limit:
        yield "crash_limit", f"{crashes} lost workers with crash_limit {limit}"
    for attempt in life:
        if attempt.charged != (attempt.ended in (AttemptEnd.ERROR, AttemptEnd.TIMEOUT)):
            yield "charge", f"attempt {attempt.number} {attempt.ended}, charged {attempt.charged}"


def _count_faults(task: Task, history: History, *, steady_clock: bool) -> Iterator[str]:
    if not history.attempts or _is_renewed(history, steady_clock=steady_clock):
        return
    life = list(_lives(history.attempts))[-1]
    found = (task.charged, task.crash_count)
    expected = (_charged(life), _crashes(life))
    if task.state is State.CANCELLED and life[-1].ended is AttemptEnd.WORKER_LOST:
        found = (task.charged, expected[1])  # the death did the cancelling: not held against it
    if found != expected:
        yield f"(charged, crash_count) is {found}, the history says {expected}"


def _charged(life: Iterable[Attempt]) -> int:
    return sum(a.ended in (AttemptEnd.ERROR, AttemptEnd.TIMEOUT) for a in life)


def _crashes(life: Iterable[Attempt]) -> int:
    return sum(a.ended is AttemptEnd.WORKER_LOST for a in life)


def _is_renewed(history: History, *, steady_clock: bool) -> bool:
    """Whether an operator restarted it after its last attempt, or may have."""
    requeues = [event for event in history.events if event.kind == "requeued"]
    ended_at = history.attempts[-1].ended_at
    if ended_at is None or not steady_clock:
        return bool(requeues) and ended_at is not None
    return any(event.at >= ended_at for event in requeues)


def _time_faults(attempts: Sequence[Attempt]) -> Iterator[str]:
    for attempt in attempts:
        if attempt.ended_at is not None and attempt.ended_at < attempt.started_at:
            yield f"attempt {attempt.number} ended before it started"
    for before, after in pairwise(attempts):
        if before.ended_at is not None and after.started_at < before.ended_at:
            yield f"attempt {after.number} started before attempt {before.number} ended"


def _check_lost(pictures: Sequence[Picture], acknowledged: Collection[str]) -> Iterator[Broken]:
    known = {p.task.id for p in pictures}
    for task_id in acknowledged:
        if TaskId(task_id) not in known:
            yield Broken("lost", task_id, "acknowledged, but the store does not have it")


def _check_starts(pictures: Sequence[Picture], starts: Sequence[Start]) -> Iterator[Broken]:
    """Every start seen from outside is one attempt in the history, of the same worker."""
    recorded = {(p.task.id, a.number): a for p in pictures for a in p.history.attempts}
    seen: set[tuple[str, int]] = set()
    for start in starts:
        key = (TaskId(start.task_id), start.attempt)
        attempt = recorded.get(key)
        if key in seen:
            yield Broken("double_start", start.task_id, f"attempt {start.attempt} started twice")
        elif attempt is None:
            yield Broken("unrecorded_start", start.task_id, f"attempt {start.attempt} not recorded")
        elif start.worker_id is not None and attempt.worker_id != start.worker_id:
            detail = f"attempt {start.attempt} ran on {start.worker_id}, not {attempt.worker_id}"
            yield Broken("unrecorded_start", start.task_id, detail)
        seen.add(key)


def _check_unique(pictures: Sequence[Picture]) -> Iterator[Broken]:
    holders: dict[tuple[str, str], str] = {}
    for task, _ in pictures:
        if task.unique_key is None or task.state in TERMINAL:
            continue
        other = holders.setdefault((task.name, task.unique_key), task.id)
        if other != task.id:
            yield Broken("unique_key", task.id, f"{task.unique_key!r} also belongs to {other}")


def _check_locks(pictures: Sequence[Picture]) -> Iterator[Broken]:
    """By the store's own times, attempts under one lock do not overlap."""
    held: dict[str, list[tuple[Attempt, str]]] = defaultdict(list)
    for task, history in pictures:
        if task.lock is not None:
            held[task.lock] += [(a, task.id) for a in history.attempts]
    for key, attempts in held.items():
        attempts.sort(key=lambda pair: (pair[0].started_at, pair[0].ended_at is None))
        for (before, first), (after, second) in pairwise(attempts):
            if before.ended_at is None or after.started_at < before.ended_at:
                yield Broken("lock_overlap", second, f"{key!r} was still held by task {first}")


def _check_fences(starts: Sequence[Start]) -> Iterator[Broken]:
    """Each holder of a lock got a larger number than the one before, in the order they started."""
    last: dict[str, Start] = {}
    for start in sorted(starts, key=lambda s: s.began):
        if start.lock is None:
            continue
        before = last.get(start.lock)
        if start.fence is None or (before and before.fence and start.fence <= before.fence):
            detail = f"{start.lock!r} got fence {start.fence} after {before and before.fence}"
            yield Broken("fence", start.task_id, detail)
        last[start.lock] = start
