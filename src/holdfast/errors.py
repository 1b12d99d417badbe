"""Every error Holdfast raises, as one tree.

    HoldfastError
    ├── InvalidArguments          the arguments do not fit the task (also a ValueError)
    │   ├── PayloadRefused        a value that no store may hold: NUL, NaN, too deep, too large …
    │   └── UnfitArguments        those of a stored task do not fit the code of this worker
    ├── InvalidOption             a submit option makes no sense: bad duration … (ValueError)
    │   ├── IdempotencyConflict   the same idempotency key with another body
    │   └── BudgetExceeded        a run that would exceed the budget of its owner or schedule
    ├── ConfigError               a setting is unknown or has a bad value (ValueError)
    ├── NotInitialised            the functional interface was used before `init()`
    ├── TaskNotFound              no task with that id (LookupError)
    ├── UnknownTask               no definition with that name (LookupError)
    ├── InvalidTransition         the task's state does not allow that action
    ├── LeaseLost                 a stale worker was refused; its outcome was not saved
    ├── RecordConflict            a record is of another version; nothing of the commit was written
    ├── WorkerGone                this worker was declared lost; it must register anew
    ├── WorkerNotFound            no worker with that id (LookupError)
    ├── StoreError
    │   ├── StoreUnavailable      disk full, read-only, locked, server away: nothing was written
    │   ├── SchemaMismatch        the database has another schema version; names the command to run
    │   └── Unsupported           this kind of store, or this executor, cannot do that
    ├── TimerUnavailable          the timer service did not take it; a later sweep arms it
    ├── MirrorUnavailable         Firestore did not take it; its task tries again
    ├── ServiceError              a server refused: no or wrong token, too much; or it failed
    ├── ResultTimeout             the result did not come in time (TimeoutError)
    ├── EventTimeout              `ctx.wait_for()`: the event did not come in time (TimeoutError)
    ├── StepRefused               a durable step that cannot be: a name used twice …
    │   └── NonDeterministic      another step than the one that an earlier attempt recorded there
    └── TaskUnsuccessful          raised by `handle.result()` for a task that did not complete
        ├── TaskFailed            failed or dead_letter; carries the task's error
        └── TaskCancelled         cancelled or expired

    Raised *by handlers*, to steer their own task:
    Retry(after=…)    try again, not before `after`; counts as an attempt
    Snooze(after=…)   not now; run again after that time, nothing charged
    Fatal(…)          give up at once: the task becomes `failed`, no retry
    AttemptTimeout    raised inside a handler that ran out of time (thread and process executors)

Each error carries its subject as attributes and says what happened, what it means and what to do.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.core.task import TaskError


class HoldfastError(Exception):
    """The root: catch this to catch everything Holdfast raises."""


class InvalidArguments(HoldfastError, ValueError):
    """The arguments do not fit the task's signature. Nothing was submitted.

    `problems` lists (place, message) pairs; the place is a path such as `items[3].price`.
    """

    def __init__(self, message: str, *, problems: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class PayloadRefused(InvalidArguments):
    """A value that no store may hold; `path` says where it is."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}", problems=((path, problem),))
        self.path = path


class UnfitArguments(InvalidArguments):
    """The arguments of a stored task do not fit the function as this worker has it: another release
    submitted it. It was not run; other workers are offered it.
    """


class InvalidOption(HoldfastError, ValueError):
    """A submit option makes no sense; `option` names it. Nothing was submitted."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option}: {message}")
        self.option = option


class IdempotencyConflict(InvalidOption):
    """The idempotency key was used before with another body."""

    def __init__(self, key: str, task_id: str) -> None:
        super().__init__(
            "idempotency_key",
            f"{key!r} was already used for task {task_id} with another task name or other "
            "arguments. Nothing was submitted. Use a new key for new work, or send exactly the "
            "first body again.",
        )
        self.key = key
        self.task_id = task_id


class BudgetExceeded(InvalidOption):
    """A run was asked for that would exceed a budget. Nothing was run; `budget` names it."""

    def __init__(self, budget: str, reason: str) -> None:
        super().__init__(
            "budget",
            f"{reason}. Nothing was run. Raise the budget {budget!r}, or wait until its period is "
            "over.",
        )
        self.budget = budget


class ConfigError(HoldfastError, ValueError):
    """A setting is unknown or has a bad value; `setting` names it."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(message)
        self.setting = setting


class NotInitialised(HoldfastError, RuntimeError):
    """The functional interface was used before `holdfast.init()`."""


class TaskNotFound(HoldfastError, LookupError):
    """No task with that id: never submitted here, discarded, or pruned by retention."""

    def __init__(self, task_id: str) -> None:
        super().__init__(
            f"no task {task_id!r} in this store. It was never submitted here, was discarded, or "
            "its history was pruned (`retention`). Check the id and the store's URL."
        )
        self.task_id = task_id


class ScheduleNotFound(HoldfastError, LookupError):
    """No schedule of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no schedule {name!r} in this store. `holdfast schedule list` shows them."
        )
        self.name = name


class UnknownTask(HoldfastError, LookupError):
    """No definition with that name is known to this process."""

    def __init__(self, name: str, *, suggestion: str | None = None) -> None:
        hint = f" Did you mean {suggestion!r}?" if suggestion else ""
        super().__init__(
            f"no task named {name!r} is defined here.{hint} "
            "Decorate the function with @app.task and import its module before using it."
        )
        self.name = name
        self.suggestion = suggestion


class InvalidTransition(HoldfastError):
    """The task's state does not allow that action; nothing was changed."""

    def __init__(self, task_id: str, action: str, state: str, allowed: str) -> None:
        super().__init__(
            f"cannot {action} task {task_id}: it is {state}. Only {allowed} tasks allow that; "
            "nothing was changed."
        )
        self.task_id = task_id
        self.action = action
        self.state = state


class LeaseLost(HoldfastError):
    """The attempt is no longer this worker's; what it sent was not saved."""

    def __init__(self, task_id: str, attempt: int, *, holder: str | None = None) -> None:
        now = f"worker {holder!r} has it now" if holder else "the task has moved on"
        super().__init__(
            f"lease on task {task_id} (attempt {attempt}) was lost: {now}. The outcome was not "
            "saved. If a worker pauses longer than `lease` (a stopped process, a suspended "
            "machine), raise `lease`."
        )
        self.task_id = task_id
        self.attempt = attempt
        self.holder = holder


class RecordConflict(HoldfastError):
    """A record is not of the version that a commit replaces; nothing of that commit was written."""

    def __init__(self, kind: str, key: str, expected: int, found: int) -> None:
        there = f"is of version {found}" if found else "is not there"
        wanted = f"version {expected} was to be replaced" if expected else "none was expected"
        super().__init__(
            f"record {kind} {key!r} {there}, and {wanted}: somebody else wrote it meanwhile. "
            "Nothing was written. Read it again and decide anew."
        )
        self.kind = kind
        self.key = key
        self.expected = expected
        self.found = found


class WorkerGone(HoldfastError):
    """The store no longer knows this worker as alive; it must register under a new id."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(
            f"worker {worker_id!r} was declared lost or was never registered. "
            "Its tasks are started elsewhere; it must register anew before it claims again."
        )
        self.worker_id = worker_id


class WorkerNotFound(HoldfastError, LookupError):
    """No worker with that id: never registered here, or gone so long that it was pruned."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(
            f"no worker {worker_id!r} in this store. It never registered here, or has been gone "
            "for longer than `retention`. Check the id; a worker registers anew."
        )
        self.worker_id = worker_id


class StoreError(HoldfastError):
    """Something about the store itself."""


class StoreUnavailable(StoreError):
    """The store cannot take the write now. Nothing was acknowledged; try again later."""


class StoreRefused(StoreUnavailable):
    """The store does not let this account in, or not do this. Who runs already tries again."""


class SchemaMismatch(StoreError):
    """The database has another schema version than this release of Holdfast."""

    def __init__(self, *, found: int, expected: int, where: str) -> None:
        if found < expected:
            fix = "Run `holdfast migrate` (with every worker stopped or of the new version)."
        else:
            fix = "It was made by a newer Holdfast: upgrade this installation."
        super().__init__(
            f"{where} has schema version {found}, this Holdfast expects {expected}. {fix}"
        )
        self.found = found
        self.expected = expected


class Unsupported(StoreError):
    """This kind of store, or the place where the handler runs, cannot do that. Nothing was done."""


class TimerUnavailable(HoldfastError):
    """The timer service cannot be reached, or refuses. A sweep arms later what was not armed."""


class MirrorUnavailable(HoldfastError):
    """What schedules are mirrored to cannot be reached, or refuses. Nothing but the copy is late:
    the task that brings it up to date tries again.
    """


class ServiceError(HoldfastError):
    """A server answered with a problem that the local client does not know: a token that is not
    good or not good for this, too many requests, a failure of its own. `code` is the problem's
    stable name, `problem_id` finds it in the server's log.
    """

    def __init__(
        self, message: str, *, status: int, code: str = "", problem_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.problem_id = problem_id


class ResultTimeout(HoldfastError, TimeoutError):
    """The result did not come in time. The task goes on; ask again later."""


class EventTimeout(HoldfastError, TimeoutError):
    """The event that a handler waited for did not come in time. That is recorded: later attempts
    are told the same, so trying again does not help.
    """

    def __init__(self, event: str, key: str) -> None:
        super().__init__(
            f"event {event!r} with key {key!r} did not come in time. Catch EventTimeout to go on "
            "without it."
        )
        self.event = event
        self.key = key


class StepRefused(HoldfastError):
    """A durable step, sleep or wait cannot be made like this. The task is not tried again: its code
    must change first.
    """


class NonDeterministic(StepRefused):
    """The handler does not go the way that an earlier attempt went: steps were renamed, reordered,
    put in between or taken out while the task was under way.
    """

    def __init__(self, number: int, now: str, recorded: str | None, before: int = 0) -> None:
        there = f"an earlier attempt recorded {recorded} there"
        if recorded is None:
            there = f"an earlier attempt recorded it as number {before}"
        super().__init__(
            f"number {number} of this handler's steps is {now}, but {there}. What was recorded is "
            "not used for something else. Bring back the order and the names that the task began "
            "with (new steps go to the end), or cancel it and submit it anew."
        )
        self.number = number


class TaskUnsuccessful(HoldfastError):
    """The task ended, but not as `completed`."""

    def __init__(self, message: str, *, task_id: str, state: str) -> None:
        super().__init__(message)
        self.task_id = task_id
        self.state = state


class TaskFailed(TaskUnsuccessful):
    """The task is `failed` or `dead_letter`; `error` says what went wrong in its last attempt."""

    def __init__(self, message: str, *, task_id: str, state: str, error: TaskError | None) -> None:
        super().__init__(message, task_id=task_id, state=state)
        self.error = error


class TaskCancelled(TaskUnsuccessful):
    """The task was cancelled, or expired before it could start."""


def _seconds(after: timedelta | float) -> float:
    return after.total_seconds() if isinstance(after, timedelta) else float(after)


class Retry(HoldfastError):
    """Raise in a handler: this attempt failed, try again not before `after` (seconds or timedelta).

    Counts against `max_retries`. Without `after` the task's own backoff applies.
    """

    def __init__(self, message: str = "", *, after: timedelta | float | None = None) -> None:
        super().__init__(message or "the handler asked for a retry")
        self.after = None if after is None else _seconds(after)


class Snooze(HoldfastError):
    """Raise in a handler: not now. The task runs again after `after`; nothing is charged."""

    def __init__(self, message: str = "", *, after: timedelta | float) -> None:
        super().__init__(message or "the handler asked to be run later")
        self.after = _seconds(after)


class Fatal(HoldfastError):
    """Raise in a handler: trying again is pointless. The task becomes `failed` at once."""


class AttemptTimeout(HoldfastError, TimeoutError):
    """Raised inside a handler whose attempt ran out of time."""
