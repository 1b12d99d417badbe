"""The workers, as the store knows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.core.task import TaskId, WorkerId

HTTP = "http"
"""The kind of workers over HTTP, and the capability that each of them has. Tasks of a type that no
Python worker can know require it.
"""
SERVER = "server"
"""The kind of the worker that runs what Holdfast brings along; no app's tasks are for it."""
CALLBACKS = "callbacks"
"""The capability of those workers."""
MIRROR = "mirror"
"""The capability of those that can reach what schedules are mirrored to."""
_INTERNAL = (HTTP, CALLBACKS, MIRROR)
_HELD_BY = "token:"
_KNOWS = "task:"
_DELIVERS = "channel:"
_PYTHON = "python:"
_INTERNAL_BEGINNINGS = (_KNOWS, _HELD_BY, _DELIVERS, _PYTHON)


def knows(task_name: str) -> str:
    """The capability of a worker whose code has this task. Every Python worker has it for all that
    it knows; only a task that another worker did not know requires it.
    """
    return f"{_KNOWS}{task_name}"


def unknown_name(capability: str) -> str | None:
    """The name of the task that whoever has this capability knows; None if it is another one."""
    return capability.removeprefix(_KNOWS) if capability.startswith(_KNOWS) else None


def delivers(channel: str) -> str:
    """The capability of a worker that can deliver by this channel: it is set up in its process."""
    return f"{_DELIVERS}{channel}"


def channel_needed(requires: Iterable[str]) -> str | None:
    """The channel by which a task delivers that requires this; None if it is no delivery."""
    found = (each.removeprefix(_DELIVERS) for each in requires if each.startswith(_DELIVERS))
    return next(found, None)


def held_by(token_id: str) -> str:
    """The capability that says with which token a worker over HTTP registered."""
    return f"{_HELD_BY}{token_id}"


def runs_on_python(version: str) -> str:
    """The capability that says which Python a worker runs on; no task requires it."""
    return f"{_PYTHON}{version}"


def python_of(capabilities: Iterable[str]) -> str | None:
    """Which Python a worker runs on; None if it did not say."""
    return next((c.removeprefix(_PYTHON) for c in capabilities if c.startswith(_PYTHON)), None)


def may_speak_for(token_id: str, capabilities: Collection[str]) -> bool:
    """Whether this token is the one that the worker registered with. One that registered before
    that was noted may be spoken for by any.
    """
    noted = [each for each in capabilities if each.startswith(_HELD_BY)]
    return not noted or held_by(token_id) in noted


def is_internal(capability: str) -> bool:
    """Whether Holdfast gave it, to lead a task to workers that may take it: nobody typed it."""
    return capability in _INTERNAL or capability.startswith(_INTERNAL_BEGINNINGS)


def shown_capabilities(capabilities: Iterable[str]) -> list[str]:
    """Those that somebody typed, in order: what people are shown of a worker or a task."""
    return sorted(each for each in capabilities if not is_internal(each))


class WorkerStatus(StrEnum):
    """What a worker says of itself, or what the rescuer found. `silent` is never stored: people are
    shown it of a worker that has not beaten for longer than a lease, and that nobody has buried.
    """

    ACTIVE = "active"
    DRAINING = "draining"
    SILENT = "silent"
    STOPPED = "stopped"
    DEAD = "dead"


ALIVE = frozenset({WorkerStatus.ACTIVE, WorkerStatus.DRAINING})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A registered worker. `beats` counts its heartbeats: it is judged by whether it grows, never
    by a clock.

    `queues` is None for a worker that serves every queue. `kind` is `python`, `server`, or `http`
    for one that speaks to the service. `drain_requested`: an operator wants it to finish and leave.
    `blocked_by` is the task whose body has kept its event loop for longer than a lease.
    """

    id: WorkerId
    host: str
    pid: int
    version: str
    queues: tuple[str, ...] | None
    capabilities: frozenset[str]
    capacity: int
    load: int = 0
    status: WorkerStatus = WorkerStatus.ACTIVE
    beats: int = 0
    started_at: datetime | None = None
    beat_at: datetime | None = None
    kind: str = "python"
    drain_requested: bool = False
    blocked_by: TaskId | None = None

    def seen(self, *, now: datetime, lease: float) -> WorkerInfo:
        """This worker as people are shown it, at this instant of the store's clock."""
        if self.status not in ALIVE or self.beat_at is None:
            return self
        is_silent = (now - self.beat_at).total_seconds() > lease
        return replace(self, status=WorkerStatus.SILENT) if is_silent else self

    def serves(self, queue: str, requires: frozenset[str]) -> bool:
        """Whether this worker would take such a task."""
        return (self.queues is None or queue in self.queues) and requires <= self.capabilities


class Requests(NamedTuple):
    """What people ask of a worker: to stop these of the tasks that it runs, oldest first; to finish
    and leave.
    """

    cancel: Sequence[TaskId] = ()
    drain: bool = False


def for_tasks(workers: Iterable[WorkerInfo]) -> list[WorkerInfo]:
    """Those that apps' tasks may go to."""
    return [worker for worker in workers if worker.kind != SERVER]
