"""Measure Holdfast beside its limits and its peers, in one run, and print the ratios.

    python -m bench [--quick] [--only NAMES] [--long] [--json FILE]

The page `docs/reference/benchmarks.md` is made of parts, and each part that was measured as a whole
is written into it at once; the others stay as they are. `--quick` writes nothing, and what takes
long (growth, snapshot, bloat) is written only with `--long`: without, it is a brief look.

Names: {names}.
Names of several: {groups}.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.environments import ROOT, Unavailable
from bench.page import part, renewed
from bench.parts import GROUPS, NAMES, PARTS, Part
from bench.run import Run
from bench.size import FULL, QUICK
from bench.stamp import code, stamp

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"


def is_written(one: Part, run: Run) -> bool:
    """Whether the page takes this part from this run."""
    return run.size is not QUICK and one.names <= run.chosen and (run.long or not one.lengthy)


def play(run: Run, page: Path, parts: Sequence[Part] = PARTS) -> dict[str, Any]:
    """Measure what was chosen, part by part; the values of all."""
    values, order = {}, [one.title for one in parts]
    for one in parts:
        if not one.names & run.chosen:
            continue
        run.begin()
        commit = code()
        try:
            found = one.measure(run)
        except Unavailable as problem:
            print(f"{one.title}: not measured: {problem}", file=sys.stderr, flush=True)
            continue
        text = part(one.title, stamp(commit, run.samples.watch, run.versions), found.body)
        print(text, flush=True)
        if is_written(one, run):
            page.write_text(renewed(page.read_text(), {one.title: text}, order))
        values[one.title] = {
            "versions": run.versions,
            "foreign_cores": run.samples.watch.foreign,
            "found": found.data,
        }
    return values


def _names(text: str) -> frozenset[str]:
    words = text.split(",")
    if unknown := set(words) - set(NAMES) - set(GROUPS):
        raise argparse.ArgumentTypeError(
            f"expected names of {', '.join([*GROUPS, *NAMES])}; got {', '.join(sorted(unknown))}"
        )
    return frozenset().union(*(GROUPS.get(word, {word}) for word in words))


def main() -> None:
    groups = "; ".join(f"{name} ({', '.join(sorted(GROUPS[name]))})" for name in GROUPS)
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").format(names=", ".join(NAMES), groups=groups),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="see below",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work at all?")
    parser.add_argument("--only", type=_names, default=frozenset(NAMES), help="measure only these")
    parser.add_argument(
        "--long",
        action="store_true",
        help="growth to 10,000,000 tasks (20 minutes), a snapshot held for 5 minutes, 5,000,000 "
        "tasks for bloat (10 minutes)",
    )
    parser.add_argument("--json", type=Path, help="write every sample here too")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left running
    with ExitStack() as stack:
        size = QUICK if options.quick else FULL
        run = Run(chosen=options.only, size=size, long=options.long, stack=stack)
        values = play(run, PAGE)
    if options.json:
        options.json.write_text(json.dumps(values, indent=2) + "\n")


if __name__ == "__main__":
    main()
