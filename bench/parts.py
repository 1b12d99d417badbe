"""The parts of the page, in its order: what each is called, and how it is measured."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

from bench import (
    bloat,
    endurance,
    flow_peers,
    flows,
    growth,
    mongo,
    pinned,
    rounds,
    schedules,
    sqlite,
    storms,
    tables,
    watching,
)
from bench.dispatch import measure as dispatch
from bench.dispatch.text import text as dispatch_text
from bench.handing import measure as handing
from bench.peers.roster import BARE, HOLDFAST, HOLDFAST_SQLITE, HUEY_SQLITE, PEERS
from bench.rounds import BETWEEN, WITHIN
from bench.run import Run
from bench.samples import BEST, ONE, Samples
from bench.service import measure as service
from bench.service import pages
from bench.size import Size
from bench.sqlite import BATCHES, RAW
from bench.target import Target, verdicts
from bench.targets import sqlite_targets, targets

T = TypeVar("T")

POSTGRES = """
PostgreSQL with `fsync` and `synchronous_commit` on; Redis without persistence, its quickest.
Every peer runs in an environment of its own, with the best reasonable settings we found (below).
Holdfast validates arguments and stores results in every figure here.
In bulk: 1,000 tasks a call, two calls under way at a time.
Rates are tasks per second: median (lowest..highest) of the rounds.
A drain lasts from the first body to the last one, or to the last finished row where a product \
keeps one.
For raw SQL the two drains are with one and with two sessions or processes.

"""
LIVE = """
Pick-up: milliseconds from the submit call in one process to the body's first line in another, one \
task at a time, at random moments.
Idle: the same worker with nothing to do, and its server.

"""
COSTS = """
What one task costs from the submit to its stored end, with one worker process: processor time and \
write-ahead log of the server, processor time of the worker.

"""
SETTINGS = """
Settings, and what a finished task leaves behind:

"""
SQLITE_HEAD = """
All with `synchronous=FULL`, results stored in every drain; Huey's best is 2 worker processes.
For raw SQL the two drains are in batches of {one:,} and of {best:,}.

"""


class Found(NamedTuple):
    """A part as text, and as values for `--json`."""

    body: str
    data: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One heading of the page."""

    title: str
    names: frozenset[str]
    """What `--only` can choose of it. The page takes the part as a whole or not at all."""
    measure: Callable[[Run], Found]
    lengthy: bool = False
    """Without `--long` this is a brief look, which does not replace what is on the page."""


def _peers(run: Run) -> Found:
    chosen = [peer for peer in (HOLDFAST, *PEERS) if peer.key in run.chosen]
    needed = {peer.server for peer in chosen} | ({"postgres"} if "limit" in run.chosen else set())
    rounds.play(run.samples, run.arena(frozenset(needed)), run.chosen, run.size)
    found = run.samples
    peers = [peer for peer in chosen if tables.measured(found, peer.title)]
    parts = [verdicts(targets(found)), POSTGRES]
    parts += [tables.rates(found, [WITHIN, BETWEEN, *(peer.title for peer in peers)])]
    parts += _if_any(LIVE, tables.lives(found, [BARE, *peers]))
    parts += _if_any(COSTS, tables.costs(found, peers))
    parts += [SETTINGS, tables.settings(peers), tables.failures(found)]
    return Found("".join(parts), _data(found, targets(found)))


def _dispatch(run: Run) -> Found:
    arena = run.arena(frozenset({"postgres", "redis"}))
    found, failures = dispatch.measure(arena, run.size, run.samples.watch)
    data = {title: asdict(one) for title, one in found.items()}
    body = dispatch_text(found, failures)
    if arena.postgres and arena.redis:
        handed = handing.measure(arena.postgres, arena.redis, run.size, run.samples.watch)
        body += handing.text(handed)
        data["ids from Redis"] = {"cases": [asdict(one) for one in handed]}
    return Found(body, {**data, "failures": failures})


def _growth(run: Run) -> Found:
    with run.samples.watch.watching():
        costs = endurance.grow(run.postgres(), endurance.dose(run).sizes)
    return Found(verdicts(growth.targets(costs)) + growth.text(costs), [asdict(c) for c in costs])


def _snapshot(run: Run) -> Found:
    with run.samples.watch.watching():
        held = endurance.hold(run.postgres(), endurance.dose(run).pinned_seconds)
    return Found(verdicts(pinned.targets(held)) + pinned.text(held), asdict(held))


def _bloat(run: Run) -> Found:
    with run.samples.watch.watching():
        sizes = bloat.measure(run.postgres(), endurance.dose(run).bloat_stops)
    return Found(bloat.text(sizes), [asdict(size) for size in sizes])


def _service(run: Run) -> Found:
    with run.samples.watch.watching():
        return Found(service.measure(run.postgres(), run.size))


def _pages(run: Run) -> Found:
    with run.samples.watch.watching():
        return Found(pages.measure(run.postgres(), run.size))


def _storms(run: Run) -> Found:
    found = _on_both(run, storms.measure)
    return Found(storms.text(found, run.size), [asdict(one) for one in found])


def _flows(run: Run) -> Found:
    found = _on_both(run, flows.measure)
    flow_peers.measure(run.samples, run.arena(frozenset({"postgres", "redis"})), run.size)
    found += flows.of_peers(run.samples)
    body = flows.text(found, run.size) + tables.failures(run.samples)
    return Found(body, [asdict(one) for one in found])


def _schedules(run: Run) -> Found:
    found = _on_both(run, schedules.measure)
    return Found(schedules.text(found, run.size), [asdict(one) for one in found])


def _watching(run: Run) -> Found:
    found = _on_both(run, watching.measure)
    return Found(watching.text(found, run.size), [asdict(one) for one in found])


def _on_both(run: Run, measure: Callable[[str, Callable[[], str], Size], T]) -> list[T]:
    """Measured on PostgreSQL and on SQLite, on fresh stores as often as asked for."""
    run.versions.append(f"SQLite {sqlite3.sqlite_version}")
    server = run.postgres()
    with run.samples.watch.watching(), sqlite.scratch() as folder:
        names = itertools.count()
        found = [
            measure("PostgreSQL", lambda: server.fresh("bench_both"), run.size),
            measure("SQLite", lambda: f"sqlite:///{folder}/{next(names)}.db", run.size),
        ]
    server.drop("bench_both")
    return found


def _sqlite(run: Run) -> Found:
    run.versions.append(f"SQLite {sqlite3.sqlite_version}")
    found = run.samples
    sqlite.play(found, run.size)
    parts = [SQLITE_HEAD.format(one=BATCHES[ONE], best=BATCHES[BEST])]
    parts += [tables.rates(found, [RAW, HOLDFAST_SQLITE.title, HUEY_SQLITE.title])]
    parts += ["\n", verdicts(sqlite_targets(found))]
    parts += _if_any("\n", tables.lives(found, [HOLDFAST_SQLITE, HUEY_SQLITE]))
    parts += [tables.failures(found), growth.text(sqlite.claims(run.size))]
    return Found("".join(parts), _data(found, sqlite_targets(found)))


def _mongo(run: Run) -> Found:
    server = run.mongo()
    mongo.play(run.samples, server, run.size)
    return Found(mongo.text(run.samples, server), _data(run.samples, []))


def _if_any(before: str, body: str) -> list[str]:
    return [before, body] if body else []


def _data(samples: Samples, wishes: list[Target]) -> dict[str, Any]:
    return {
        "rates": samples.rates,
        "drains": {name: [asdict(one) for one in many] for name, many in samples.drains.items()},
        "lives": {name: asdict(live) for name, live in samples.lives.items()},
        "targets": [asdict(target) | {"verdict": target.verdict} for target in wishes],
        "failures": samples.failures,
    }


def _one(name: str, title: str, measure: Callable[[Run], Found], *, lengthy: bool = False) -> Part:
    return Part(title=title, names=frozenset({name}), measure=measure, lengthy=lengthy)


PARTS = (
    Part(
        title="PostgreSQL, and peers",
        names=frozenset({"limit", HOLDFAST.key, *(peer.key for peer in PEERS)}),
        measure=_peers,
    ),
    _one("dispatch", "PostgreSQL: what wakes a worker", _dispatch),
    _one("growth", "PostgreSQL: a deep backlog", _growth, lengthy=True),
    _one("snapshot", "PostgreSQL: an old snapshot", _snapshot, lengthy=True),
    _one("bloat", "PostgreSQL: bloat", _bloat, lengthy=True),
    _one("storms", "Storms: retries, requeues and cancels in masses", _storms),
    _one("flows", "Work made of work: groups, chains, steps", _flows),
    _one("schedules", "Schedules: many due at once", _schedules),
    _one("service", "The service, on PostgreSQL", _service),
    _one("watching", "What metrics and spans cost", _watching),
    _one("pages", "The dashboard, on PostgreSQL", _pages),
    _one("sqlite", "SQLite", _sqlite),
    _one("mongo", "MongoDB", _mongo),
)
NAMES = tuple(sorted(frozenset().union(*(part.names for part in PARTS))))
GROUPS = {
    "peers": PARTS[0].names,
    "endurance": frozenset({"growth", "snapshot", "bloat"}),
}
"""Names of several at once."""
