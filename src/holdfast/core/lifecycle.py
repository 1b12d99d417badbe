"""The state machine: which moves are legal, and what an attempt's outcome makes of its task.

Stores never choose a next state. A worker turns what happened into an `Outcome`, `settle` turns
that into a `Settlement`, and the store writes it if the fence (task, attempt, worker) still holds.

`attempt` only grows: it is the fence. What counts against `max_retries` is `charged`, which errors
and timeouts raise, and a lost worker or a deploy does not. A lost worker raises `crash_count`
instead, so that a task which kills its workers stops after `crash_limit` deaths whatever
`max_retries` says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, assert_never

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.record import Changes
from holdfast.core.task import AttemptEnd, Cause, Reason, State, TaskError

TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED, State.DEAD_LETTER})
UNFINISHED = frozenset(State) - TERMINAL
CANCELLABLE_AT_ONCE = frozenset({State.QUEUED, State.RETRYING, State.BLOCKED})
"""Cancelling these ends them; cancelling a running task asks its worker to stop it."""
HURRIED = frozenset({State.QUEUED, State.RETRYING})
"""What an operator may tell not to wait for its time. A queued task that does not is let be."""
REQUEUEABLE = TERMINAL | HURRIED
"""What an operator may start again, or merely hurry."""

MOVES: dict[State, dict[State, str]] = {
    State.QUEUED: {
        State.RUNNING: "a worker claims it",
        State.BLOCKED: "its lock is taken",
        State.CANCELLED: "cancelled or expired",
        State.DEAD_LETTER: "nobody knows it",
    },
    State.BLOCKED: {
        State.QUEUED: "its lock is free",
        State.CANCELLED: "cancelled or expired",
        State.DEAD_LETTER: "nobody knows it",
    },
    State.RUNNING: {
        State.COMPLETED: "the handler returned",
        State.RETRYING: "error or timeout, retries left",
        State.QUEUED: "worker lost, released by a deploy, or unfit for it",
        State.BLOCKED: "the same, and another has its lock",
        State.FAILED: "the error is not retriable",
        State.DEAD_LETTER: "retries used up, poison, or arguments that nobody takes",
        State.CANCELLED: "cancelled while running",
    },
    State.RETRYING: {
        State.QUEUED: "run_at has come",
        State.BLOCKED: "run_at has come, its lock is taken",
        State.CANCELLED: "cancelled or expired",
        State.DEAD_LETTER: "nobody knows it",
    },
    State.COMPLETED: {State.QUEUED: "operator retry", State.BLOCKED: "operator retry, lock taken"},
    State.FAILED: {State.QUEUED: "operator retry", State.BLOCKED: "operator retry, lock taken"},
    State.CANCELLED: {State.QUEUED: "operator retry", State.BLOCKED: "operator retry, lock taken"},
    State.DEAD_LETTER: {State.QUEUED: "replay", State.BLOCKED: "replay, lock taken"},
}
"""Every legal move and what causes it. The picture in the docs is made from this."""

OTHER_WORDS: dict[str, State] = {
    "pending": State.QUEUED,
    "scheduled": State.QUEUED,
    "executing": State.RUNNING,
    "processing": State.RUNNING,
    "succeeded": State.COMPLETED,
    "success": State.COMPLETED,
    "timeout": State.DEAD_LETTER,
    "dead": State.DEAD_LETTER,
}
"""Other products' words for our states, for those who come from there."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned; `result` is JSON. `also` is what it submitted through its context."""

    result: bytes = field(repr=False)
    also: Changes | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised. `retry_after` (seconds) wins over the backoff. `also` comes with it."""

    error: TaskError
    retry_after: float | None = None
    also: Changes | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The attempt ran longer than its timeout and was stopped."""

    error: TaskError


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """The worker, or the process it ran the task in, died without a report."""

    error: TaskError


@dataclass(frozen=True, slots=True)
class Stopped:
    """The attempt was stopped because somebody cancelled the task."""


@dataclass(frozen=True, slots=True)
class Released:
    """Handed back: a deploy, an unstarted prefetch, or the handler snoozed. Charges nothing."""

    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Unfit:
    """This worker's code is of another release: it has no such task, or one that does not take
    these arguments. Charges nothing. Others may have it in `again_in` seconds, if they have the
    capability `needs`; None: it was offered long enough, and is given up.
    """

    error: TaskError
    reason: Reason
    again_in: float | None
    needs: str | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """The attempt gives its slot back and goes on in another one, uncharged: it sleeps (`delay`
    seconds) or stands behind a latch, until its children have ended, say. `also` comes with it.
    """

    delay: float = 0.0
    behind: str | None = None
    also: Changes | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """The task was claimed and must not run: what it depends on did not go well, or nobody needs it
    any more. It is cancelled for this reason.
    """

    reason: Reason
    error: TaskError
    also: Changes | None = None


Outcome = (
    Succeeded | Failed | TimedOut | WorkerLost | Stopped | Released | Unfit | Deferred | Dropped
)
Backoff = Callable[[int], float]
"""Seconds to wait after the n-th charged attempt, n from 1."""


def is_terminal(state: State) -> bool:
    return state in TERMINAL


_COMPLETED: Final = State.COMPLETED
_ENDED_WELL: Final = AttemptEnd.COMPLETED


def settle(claim: Claim, outcome: Outcome, *, backoff: Backoff, crash_limit: int) -> Settlement:
    """Decide what the task becomes now that this attempt has ended."""
    if isinstance(outcome, Succeeded):
        # Nearly all of them, tens of thousands a second: no match, no further call, no names.
        return tuple.__new__(Settlement, (
            claim.task_id, claim.attempt, claim.worker_id, _COMPLETED, _ENDED_WELL, claim.charged,
            claim.crash_count, outcome.result, None, 0.0, None, None, None, outcome.also, None,
        ))  # fmt: skip
    match outcome:
        case Failed(error, _, also) if not error.retriable:
            ended = _end(
                claim,
                State.FAILED,
                AttemptEnd.ERROR,
                error=error,
                charge=1,
                reason=Reason.NOT_RETRIABLE,
            )
            return ended._replace(also=also)
        case Failed(error, retry_after):
            return _try_again(
                claim,
                AttemptEnd.ERROR,
                error,
                backoff,
                retry_after,
                Cause.RETRY,
                Reason.RETRIES_EXHAUSTED,
            )
        case TimedOut(error):
            return _try_again(
                claim, AttemptEnd.TIMEOUT, error, backoff, None, Cause.TIMEOUT, Reason.TIMEOUT
            )
        case WorkerLost(error):
            return _crashed(claim, error, crash_limit)
        case Stopped():
            return _end(claim, State.CANCELLED, AttemptEnd.CANCELLED, reason=Reason.CANCELLED)
        case Released(delay):
            return _wait(
                claim, State.QUEUED, AttemptEnd.RELEASED, delay=delay, cause=Cause.RELEASED
            )
        case Unfit():
            return _unfit(claim, outcome)
        case Deferred(delay, behind, also):
            waiting = _wait(
                claim, State.QUEUED, AttemptEnd.RELEASED, delay=delay, cause=Cause.RESUMED
            )
            return waiting._replace(behind=behind, also=also)
        case Dropped(reason, error, also):
            ended = _end(claim, State.CANCELLED, AttemptEnd.CANCELLED, error=error, reason=reason)
            return ended._replace(also=also)
        case _:
            assert_never(outcome)


def cancelled_instead(settlement: Settlement) -> Settlement:
    """Turn a settlement that would start the task again into a cancelled one.

    A cancel request that arrives while the attempt is failing must win over the retry.
    """
    if settlement.state in TERMINAL:
        return settlement
    return settlement._replace(
        state=State.CANCELLED,
        delay=0.0,
        cause=None,
        reason=Reason.CANCELLED,
        needs=None,
        also=None,
        behind=None,
    )


def ended_idle_as(reason: Reason) -> State:
    """What a task becomes that is ended for this reason while it is not running."""
    return State.DEAD_LETTER if reason is Reason.UNKNOWN_TASK else State.CANCELLED


def _end(
    claim: Claim,
    state: State,
    ended: AttemptEnd,
    *,
    error: TaskError | None = None,
    charge: int = 0,
    reason: Reason | None = None,
) -> Settlement:
    return Settlement(
        claim.task_id, claim.attempt, claim.worker_id, state, ended, claim.charged + charge,
        claim.crash_count, None, error, 0.0, None, reason,
    )  # fmt: skip


def _wait(
    claim: Claim,
    state: State,
    ended: AttemptEnd,
    *,
    delay: float,
    cause: Cause,
    error: TaskError | None = None,
    charge: int = 0,
    crash: int = 0,
) -> Settlement:
    return Settlement(
        claim.task_id, claim.attempt, claim.worker_id, state, ended, claim.charged + charge,
        claim.crash_count + crash, None, error, max(0.0, delay), cause, None,
    )  # fmt: skip


def _try_again(
    claim: Claim,
    ended: AttemptEnd,
    error: TaskError,
    backoff: Backoff,
    retry_after: float | None,
    cause: Cause,
    exhausted: Reason,
) -> Settlement:
    if claim.charged >= claim.max_retries:
        return _end(claim, State.DEAD_LETTER, ended, error=error, charge=1, reason=exhausted)
    delay = backoff(claim.charged + 1) if retry_after is None else retry_after
    return _wait(claim, State.RETRYING, ended, delay=delay, cause=cause, error=error, charge=1)


def _unfit(claim: Claim, outcome: Unfit) -> Settlement:
    error, end = outcome.error, AttemptEnd.RELEASED
    if outcome.again_in is None:
        return _end(claim, State.DEAD_LETTER, end, error=error, reason=outcome.reason)
    waiting = _wait(
        claim, State.QUEUED, end, delay=outcome.again_in, cause=Cause.RELEASED, error=error
    )
    return waiting._replace(needs=outcome.needs)


def _crashed(claim: Claim, error: TaskError, crash_limit: int) -> Settlement:
    if claim.cancel_requested:
        # Nobody is left to stop the body; the worker's death did it.
        return _end(
            claim, State.CANCELLED, AttemptEnd.WORKER_LOST, error=error, reason=Reason.CANCELLED
        )
    if claim.crash_count + 1 >= crash_limit:
        settlement = _end(
            claim, State.DEAD_LETTER, AttemptEnd.WORKER_LOST, error=error, reason=Reason.POISON
        )
        return settlement._replace(crash_count=claim.crash_count + 1)
    return _wait(
        claim,
        State.QUEUED,
        AttemptEnd.WORKER_LOST,
        delay=0.0,
        cause=Cause.WORKER_LOST,
        error=error,
        crash=1,
    )
