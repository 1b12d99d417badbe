"""Measure Holdfast on SQLite beside its limit and its peer, in one run, and print the ratios.

    python -m bench [--quick] [--json FILE] [--page FILE]

Absolute figures belong to the machine and the minute; the ratios are what counts. So limit, product
and peer take turns within each round, and the medians of the rounds are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from bench import growth, peer_huey
from holdfast.cli import measure
from holdfast.stores.sqlite import limit
from holdfast.worker.settler import MOST_PER_SAVE

BATCHES = (limit.BATCH, MOST_PER_SAVE)
"""The raw limit is measured at a usual batch, and at the largest that the product writes."""


def _raw(batch: int) -> str:
    return f"drain: raw SQL, batches of {batch:,}"


@dataclass(slots=True)
class Samples:
    """Every sample of every case, by name."""

    rates: dict[str, list[float]] = field(default_factory=dict)

    def take(self, name: str, sample: Callable[[], float]) -> None:
        value = sample()
        self.rates.setdefault(name, []).append(value)
        print(f"  {name}: {value:,.0f}/s", file=sys.stderr, flush=True)

    def median(self, name: str) -> float:
        return statistics.median(self.rates[name])

    def row(self, name: str) -> str:
        low, high = min(self.rates[name]), max(self.rates[name])
        return f"{self.median(name):,.0f} ({low:,.0f}..{high:,.0f})"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one sample's database, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        yield Path(name)


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/bench.db"


def drain(count: int, processes: int) -> float:
    with scratch() as folder:
        return measure.measure_drain(_url(folder), count, processes=processes).per_second


def raw(count: int, batch: int) -> float:
    with scratch() as folder:
        return limit.drain_rate(folder / "bench.db", count, batch=batch)


def submit(count: int, callers: int) -> float:
    with scratch() as folder:
        return measure.measure_submit(_url(folder), count, callers=callers).per_second


def bulk(count: int) -> float:
    with scratch() as folder:
        return measure.measure_bulk(_url(folder), count).per_second


def throughput(rounds: int, tasks: int, peer_tasks: int) -> Samples:
    """Limit, product and peer in turn."""
    samples = Samples()
    for number in range(1, rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr)
        for batch in BATCHES:
            samples.take(_raw(batch), partial(raw, tasks, batch))
        samples.take("drain: Holdfast, 1 process", lambda: drain(tasks, 1))
        samples.take("drain: Holdfast, 2 processes", lambda: drain(tasks, 2))
        samples.take("drain: Huey, 1 thread", lambda: peer_huey.drain_rate(peer_tasks))
        samples.take(
            "drain: Huey, 2 processes", lambda: peer_huey.drain_rate(peer_tasks, best=True)
        )
        samples.take("submit one by one: Holdfast", lambda: submit(peer_tasks // 2, 1))
        samples.take("submit by 8 callers: Holdfast", lambda: submit(peer_tasks * 2, 8))
        samples.take("submit in bulk: Holdfast", lambda: bulk(tasks))
        samples.take("submit one by one: Huey", lambda: peer_huey.submit_rate(peer_tasks // 2))
    return samples


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1000


def report(samples: Samples, quick: bool) -> dict[str, object]:
    """Everything measured, as one JSON value."""
    with scratch() as folder:
        ours = measure.measure_pickup(_url(folder), 100 if quick else 300)
    theirs = peer_huey.pickup_seconds(50 if quick else 200)
    with scratch() as folder:
        idle = measure.measure_idle(_url(folder), 5.0 if quick else 20.0)
    deep = 50_000 if quick else 1_000_000
    with scratch() as folder:
        costs = growth.measure(folder / "bench.db", ((1_000, 0), (deep, 0), (deep, deep)))
    best = max(samples.median(f"drain: Holdfast, {n}") for n in ("1 process", "2 processes"))
    huey = max(samples.median(f"drain: Huey, {n}") for n in ("1 thread", "2 processes"))
    return {
        "machine": f"{os.cpu_count()} cores, {platform.system()}, "
        f"CPython {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        "rates": {name: samples.row(name) for name in samples.rates},
        "ratios": {
            **{
                f"drain, best / raw SQL in batches of {batch:,}": best / samples.median(_raw(batch))
                for batch in BATCHES
            },
            "drain, best / Huey, best": best / huey,
            "submit one by one / Huey": samples.median("submit one by one: Holdfast")
            / samples.median("submit one by one: Huey"),
            "claim of 100: deep backlog / 1,000 waiting": costs[1].per_task_in_batches
            / costs[0].per_task_in_batches,
            "claim of 100: deep backlog and history / 1,000 waiting": costs[2].per_task_in_batches
            / costs[0].per_task_in_batches,
        },
        "pick-up": {
            "Holdfast": {"p50": ours.p50_ms, "p95": ours.p95_ms, "p99": ours.p99_ms},
            "Huey": {name: _percentile(theirs, share) for name, share in _SHARES.items()},
        },
        "idle": asdict(idle) if idle else None,
        "claims": [asdict(cost) for cost in costs],
    }


_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def page(result: dict[str, object]) -> str:
    """The result as a page of the docs."""
    rates, ratios = _table(result["rates"]), _table(result["ratios"], "{:.2f}")
    latencies = result["pick-up"]
    assert isinstance(latencies, dict)
    rows = "\n".join(
        f"| {name} | " + " | ".join(f"{value:.1f}" for value in values.values()) + " |"
        for name, values in latencies.items()
    )
    claims = result["claims"]
    assert isinstance(claims, list)
    sizes = "\n".join(
        f"| {c['waiting']:,} | {c['finished']:,} "
        f"| {c['per_task_in_batches']:.1f} | {c['single']:.0f} |"
        for c in claims
    )
    return f"""# Benchmarks

Written by `make bench`; do not edit.
Machine: {result["machine"]}.
All with `synchronous=FULL`, arguments validated, results stored.
Rates are tasks per second: median (lowest..highest) of the rounds.

| case | tasks/s |
|---|---:|
{rates}

| ratio | |
|---|---:|
{ratios}

Pick-up: milliseconds from the submit call in one process to the handler's first line in another,
worker idle.

| | p50 | p95 | p99 |
|---|---:|---:|---:|
{rows}

Idle worker, supervisor included: {_idle(result["idle"])}.

Claims, microseconds, each in a commit of its own:

| waiting | finished | a task in a claim of {growth.BATCH} | a claim of one |
|---:|---:|---:|---:|
{sizes}
"""


def _table(values: object, form: str = "{}") -> str:
    assert isinstance(values, dict)
    return "\n".join(f"| {name} | {form.format(value)} |" for name, value in values.items())


def _idle(idle: object) -> str:
    if not isinstance(idle, dict):
        return "not measured on this system"
    return (
        f"{idle['cpu_percent']:.2f} % CPU, {idle['rss_mib']:.0f} MiB RSS "
        f"({idle['pss_mib']:.0f} MiB PSS) in {idle['processes']} processes"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work at all?")
    parser.add_argument("--json", type=Path, help="write the result here too")
    parser.add_argument("--page", type=Path, help="write the docs page here")
    options = parser.parse_args()
    samples = throughput(*((1, 10_000, 1_000) if options.quick else (3, 100_000, 6_000)))
    result = report(samples, options.quick)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.page:
        options.page.write_text(page(result))
    print(page(result))


if __name__ == "__main__":
    main()
