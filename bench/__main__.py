"""Measure Holdfast beside its limits and its peers, in one run, and print the ratios.

    python -m bench [--quick] [--only NAMES] [--growth] [--pinned] [--bloat] [--json FILE]

A whole run also writes `docs/reference/benchmarks.md`.
Names: sqlite, limit (raw SQL on PostgreSQL), holdfast (on PostgreSQL), endurance (growth, an old
snapshot, bloat), service (over HTTP, on PostgreSQL), and the peers' own.
"""

from __future__ import annotations

import argparse
import json
import signal
import sqlite3
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import endurance, growth, rounds, servers, sqlite
from bench.endurance import BLOAT_STOPS, BRIEF, DEEP, LONG_PINNED, Dose
from bench.environments import ROOT, Unavailable
from bench.machine import Watch, describe
from bench.page import page
from bench.peers.match import Arena
from bench.peers.roster import HOLDFAST, PEERS
from bench.samples import Samples
from bench.service import measure as service
from bench.size import FULL, QUICK, Size
from bench.targets import targets

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
NAMES = ("sqlite", "limit", "endurance", "service", HOLDFAST.key, *(peer.key for peer in PEERS))


@dataclass(slots=True)
class Report:
    """What a run has found."""

    samples: Samples
    machine: list[str]
    postgres: str = ""
    service: str = ""
    sqlite: str = ""

    @property
    def page(self) -> str:
        machine = ", ".join(self.machine)
        postgres = self.postgres + self.service
        return page(self.samples, machine, postgres=postgres, sqlite=self.sqlite)


def run(only: frozenset[str], size: Size, dose: Dose) -> Report:
    """Measure what was chosen."""
    report = Report(Samples(Watch()), [describe()])
    with ExitStack() as stack:
        if only - {"sqlite"}:
            arena = _arena(stack, report.samples, only)
            if arena.postgres:
                report.machine.append(arena.postgres.version())
            rounds.play(report.samples, arena, only, size)
            if arena.postgres and "endurance" in only:
                with report.samples.watch.watching():
                    report.postgres = endurance.measure(arena.postgres, dose)
            if arena.postgres and "service" in only:
                with report.samples.watch.watching():
                    report.service = service.measure(arena.postgres, size)
        if "sqlite" in only:
            report.machine.append(f"SQLite {sqlite3.sqlite_version}")
            sqlite.play(report.samples, size)
            report.sqlite = growth.text(sqlite.claims(size))
    return report


def _arena(stack: ExitStack, samples: Samples, only: frozenset[str]) -> Arena:
    """Start the servers that the chosen ones need."""
    needed = {peer.server for peer in (HOLDFAST, *PEERS) if peer.key in only}
    postgres = redis = None
    if "postgres" in needed or only & {"limit", "endurance", "service"}:
        postgres = stack.enter_context(servers.postgres())
        samples.watch.servers |= {postgres.pid} if postgres.pid else set()
    if "redis" in needed:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-")))
        try:
            redis = stack.enter_context(servers.redis(folder))
        except Unavailable as problem:
            samples.failures["Redis"] = {"all its peers": str(problem)}
    return Arena(postgres, redis)


def as_json(report: Report) -> str:
    samples = report.samples
    value = {
        "machine": report.machine,
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
    parser.add_argument("--growth", action="store_true", help="up to 10,000,000 tasks; 20 minutes")
    parser.add_argument("--pinned", action="store_true", help="an old snapshot for 5 minutes")
    parser.add_argument("--bloat", action="store_true", help="5,000,000 tasks through; 10 minutes")
    parser.add_argument("--json", type=Path, help="write every sample here too")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left running
    report = run(options.only, QUICK if options.quick else FULL, _dose(options))
    if options.json:
        options.json.write_text(as_json(report))
    if not options.quick and options.only == frozenset(NAMES):
        PAGE.write_text(report.page)
    print(report.page)


def _dose(options: argparse.Namespace) -> Dose:
    dose = BRIEF if options.quick else Dose()
    return Dose(
        sizes=DEEP if options.growth else dose.sizes,
        pinned_seconds=LONG_PINNED if options.pinned else dose.pinned_seconds,
        bloat_stops=BLOAT_STOPS if options.bloat else (),
    )


if __name__ == "__main__":
    main()
