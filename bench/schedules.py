"""Ten thousand schedules that are due at one instant: how long until the last of them is fired."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

from bench.size import Size
from bench.storms import environment_of, run_module
from bench.table import table

SCHEDULES = 10_000
BRIEF = 1000
HEAD = """
{number:,} schedules that are due at the same instant, one worker, which also runs their tasks.
Seconds from that instant until the last of them was fired: each round.

"""


@dataclass(frozen=True, slots=True)
class Firing:
    """Seconds, by round."""

    store: str
    seconds: list[float]


def measure(store: str, fresh: Callable[[], str], size: Size) -> Firing:
    seconds = []
    for number in range(1, size.rounds + 1):
        print(f"schedules on {store}: round {number} of {size.rounds}", file=sys.stderr, flush=True)
        seconds.append(_fire(fresh(), _number(size)))
    return Firing(store, seconds)


def text(found: list[Firing], size: Size) -> str:
    """The part of the page."""
    rows = [
        (one.store, f"{median(one.seconds):.2f}", ", ".join(f"{s:.2f}" for s in one.seconds))
        for one in found
    ]
    return HEAD.format(number=_number(size)) + table(("", "median", "rounds"), rows)


def _number(size: Size) -> int:
    return SCHEDULES if size.rounds > 1 else BRIEF


def _fire(url: str, number: int) -> float:
    command = [sys.executable, "-m", "holdfast", "worker", "bench.schedule_tasks:app"]
    started = time.monotonic()
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=number / 400 + 5)
    run_module(url, "bench.schedule_tasks", "create", str(number), at.isoformat())
    assert time.monotonic() - started < number / 400 + 4, "made too late: nothing is due yet"
    with subprocess.Popen(command, env=environment_of(url), stderr=subprocess.DEVNULL) as worker:
        try:
            return float(run_module(url, "bench.schedule_tasks", "fired", str(number)))
        finally:
            worker.terminate()
