"""Holdfast: a task queue that holds on to every task, and is fast.

But for errors and the words of `core`, names are imported when they are first used: a process that
needs only a part (the supervisor of workers, the heartbeat of one) pays only for that part.
"""

from __future__ import annotations

import typing
from importlib import import_module as _import

from holdfast.core.attempt import Claim, History, Settlement
from holdfast.core.events import Emitted
from holdfast.core.lifecycle import Outcome
from holdfast.core.query import Page, TaskFilter
from holdfast.core.retry import RetryPolicy, exponential, fixed
from holdfast.core.task import Added, Priority, State, Task
from holdfast.core.usage import Usage
from holdfast.errors import (
    AttemptTimeout,
    BudgetExceeded,
    ConfigError,
    EventTimeout,
    Fatal,
    HoldfastError,
    IdempotencyConflict,
    InvalidArguments,
    InvalidOption,
    InvalidTransition,
    LeaseLost,
    NonDeterministic,
    NotInitialised,
    PayloadRefused,
    ResultTimeout,
    Retry,
    ScheduleNotFound,
    SchemaMismatch,
    ServiceError,
    Snooze,
    StepRefused,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    TaskCancelled,
    TaskFailed,
    TaskNotFound,
    TaskUnsuccessful,
    UnknownTask,
    Unsupported,
)

if typing.TYPE_CHECKING:
    from holdfast.agents.run import AgentResult, AgentRun
    from holdfast.app import Holdfast
    from holdfast.definitions.batch import Batch
    from holdfast.definitions.batch_context import BatchContext
    from holdfast.definitions.builders import batch, chain, chord, group
    from holdfast.definitions.call import Call
    from holdfast.definitions.coalescing import Debounce, Throttle
    from holdfast.definitions.composing import Composite, Link
    from holdfast.definitions.context import Context, context
    from holdfast.definitions.definition import Definition
    from holdfast.definitions.handle import Handle
    from holdfast.definitions.limits import Breaker, Fair, Limit, Rate
    from holdfast.definitions.middleware import Middleware, NextRun, NextSettle, NextSubmit
    from holdfast.definitions.references import result_of
    from holdfast.filters import where
    from holdfast.functional import (
        Config,
        get_task,
        get_task_sync,
        init,
        list_tasks,
        list_tasks_sync,
        run_worker,
        submit_task,
        submit_task_sync,
        task,
    )
    from holdfast.http.client import HttpClient
    from holdfast.recurrence import Schedule, every, rrule
    from holdfast.schedules.occurrence import Occurrence
    from holdfast.schedules.series import Series
    from holdfast.settings import Settings

_HOMES = {
    "holdfast.agents.run": ("AgentResult", "AgentRun"),
    "holdfast.app": ("Holdfast",),
    "holdfast.definitions.batch": ("Batch",),
    "holdfast.definitions.batch_context": ("BatchContext",),
    "holdfast.definitions.call": ("Call",),
    "holdfast.definitions.coalescing": ("Debounce", "Throttle"),
    "holdfast.definitions.builders": ("batch", "chain", "chord", "group"),
    "holdfast.definitions.composing": ("Composite", "Link"),
    "holdfast.definitions.context": ("Context", "context"),
    "holdfast.definitions.definition": ("Definition",),
    "holdfast.definitions.handle": ("Handle",),
    "holdfast.definitions.limits": ("Breaker", "Fair", "Limit", "Rate"),
    "holdfast.definitions.middleware": ("Middleware", "NextRun", "NextSettle", "NextSubmit"),
    "holdfast.definitions.references": ("result_of",),
    "holdfast.functional": (
        "Config",
        "get_task",
        "get_task_sync",
        "init",
        "list_tasks",
        "list_tasks_sync",
        "run_worker",
        "submit_task",
        "submit_task_sync",
        "task",
    ),
    "holdfast.http.client": ("HttpClient",),
    "holdfast.recurrence": ("Schedule", "every", "rrule"),
    "holdfast.schedules.occurrence": ("Occurrence",),
    "holdfast.schedules.series": ("Series",),
    "holdfast.settings": ("Settings",),
    "holdfast.filters": ("where",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Added",
    "AgentResult",
    "AgentRun",
    "AttemptTimeout",
    "Batch",
    "BatchContext",
    "Breaker",
    "BudgetExceeded",
    "Call",
    "Claim",
    "Composite",
    "Config",
    "ConfigError",
    "Context",
    "Debounce",
    "Definition",
    "Emitted",
    "EventTimeout",
    "Fair",
    "Fatal",
    "Handle",
    "History",
    "Holdfast",
    "HoldfastError",
    "HttpClient",
    "IdempotencyConflict",
    "InvalidArguments",
    "InvalidOption",
    "InvalidTransition",
    "LeaseLost",
    "Limit",
    "Link",
    "Middleware",
    "NextRun",
    "NextSettle",
    "NextSubmit",
    "NonDeterministic",
    "NotInitialised",
    "Occurrence",
    "Outcome",
    "Page",
    "PayloadRefused",
    "Priority",
    "Rate",
    "ResultTimeout",
    "Retry",
    "RetryPolicy",
    "Schedule",
    "ScheduleNotFound",
    "SchemaMismatch",
    "Series",
    "ServiceError",
    "Settings",
    "Settlement",
    "Snooze",
    "State",
    "StepRefused",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "Task",
    "TaskCancelled",
    "TaskFailed",
    "TaskFilter",
    "TaskNotFound",
    "TaskUnsuccessful",
    "Throttle",
    "UnknownTask",
    "Unsupported",
    "Usage",
    "batch",
    "chain",
    "chord",
    "context",
    "every",
    "exponential",
    "fixed",
    "get_task",
    "get_task_sync",
    "group",
    "init",
    "list_tasks",
    "list_tasks_sync",
    "result_of",
    "rrule",
    "run_worker",
    "submit_task",
    "submit_task_sync",
    "task",
    "where",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_import(home), name)
    globals()[name] = value
    return value
