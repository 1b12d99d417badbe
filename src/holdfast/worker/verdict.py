"""From what happened in a handler to an `Outcome`: the words that end up in the task's history.

A traceback begins at the first frame that is not ours: the reader is looking for their own code.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection
from dataclasses import replace
from types import TracebackType
from typing import Any, assert_never

from holdfast.core.fleet import knows
from holdfast.core.lifecycle import Failed, Outcome, Released, Stopped, Succeeded, Unfit
from holdfast.core.task import Reason, TaskError
from holdfast.core.unfit import SOONEST
from holdfast.definitions.definition import Definition
from holdfast.engine.judging import out_of_time, storable_error
from holdfast.errors import PayloadRefused, Retry, Snooze, UnfitArguments, UnknownTask
from holdfast.worker.forks import end_if_fork
from holdfast.worker.run import Run, StopReason


def accept(definition: Definition[..., Any, Any], payload: bytes, value: object) -> Outcome:
    """The handler returned: keep its result, or say why it cannot be kept."""
    end_if_fork()
    try:
        return Succeeded(definition.dump_result(value))
    except Exception as error:  # noqa: BLE001 - a result's own __str__ or serializer may raise anything
        return Failed(_unstorable(error, definition.secrets_in(payload)))


def judge(definition: Definition[..., Any, Any], payload: bytes, error: BaseException) -> Outcome:
    """The handler raised, or its arguments did not fit."""
    end_if_fork(error)
    if isinstance(error, Snooze):
        return Released(delay=max(0.0, error.after))
    secrets = definition.secrets_in(payload)
    if isinstance(error, Retry):
        return Failed(describe(error, secrets), retry_after=error.after)
    if isinstance(error, UnfitArguments):
        return Unfit(describe(error, secrets), Reason.UNFIT_ARGUMENTS, SOONEST)
    return Failed(describe(error, secrets, retriable=definition.is_retriable(error)))


def stopped(run: Run, error: BaseException | None = None) -> Outcome:
    """The run was told to stop; `error` shows where its body was, if it came out at all."""
    end_if_fork(error)
    assert run.stop_reason is not None
    match run.stop_reason:
        case StopReason.TIMED_OUT:
            return _timed_out(run, error)
        case StopReason.CANCELLED:
            return Stopped()
        case StopReason.DRAINED | StopReason.LOST:
            return Released()
        case _:
            assert_never(run.stop_reason)


def unknown(name: str, suggestion: str | None) -> Outcome:
    """No definition of that name in this worker: it goes to those that have one, at once."""
    error = describe(UnknownTask(name, suggestion=suggestion))
    return Unfit(error, Reason.UNKNOWN_TASK, 0.0, knows(name))


def describe(
    error: BaseException, secrets: Collection[str] = (), *, retriable: bool = True
) -> TaskError:
    """An exception as text, with stars for the secrets."""
    told = TaskError(
        type=type(error).__qualname__,
        message=_message(error),
        traceback=_traceback(error),
        retriable=retriable,
    )
    return storable_error(told, secrets)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - somebody else's __str__
        return "(its text could not be made: __str__ raised)"


def _traceback(error: BaseException) -> str | None:
    start = _first_foreign_frame(error.__traceback__)
    if start is None:
        return None
    try:
        lines = traceback.format_exception(type(error), error, start)
    except Exception:  # noqa: BLE001 - formatting calls __str__ and __repr__ of user objects
        lines = traceback.format_tb(start)
    return "".join(lines)


def _first_foreign_frame(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None:
        if not str(trace.tb_frame.f_globals.get("__name__", "")).startswith("holdfast."):
            return trace
        trace = trace.tb_next
    return None


def _unstorable(error: Exception, secrets: Collection[str]) -> TaskError:
    told = storable_error(TaskError(type="PayloadRefused", message=_message(error)), secrets)
    return replace(
        told,
        type=type(error).__qualname__ if isinstance(error, PayloadRefused) else told.type,
        message=f"the handler returned, but its result cannot be stored: {told.message}",
        retriable=False,
    )


def _timed_out(run: Run, error: BaseException | None) -> Outcome:
    trace = (
        None
        if error is None
        else describe(error, run.definition.secrets_in(run.claim.payload)).traceback
    )
    return out_of_time(run.definition.timeout_of(run.claim), " and was stopped", trace)
