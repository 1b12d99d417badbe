"""What the rounds have found, as the tables that several parts of the page share."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from bench.peers.roster import Peer
from bench.samples import BEST, BULK, CALLERS, ONE, RESULTS, SUBMIT, Samples
from bench.table import table

CASES = (SUBMIT, CALLERS, BULK, ONE, BEST, RESULTS)


def measured(samples: Samples, product: str) -> bool:
    """Whether anything is known of a product, be it that it failed."""
    return any(product in found for found in (samples.rates, samples.lives, samples.failures))


def rates(samples: Samples, products: Iterable[str]) -> str:
    """Tasks per second; cases that none of them has are left out."""
    chosen = [name for name in products if measured(samples, name)]
    used = [case for case in CASES if any(samples.cell(name, case) for name in chosen)]
    rows = [(name, *(samples.cell(name, case) for case in used)) for name in chosen]
    return table(("", *used), rows)


def lives(samples: Samples, peers: Sequence[Peer]) -> str:
    """Pick-up and idle cost; nothing if none was measured."""
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


def costs(samples: Samples, peers: Sequence[Peer]) -> str:
    """What a task cost server and worker; nothing if none was measured."""
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


def settings(peers: Sequence[Peer]) -> str:
    rows = [(peer.title, peer.settings, peer.leaves) for peer in peers]
    return table(("", "settings", "leaves behind"), rows, numbers=False)


def failures(samples: Samples) -> str:
    if not samples.failures:
        return ""
    rows = [
        (product, case, reason.replace("|", "/"))
        for product, cases in samples.failures.items()
        for case, reason in cases.items()
    ]
    return "\nNot measured:\n\n" + table(("", "case", "why"), rows, numbers=False)
