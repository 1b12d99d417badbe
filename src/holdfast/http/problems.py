"""Problems that a server tells, as the errors that the local client raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson

from holdfast import errors
from holdfast.core.task import Json
from holdfast.errors import HoldfastError, ServiceError
from holdfast.filters import JSON_WORDS

KINDS: Final[Mapping[str, type[HoldfastError]]] = {
    "invalid_arguments": errors.InvalidArguments,
    "payload_refused": errors.PayloadRefused,
    "invalid_option": errors.InvalidOption,
    "idempotency_conflict": errors.IdempotencyConflict,
    "budget_exceeded": errors.BudgetExceeded,
    "task_not_found": errors.TaskNotFound,
    "schedule_not_found": errors.ScheduleNotFound,
    "schedule_exists": errors.InvalidOption,
    "unknown_task_type": errors.UnknownTask,
    "invalid_transition": errors.InvalidTransition,
    "worker_not_found": errors.WorkerNotFound,
    "store_unavailable": errors.StoreUnavailable,
    "unsupported": errors.Unsupported,
}

OPTIONS: Final = {"expires_in_seconds": "expires", "cursor": "after"} | {
    word: option for option, word in JSON_WORDS.items()
}


def error_of(status: int, body: bytes) -> HoldfastError:
    """The error that an answer means."""
    problem = _read(body)
    code = str(problem.get("code", ""))
    detail = str(problem.get("detail") or f"the server answered with status {status}")
    kind = KINDS.get(code)
    if kind is None:
        return ServiceError(detail, status=status, code=code, problem_id=problem.get("id"))
    # Made past their own constructors, which write other sentences: the server's says it all.
    error = kind.__new__(kind, detail)
    vars(error).update(_attributes(error, problem))
    return error


def _read(body: bytes) -> dict[str, Json]:
    try:
        problem = orjson.loads(body)
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {}


def _attributes(error: HoldfastError, problem: Mapping[str, Json]) -> Mapping[str, Json]:
    field = str(problem.get("field", ""))
    match error:
        case errors.InvalidArguments():
            listed = problem.get("errors") or []
            problems = tuple((_in_arguments(each["field"]), each["message"]) for each in listed)
            return {"problems": problems, "path": _in_arguments(field)}
        case errors.BudgetExceeded():
            return {"option": "budget", "budget": problem.get("budget", "")}
        case errors.InvalidOption():
            option, task_id = OPTIONS.get(field, field), problem.get("task_id", "")
            return {"option": option, "key": problem.get("key", ""), "task_id": task_id}
        case errors.UnknownTask():
            suggestion = problem.get("suggestion")
            return {"name": problem.get("task_type", ""), "suggestion": suggestion}
        case errors.InvalidTransition():
            state, action = problem.get("task_status", ""), problem.get("action", "")
            return {"task_id": problem.get("task_id", ""), "state": state, "action": action}
        case errors.TaskNotFound():
            return {"task_id": problem.get("task_id", "")}
        case errors.ScheduleNotFound():
            return {"name": problem.get("schedule", "")}
        case errors.WorkerNotFound():
            return {"worker_id": problem.get("worker_id", "")}
        case _:
            return {}


def _in_arguments(field: str) -> str:
    return field.removeprefix("parameters.")
