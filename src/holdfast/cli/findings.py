"""What `holdfast doctor` looks at. Pure: facts in, findings out; every finding that is not well has
its fix.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from holdfast.cli.words import ago, duration, plural
from holdfast.core.fleet import (
    ALIVE,
    CALLBACKS,
    HTTP,
    MIRROR,
    WorkerInfo,
    WorkerStatus,
    channel_needed,
    shown_capabilities,
)
from holdfast.core.stats import QueueStats, Stats
from holdfast.core.task import State
from holdfast.core.trouble import Trouble
from holdfast.core.unfit import is_known, unknown_names

REPORT: Final = (
    "Nothing mends this by itself. Keep a copy of the store, and report it with this sentence and "
    "`holdfast version`."
)


class Level(StrEnum):
    """How bad. A problem makes the exit code 1."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: a stable code, a sentence, and what to do about it."""

    level: Level
    code: str
    text: str
    fix: str | None = None


def about_schema(found: int, url: str) -> Finding:
    return Finding(Level.OK, "store", f"{url} answers; its schema has version {found}.")


_WAKE_UPS = {
    "memory": "within this process",
    "sockets": "by sockets between the processes of this host",
    "listen": "by LISTEN/NOTIFY",
    "stream": "by change streams",
    "redis": "through Redis",
}


def about_wake_ups(mode: str, poll: float, *, wants_redis: bool = False) -> Finding:
    """How a sleeping worker learns of new work."""
    if wants_redis and mode != "redis":
        return Finding(
            Level.WARNING,
            "wake_ups",
            "Redis cannot be reached. Until it is back, sleeping workers "
            + (f"are woken {_WAKE_UPS[mode]}." if mode in _WAKE_UPS else "only look for work."),
            "Nothing is lost by it. See that Redis answers at `redis_url`; the log of a worker "
            "says why it does not.",
        )
    if mode in _WAKE_UPS:
        return Finding(Level.OK, "wake_ups", f"Sleeping workers are woken {_WAKE_UPS[mode]}.")
    return Finding(
        Level.WARNING,
        "wake_ups",
        f"Sleeping workers cannot be woken from here: they look every {duration(poll)}.",
        "Nothing is lost by it. Set `redis_url`: MongoDB wakes nobody by itself. Behind pgbouncer "
        "in transaction mode, a direct connection or session pooling does it as well.",
    )


def about_rights(wide: Sequence[Path]) -> Iterator[Finding]:
    """Files of the store that others on this machine may open."""
    if wide:
        yield Finding(
            Level.WARNING,
            "file_rights",
            f"Others than its owner may open {', '.join(map(str, wide))}. Arguments, results and "
            "keys of all tasks are in there.",
            f"If nobody else needs it: chmod 600 {' '.join(shlex.quote(str(p)) for p in wide)}",
        )


def about_check(problems: Sequence[str]) -> Iterator[Finding]:
    """What the store found in itself. An invariant that does not hold has no fix but ours."""
    for found in problems:
        one = found if isinstance(found, Trouble) else Trouble(found)
        level = Level.PROBLEM if one.harmful else Level.WARNING
        yield Finding(level, one.code, str(one), one.fix or (REPORT if one.harmful else None))
    if not problems:
        yield Finding(Level.OK, "store_check", "The store's own checks find nothing.")


def about_workers(workers: Sequence[WorkerInfo], lease: float) -> Iterator[Finding]:
    """Who is alive, and who only seems to be."""
    for worker in workers:
        if worker.status is not WorkerStatus.SILENT:
            continue
        seen = "never" if worker.beat_at is None else ago(worker.beat_at)
        yield Finding(
            Level.PROBLEM,
            "worker_stale",
            f"Worker {worker.id} (pid {worker.pid} on {worker.host}) last beat {seen}; "
            f"it counts as lost after {duration(lease)}.",
            "Any live worker frees its tasks by itself; start one: holdfast worker module:app",
        )
    if live := sum(worker.status in ALIVE for worker in workers):
        yield Finding(Level.OK, "workers", f"{plural(live, 'worker')} alive.")
    else:
        yield Finding(
            Level.WARNING, "no_worker", "No worker is alive.", "holdfast worker module:app"
        )


def about_queues(stats: Stats, workers: Sequence[WorkerInfo]) -> Iterator[Finding]:
    """Queues whose tasks wait for nobody, or for somebody to resume them."""
    live = [w for w in workers if w.status is WorkerStatus.ACTIVE]
    for queue in stats.queues:
        if not (waits := queue.ready + queue.waiting + queue.blocked):
            continue
        if queue.paused:
            yield _paused(queue, waits)
        elif not any(worker.queues is None or queue.queue in worker.queues for worker in live):
            yield Finding(
                Level.PROBLEM,
                "queue_unserved",
                f"Queue {queue.queue!r} holds {plural(waits, 'task')}; no live worker serves it.",
                f"holdfast worker module:app -q {queue.queue}",
            )


def about_demand(
    demand: Mapping[frozenset[str], int], workers: Sequence[WorkerInfo]
) -> Iterator[Finding]:
    """Tasks that wait for a worker that can do, or knows, what none here can. `workers` are all:
    those of servers, too.
    """
    live = [w for w in workers if w.status is WorkerStatus.ACTIVE]
    for name, number in unknown_names(demand).items():
        if not is_known(name, live):
            yield unknown_task(name, plural(number, "task"))
    for requires, number in demand.items():
        if any(requires <= worker.capabilities for worker in live):
            continue
        able = shown_capabilities(requires)
        if able and not any(set(able) <= worker.capabilities for worker in live):
            yield Finding(
                Level.WARNING,
                "missing_capability",
                f"{plural(number, 'task')} wait for a worker with {', '.join(able)}; none has it.",
                "holdfast worker module:app" + "".join(f" --capability {each}" for each in able),
            )
        for need, (code, what, fix) in _PARTS.items():
            if need in requires and not any(need in worker.capabilities for worker in live):
                yield Finding(
                    Level.WARNING, code, f"{plural(number, 'task')} wait for {what}.", fix
                )
        if channel := channel_needed(requires):
            yield Finding(
                Level.WARNING,
                "missing_channel",
                f"{plural(number, 'delivery', 'deliveries')} wait for a worker that is set up to "
                f"deliver by {channel!r}; none is.",
                "Give the workers the settings of that channel: docs/how-to/deliver-results.md",
            )


_PARTS: Final = {
    HTTP: (
        "no_http_worker",
        "a worker over HTTP; none is alive",
        "Start one: docs/reference/http-workers.md",
    ),
    CALLBACKS: (
        "no_server",
        "a server to send a callback; none is alive",
        "holdfast server; or holdfast up module:app",
    ),
    MIRROR: (
        "no_mirror",
        "a worker that reaches what schedules are mirrored to; none does",
        "Set `firestore_url` for the workers.",
    ),
}
"""Who else than an app's worker a task may be for, and where they come from."""


def unknown_task(name: str, number: str) -> Finding:
    return Finding(
        Level.WARNING,
        "unknown_task",
        f"{number} {name!r} wait for a worker that knows it; none does.",
        "Deploy the code that defines it, or import it: "
        "holdfast worker module:app --include that.module",
    )


def _paused(queue: QueueStats, waits: int) -> Finding:
    return Finding(
        Level.WARNING,
        "queue_paused",
        f"Queue {queue.queue!r} is paused with {plural(waits, 'task')} in it.",
        f"holdfast queue resume {queue.queue}",
    )


def about_dead_letters(stats: Stats) -> Iterator[Finding]:
    if count := stats.states.get(State.DEAD_LETTER, 0):
        yield Finding(
            Level.WARNING,
            "dead_letters",
            f"{plural(count, 'dead letter')} waiting for a decision.",
            "holdfast dead list; then holdfast dead replay or discard",
        )
