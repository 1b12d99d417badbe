"""Times, errors and progress as columns of a table, the same in every store that has tables."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from holdfast.core.task import Progress, TaskError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LAST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_FIRST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def in_us(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND


def span_us(seconds: float) -> int:
    """A duration in microseconds. More than all of time is cut, so that sums stay in 64 bits."""
    return round(max(_FIRST, min(seconds * 1_000_000, _LAST)))


def as_time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=max(_FIRST, min(us, _LAST)))


def maybe_time(us: int | None) -> datetime | None:
    return None if us is None else as_time(us)


@lru_cache(maxsize=64)  # in a storm of failures all are alike
def error_text(error: TaskError | None) -> str | None:
    """An error as JSON. Plain ASCII, because messages of exceptions may hold anything, lone
    surrogates and NUL included, and must come back as they were.
    """
    if error is None:
        return None
    return json.dumps([error.type, error.message, error.traceback, error.retriable])


def error_of(text: str | None) -> TaskError | None:
    if text is None:
        return None
    kind, message, traceback, retriable = json.loads(text)
    return TaskError(type=kind, message=message, traceback=traceback, retriable=retriable)


def progress_text(progress: Progress | None) -> str | None:
    if progress is None:
        return None
    return json.dumps([progress.done, progress.total, progress.message])


def progress_of(text: str | None) -> Progress | None:
    if text is None:
        return None
    done, total, message = json.loads(text)
    return Progress(done=done, total=total, message=message)
