"""Values for tests, complete and consistent; give only what the test is about.

Ids grow with every call, so tasks made later sort later, as in life.
"""

from __future__ import annotations

import itertools
import random
import secrets
import time
from dataclasses import replace
from typing import Any

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.fleet import WorkerInfo
from holdfast.core.gate import Gate, GateKind
from holdfast.core.ids import uuid7
from holdfast.core.lifecycle import (
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    WorkerLost,
    settle,
)
from holdfast.core.priority import Aging
from holdfast.core.task import NewTask, Priority, TaskError, TaskId, WorkerId

Plain = dict[str, Any]

WINDOW = 86_400.0
"""The idempotency window that tests submit with: the default of the product."""

HEAD_STARTS = {priority.value: Aging().head_start(priority) for priority in Priority}
"""What each priority is worth in line, in microseconds, with the default aging."""

_random = random.SystemRandom()
_milliseconds = itertools.count(time.time_ns() // 1_000_000)


def task_id() -> TaskId:
    """A fresh id, larger than every one made before in this process."""
    return uuid7(next(_milliseconds), _random.getrandbits(74))


def worker_id(name: str = "worker") -> WorkerId:
    """A fresh worker id that begins with a readable name."""
    return WorkerId(f"{name}-{secrets.token_hex(4)}")


def new_task(**given: Any) -> NewTask:
    """A task to submit. Its head start follows from its priority unless given."""
    priority = given.get("priority", Priority.NORMAL)
    head_start = HEAD_STARTS[priority]
    plain: Plain = {"id": task_id(), "name": "demo", "payload": b"{}", "head_start": head_start}
    return NewTask(**plain | given)


def new_tasks(number: int, **given: Any) -> list[NewTask]:
    """Several equal tasks, each with its own id."""
    return [new_task(**given) for _ in range(number)]


def behind(task: str) -> tuple[Gate, ...]:
    """The gate that opens when this task ends, or when this latch was counted down."""
    return (Gate(GateKind.LATCH, task.removeprefix("latch:")),)


def worker_info(**given: Any) -> WorkerInfo:
    """A worker to register: all queues, no capabilities, ten slots."""
    plain = WorkerInfo(
        id=worker_id(),
        host="localhost",
        pid=4711,
        version="0",
        queues=None,
        capabilities=frozenset(),
        capacity=10,
    )
    return replace(plain, **given)


def task_error(**given: Any) -> TaskError:
    """An error as a handler's exception would leave it."""
    plain = TaskError(type="ValueError", message="no such row", traceback="Traceback …")
    return replace(plain, **given)


def settled(
    claim: Claim, outcome: Outcome, *, backoff: float = 10.0, crash_limit: int = 3
) -> Settlement:
    """What core makes of an outcome, with a backoff that does not jitter."""
    return settle(claim, outcome, backoff=lambda _: backoff, crash_limit=crash_limit)


def success(claim: Claim, result: bytes = b"null") -> Settlement:
    return settled(claim, Succeeded(result))


def failure(claim: Claim, *, backoff: float = 10.0, **error: Any) -> Settlement:
    """A failed attempt: retried while retries are left, at once final if `retriable` is False."""
    return settled(claim, Failed(task_error(**error)), backoff=backoff)


def timeout(claim: Claim, *, backoff: float = 10.0) -> Settlement:
    error = task_error(type="AttemptTimeout", message="ran longer than 5 s")
    return settled(claim, TimedOut(error), backoff=backoff)


def loss(claim: Claim, *, crash_limit: int = 3) -> Settlement:
    """The worker died: what a rescuer settles an orphan as."""
    error = task_error(type="WorkerLost", message="its worker fell silent")
    return settled(claim, WorkerLost(error), crash_limit=crash_limit)


def release(claim: Claim, delay: float = 0.0) -> Settlement:
    return settled(claim, Released(delay))


def stop(claim: Claim) -> Settlement:
    return settled(claim, Stopped())
