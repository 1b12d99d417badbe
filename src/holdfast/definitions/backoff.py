"""Which backoff holds for a task, and how a policy is stored with one."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import orjson

from holdfast.core.lifecycle import Backoff
from holdfast.core.retry import RetryPolicy
from holdfast.definitions.options import Retry
from holdfast.logs import EventLog, trace_of

log = EventLog("holdfast.definitions")


def backoff_for(
    task: str,
    stored: str | None,
    defined: Retry | None,
    draw: Callable[[], float],
    default: RetryPolicy,
) -> Backoff:
    """The task's own policy wins over its definition's, that over the default."""
    chosen = defined if stored is None else load_policy(stored)
    if chosen is None or isinstance(chosen, RetryPolicy):
        policy = chosen or default
        return lambda n: policy.delay(n, draw())
    function = chosen
    return lambda n: _asked(task, function, n, draw, default)


def dump_policy(policy: RetryPolicy) -> str:
    """A policy as text."""
    return orjson.dumps(policy).decode()


@lru_cache(maxsize=256)
def load_policy(text: str) -> RetryPolicy:
    return RetryPolicy(**orjson.loads(text))


def _asked(
    task: str,
    function: Callable[[int], float],
    n: int,
    draw: Callable[[], float],
    default: RetryPolicy,
) -> float:
    """Ask a user's function. If it fails, the task still gets its retry, at the default pace."""
    try:
        seconds = float(function(n))
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
        log.error("retry.failed", task_name=task, error=f"returned {seconds!r}")
    except Exception as error:  # noqa: BLE001 - whatever it raises must not cost the task its retry
        log.error("retry.failed", task_name=task, exception=trace_of(error))
    return default.delay(n, draw())
