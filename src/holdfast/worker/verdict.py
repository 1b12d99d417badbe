"""From what happened in a handler to an `Outcome`: the words that end up in the task's history.

A traceback begins at the first frame that is not ours: the reader is looking for their own code.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterator
from dataclasses import replace
from types import CodeType, TracebackType
from typing import Any, Final, assert_never

from holdfast.core.fleet import knows
from holdfast.core.lifecycle import Deferred, Failed, Outcome, Released, Stopped, Succeeded, Unfit
from holdfast.core.task import Reason, TaskError
from holdfast.core.unfit import SOONEST
from holdfast.definitions.definition import Definition
from holdfast.definitions.steps import Deferral
from holdfast.engine.judging import out_of_time, storable_error
from holdfast.errors import PayloadRefused, Retry, Snooze, UnfitArguments, UnknownTask
from holdfast.worker.forks import end_if_fork
from holdfast.worker.run import Run, StopReason

_WITH_MORE: Final = (BaseExceptionGroup, NameError, AttributeError, ImportError, SyntaxError)
_MOST_FORMATTED: Final = 200
_formatted: Final[dict[tuple[tuple[int, int], ...], tuple[str, list[CodeType]]]] = {}


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
    if isinstance(error, Deferral):
        return Deferred(error.delay, also=error.also)
    if isinstance(error, Snooze):
        return Released(delay=max(0.0, error.after))
    secrets = definition.secrets_in(payload)
    if isinstance(error, Retry):
        return Failed(describe(error, secrets), retry_after=error.after)
    if isinstance(error, UnfitArguments):
        return Unfit(describe(error, secrets), Reason.UNFIT_ARGUMENTS, SOONEST)
    return Failed(describe(error, secrets, retriable=definition.is_retriable(error)))


def came_out(run: Run, error: BaseException) -> Outcome:
    """The body came out with this error, or was made to."""
    if run.stop_reason is not None:
        return stopped(run, error)
    return judge(run.definition, run.claim.payload, error)


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


def _message(
    error: BaseException, otherwise: str = "(its text could not be made: __str__ raised)"
) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - somebody else's __str__
        return otherwise


def _traceback(error: BaseException) -> str | None:
    start = _first_foreign_frame(error.__traceback__)
    if start is None:
        return None
    try:
        if _is_simple(error):
            return _frames(start) + _last_line(error)
        lines = traceback.format_exception(type(error), error, start)
    except Exception:  # noqa: BLE001 - formatting calls __str__ and __repr__ of user objects
        lines = traceback.format_tb(start)
    return "".join(lines)


def _is_simple(error: BaseException) -> bool:
    """Whether its text is its frames and its own words: no notes, no other errors, and no
    suggestions, for which Python looks at the variables of a frame.
    """
    if isinstance(error, _WITH_MORE) or hasattr(error, "__notes__"):
        return False
    return error.__cause__ is None is (None if error.__suppress_context__ else error.__context__)


def _last_line(error: BaseException) -> str:
    """As `traceback.format_exception_only` has it, at a tenth of its cost."""
    kind, said = type(error), _message(error, "<exception str() failed>")
    home = "" if kind.__module__ in {"__main__", "builtins"} else f"{kind.__module__}."
    return f"{home}{kind.__qualname__}: {said}\n" if said else f"{home}{kind.__qualname__}\n"


def _frames(trace: TracebackType) -> str:
    """Its frames as text. In a storm of failures they are the same ones thousands of times, and to
    format them costs more than all else that is done about an attempt.
    """
    steps = list(_steps(trace))
    key = tuple((id(code), at) for code, at in steps)
    known = _formatted.get(key)
    if known is None:
        if len(_formatted) >= _MOST_FORMATTED:
            _formatted.clear()
        text = "".join(["Traceback (most recent call last):\n", *traceback.format_tb(trace)])
        # The code is kept too, so that no other one gets its id.
        known = _formatted[key] = text, [code for code, _ in steps]
    return known[0]


def _steps(trace: TracebackType | None) -> Iterator[tuple[CodeType, int]]:
    while trace is not None:
        yield trace.tb_frame.f_code, trace.tb_lasti
        trace = trace.tb_next


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
