"""The result as a page of the docs, which is also what the terminal shows."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from bench.peers.roster import BARE, HOLDFAST, HOLDFAST_SQLITE, HUEY_SQLITE, PEERS, Peer
from bench.rounds import BETWEEN, WITHIN
from bench.samples import BEST, BULK, CALLERS, ONE, RESULTS, SUBMIT, Samples
from bench.sqlite import BATCHES, RAW
from bench.table import table
from bench.target import verdicts
from bench.targets import sqlite_targets, targets

CASES = (SUBMIT, CALLERS, BULK, ONE, BEST, RESULTS)

HEAD = """# Benchmarks

Written by `make bench`; do not edit.
Absolute figures belong to the machine and the minute; the ratios are what counts.
So the limit, Holdfast and the peers take turns within each round, and the medians of the rounds \
are compared.

Machine: {machine}.
Producer, workers and servers share the cores.
"""
POSTGRES = """
## PostgreSQL, and peers

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
SQLITE = """
## SQLite

All with `synchronous=FULL`, results stored in every drain; Huey's best is 2 worker processes.
For raw SQL the two drains are in batches of {one:,} and of {best:,}.

"""


def page(samples: Samples, machine: str, *, postgres: str = "", sqlite: str = "") -> str:
    """Everything that was measured; parts that were not are left out. The last two are texts about
    growth and the like, at the end of their parts.
    """
    parts = [HEAD.format(machine=machine)]
    peers = [peer for peer in (HOLDFAST, *PEERS) if _measured(samples, peer.title)]
    if peers or WITHIN in samples.rates:
        parts += ["\n## Targets\n\n", verdicts(targets(samples)), POSTGRES]
        parts += [_rates(samples, [WITHIN, BETWEEN, *(peer.title for peer in peers)])]
        parts += _if_any(LIVE, _lives(samples, [BARE, *peers]))
        parts += _if_any(COSTS, _costs(samples, peers))
        parts += [SETTINGS, _settings(peers), _failures(samples)]
    parts += [postgres]
    if RAW in samples.rates:
        parts += [SQLITE.format(one=BATCHES[ONE], best=BATCHES[BEST])]
        parts += [_rates(samples, [RAW, HOLDFAST_SQLITE.title, HUEY_SQLITE.title])]
        parts += ["\n", verdicts(sqlite_targets(samples))]
        parts += _if_any("\n", _lives(samples, [HOLDFAST_SQLITE, HUEY_SQLITE]))
    return "".join([*parts, sqlite, _foreign(samples.watch.foreign)])


def _measured(samples: Samples, product: str) -> bool:
    return any(product in found for found in (samples.rates, samples.lives, samples.failures))


def _rates(samples: Samples, products: Iterable[str]) -> str:
    chosen = [name for name in products if _measured(samples, name)]
    used = [case for case in CASES if any(samples.cell(name, case) for name in chosen)]
    rows = [(name, *(samples.cell(name, case) for case in used)) for name in chosen]
    return table(("", *used), rows)


def _lives(samples: Samples, peers: Sequence[Peer]) -> str:
    head = (
        "",
        "p50",
        "p95",
        "p99",
        "tasks",
        "idle CPU %",
        "server %",
        "RSS MiB (PSS)",
        "processes",
    )
    rows = [
        (
            peer.title,
            *(f"{value:,.1f}" for value in (live.p50_ms, live.p95_ms, live.p99_ms)),
            f"{live.tasks}",
            f"{live.cpu_percent:.1f}",
            f"{live.server_cpu_percent:.1f}",
            f"{live.rss_mib:.0f} ({live.pss_mib:.0f})",
            f"{live.processes}",
        )
        for peer in peers
        if (live := samples.lives.get(peer.title))
    ]
    return table(head, rows) if rows else ""


def _costs(samples: Samples, peers: Sequence[Peer]) -> str:
    rows = [
        (
            peer.title,
            f"{statistics.median(d.server_cpu_us for d in drains):,.0f}",
            _bytes([d.wal_bytes for d in drains if d.wal_bytes is not None]),
            f"{statistics.median(d.worker_cpu_us for d in drains):,.0f}",
        )
        for peer in peers
        if (drains := samples.drains.get(peer.title))
    ]
    return table(("", "server CPU µs", "WAL bytes", "worker CPU µs"), rows) if rows else ""


def _bytes(values: list[float]) -> str:
    return f"{statistics.median(values):,.0f}" if values else ""


def _settings(peers: Sequence[Peer]) -> str:
    rows = [(peer.title, peer.settings, peer.leaves) for peer in peers]
    return table(("", "settings", "leaves behind"), rows, numbers=False)


def _failures(samples: Samples) -> str:
    if not samples.failures:
        return ""
    rows = [
        (product, case, reason.replace("|", "/"))
        for product, cases in samples.failures.items()
        for case, reason in cases.items()
    ]
    return "\nNot measured:\n\n" + table(("", "case", "why"), rows, numbers=False)


def _foreign(readings: list[float]) -> str:
    if not readings:
        return "\nHow busy others kept the machine is not known on this system.\n"
    return (
        f"\nOthers kept {statistics.median(readings):.1f} cores busy meanwhile "
        f"(median of {len(readings)} samples; {min(readings):.1f} to {max(readings):.1f}).\n"
    )


def _if_any(before: str, body: str) -> list[str]:
    return [before, body] if body else []
