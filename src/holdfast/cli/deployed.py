"""What `holdfast doctor` looks at where a deployment goes wrong rather than a task: clocks, speed,
versions, settings, and who is there for what waits. Pure: facts in, findings out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.cli.findings import Finding, Level, unknown_task
from holdfast.cli.words import duration, plural
from holdfast.core.fleet import (
    ALIVE,
    WorkerInfo,
    WorkerStatus,
    is_internal,
    python_of,
    shown_capabilities,
)
from holdfast.core.unfit import is_known, unknown_names
from holdfast.settings import Settings

SKEW: Final = 1.0
"""Seconds that this host's clock may be off before it is worth a word."""
MUCH_SKEW: Final = 300.0
"""What receivers of signed calls allow, as a rule."""
SLOW_READ, SLOW_WRITE = 0.05, 0.5
LONG_POLL: Final = 10.0


class Measured(NamedTuple):
    """How far this host's clock is ahead of the store's, give or take `doubt`; what a round trip
    and a durable write took. In seconds; `write` is None where none was tried, and `refused` says
    why one failed.
    """

    ahead: float
    doubt: float
    read: float
    write: float | None
    refused: str | None = None


class Wanted(NamedTuple):
    """What a waiting task wants of a worker."""

    name: str
    queue: str
    requires: frozenset[str]


def clock(measured: Measured) -> Iterator[Finding]:
    """This host's clock beside the store's."""
    off = abs(measured.ahead)
    if off <= SKEW + measured.doubt:
        yield Finding(
            Level.OK, "clock", f"This host's clock is within {duration(SKEW)} of the store's."
        )
        return
    which = "ahead of" if measured.ahead > 0 else "behind"
    what = (
        "Tasks, leases and schedules go by the store's, so nothing runs early, late or twice for "
        "it; ids and logs made here do not."
    )
    if off > MUCH_SKEW:
        what += (
            " So far off it does matter: receivers refuse callbacks signed here as too old or not "
            "yet valid, and lists show tasks submitted here out of order."
        )
    yield Finding(
        Level.WARNING,
        "clock",
        f"This host's clock is {duration(off)} {which} the store's. {what}",
        "Let a time service set it (chrony, systemd-timesyncd), here and on the store's host.",
    )


def latency(measured: Measured) -> Iterator[Finding]:
    """How fast the store answers, and writes."""
    if measured.refused is not None:
        yield Finding(
            Level.PROBLEM,
            "store_write",
            f"The store can be read and not written: {measured.refused}",
            "See its disk, its rights, and whether it is a standby.",
        )
    write = "" if measured.write is None else f", a durable write {duration(measured.write)}"
    text = f"The store answers in {duration(measured.read)}{write}."
    if measured.read <= SLOW_READ and (measured.write or 0.0) <= SLOW_WRITE:
        yield Finding(Level.OK, "latency", text)
        return
    yield Finding(
        Level.WARNING,
        "latency",
        f"{text} Every claim and every batch of results waits for that.",
        "Run workers near the store; see what else its disk does; submit and settle in batches "
        "(docs/explanation/performance.md).",
    )


def settings(given: Settings) -> Iterator[Finding]:
    """Settings that are allowed, and that somebody will be sorry for."""
    if given.heartbeat >= given.lease / 2:
        yield Finding(
            Level.WARNING,
            "setting_heartbeat",
            f"heartbeat is {duration(given.heartbeat)} and lease {duration(given.lease)}: a worker "
            "that misses one beat is taken for lost, and its tasks are started elsewhere.",
            "Leave `heartbeat` out (it follows `lease`), or set it to a third of it.",
        )
    if given.poll > LONG_POLL:
        yield Finding(
            Level.WARNING,
            "setting_poll",
            f"poll is {duration(given.poll)}: when a wake-up is lost, and that long after Redis or "
            "the store was away, work waits although workers are idle.",
            "Leave it at 1 s; an idle poll costs next to nothing.",
        )
    if given.sweep > given.lease:
        yield Finding(
            Level.WARNING,
            "setting_sweep",
            f"sweep is {duration(given.sweep)} and lease {duration(given.lease)}: a dead worker is "
            f"found up to {duration(given.lease + given.sweep)} after its last beat, and schedules "
            "may fire as late as that.",
            "Set `sweep` to a fraction of `lease`.",
        )
    if given.idempotency_window > given.retention:
        yield Finding(
            Level.WARNING,
            "setting_idempotency_window",
            f"idempotency_window is {duration(given.idempotency_window)} and retention "
            f"{duration(given.retention)}: a repeat may name a task that is forgotten by then.",
            "Set `retention` to `idempotency_window` or more.",
        )


def versions(workers: Sequence[WorkerInfo], ours: str) -> Iterator[Finding]:
    """Whether all who work together are of one release, and on one Python."""
    live = [worker for worker in workers if worker.status in ALIVE and worker.kind == "python"]
    if not live:
        return
    releases = Counter(worker.version for worker in live)
    pythons = Counter(python_of(worker.capabilities) or "unknown" for worker in live)
    if len(releases) > 1:
        yield Finding(
            Level.WARNING,
            "versions",
            f"Workers of different releases share this store: {_counted(releases)}. In a deploy "
            "that is meant to be; for long, each rule is that of whoever happens to run the task.",
            "Finish the deploy: `holdfast workers` shows who has which.",
        )
    elif set(releases) != {ours}:
        yield Finding(
            Level.WARNING,
            "versions",
            f"The workers are Holdfast {_counted(releases)}; this command is {ours}.",
            "Run commands from the release that the workers have.",
        )
    else:
        yield Finding(Level.OK, "versions", f"All workers are Holdfast {ours}.")
    if len(pythons) > 1:
        yield Finding(
            Level.WARNING,
            "pythons",
            f"Workers run on different Pythons: {_counted(pythons)}. Arguments and results are "
            "JSON and the same to all; what handlers import may not be.",
            "Build all workers from one image or lock file.",
        )


def _counted(each: Mapping[str, int]) -> str:
    return ", ".join(f"{word} ({number})" for word, number in sorted(each.items()))


def oldest_waiting(
    waiting: Mapping[Wanted, int],
    demand: Mapping[frozenset[str], int],
    workers: Sequence[WorkerInfo],
) -> Iterator[Finding]:
    """Of the oldest tasks in line, those that nobody will take although somebody serves their queue
    and somebody has what they require. Queues that nobody serves, and what no one at all has, are
    told by others.
    """
    live = [worker for worker in workers if worker.status is WorkerStatus.ACTIVE]
    told = set(unknown_names(demand))
    unknown, unfit = Counter[str](), Counter[tuple[str, str]]()
    for wanted, number in waiting.items():
        here = [w for w in live if w.queues is None or wanted.queue in w.queues]
        if not here or any(map(is_internal, wanted.requires)):
            continue
        if not is_known(wanted.name, live) and wanted.name not in told:
            unknown[wanted.name] += number
        elif any(wanted.requires <= w.capabilities for w in live) and not any(
            wanted.requires <= w.capabilities for w in here
        ):
            unfit[wanted.queue, ", ".join(shown_capabilities(wanted.requires))] += number
    for name, number in unknown.items():
        yield unknown_task(name, f"At least {plural(number, 'task')}")
    for (queue, able), number in unfit.items():
        yield Finding(
            Level.WARNING,
            "capability_elsewhere",
            f"At least {plural(number, 'task')} in queue {queue!r} wait for a worker with {able}: "
            "workers that have it do not serve that queue.",
            f"holdfast worker module:app -q {queue}"
            + "".join(f" --capability {each}" for each in able.split(", ")),
        )
