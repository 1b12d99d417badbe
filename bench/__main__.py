"""Measure Holdfast beside its limits and its peers, in one run, and print the ratios.

    python -m bench [--quick] [--only NAMES] [--json FILE]

A whole run also writes `docs/reference/benchmarks.md`.
Names: sqlite, limit (raw SQL on PostgreSQL), holdfast (on PostgreSQL), and the peers' own.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from bench import rounds, servers, sqlite
from bench.environments import ROOT, Unavailable
from bench.machine import Watch, describe
from bench.page import claims, page
from bench.peers.match import Arena
from bench.peers.roster import HOLDFAST, PEERS
from bench.samples import Samples
from bench.size import FULL, QUICK, Size
from bench.targets import targets

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
NAMES = ("sqlite", "limit", HOLDFAST.key, *(peer.key for peer in PEERS))


def run(only: frozenset[str], size: Size) -> tuple[Samples, str, list[str]]:
    """Measure what was chosen: the samples, a line about the machine, and what is apart."""
    samples, machine, apart = Samples(Watch()), [describe()], list[str]()
    with ExitStack() as stack:
        if only - {"sqlite"}:
            arena = _arena(stack, samples, only)
            if arena.postgres:
                machine.append(arena.postgres.version())
            rounds.play(samples, arena, only, size)
        if "sqlite" in only:
            machine.append(f"SQLite {sqlite3.sqlite_version}")
            sqlite.play(samples, size)
            apart.append(claims(sqlite.claims(size)))
    return samples, ", ".join(machine), apart


def _arena(stack: ExitStack, samples: Samples, only: frozenset[str]) -> Arena:
    """Start the servers that the chosen ones need."""
    needed = {peer.server for peer in (HOLDFAST, *PEERS) if peer.key in only}
    postgres = redis = None
    if "postgres" in needed or "limit" in only:
        postgres = stack.enter_context(servers.postgres())
        samples.watch.servers |= {postgres.pid} if postgres.pid else set()
    if "redis" in needed:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-")))
        try:
            redis = stack.enter_context(servers.redis(folder))
        except Unavailable as problem:
            samples.failures["Redis"] = {"all its peers": str(problem)}
    return Arena(postgres, redis)


def as_json(samples: Samples, machine: str) -> str:
    value = {
        "machine": machine,
        "rates": samples.rates,
        "drains": {name: [asdict(one) for one in many] for name, many in samples.drains.items()},
        "lives": {name: asdict(live) for name, live in samples.lives.items()},
        "targets": [asdict(target) | {"verdict": target.verdict} for target in targets(samples)],
        "failures": samples.failures,
        "foreign_cores": samples.watch.foreign,
    }
    return json.dumps(value, indent=2) + "\n"


def _names(text: str) -> frozenset[str]:
    names = frozenset(text.split(","))
    if unknown := names - set(NAMES):
        raise argparse.ArgumentTypeError(
            f"expected names of {', '.join(NAMES)}; got {', '.join(sorted(unknown))}"
        )
    return names


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="see below"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work at all?")
    parser.add_argument("--only", type=_names, default=frozenset(NAMES), help="measure only these")
    parser.add_argument("--json", type=Path, help="write every sample here too")
    options = parser.parse_args()
    samples, machine, apart = run(options.only, QUICK if options.quick else FULL)
    text = page(samples, machine, apart)
    if options.json:
        options.json.write_text(as_json(samples, machine))
    if not options.quick and options.only == frozenset(NAMES):
        PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
