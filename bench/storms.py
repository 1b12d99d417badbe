"""What goes wrong, or stands in line, in masses: every task fails once and is retried at once; all
have to pass one of 10,000 gates; all that ended is started again by filter; all that waits is
cancelled by filter. Each beside a plain drain of as many tasks in the same run: a figure
alone tells more about the machine than about the code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from bench.environments import ROOT, Unavailable
from bench.size import Size
from bench.table import spread, table

DRAIN, STORM, REQUEUE, CANCEL = "plain drain", "retry storm", "requeue", "cancel"
LOCKS, LIMITS = "locks", "limits"
CASES = (DRAIN, STORM, LOCKS, LIMITS, REQUEUE, CANCEL)
BODIES = {STORM: "stormy", LOCKS: "locked", LIMITS: "limited", DRAIN: "plain"}
VARIABLES = {"HOLDFAST_RETRY_BASE": "0s", "HOLDFAST_RETRY_CAP": "0s"}
PATIENCE = 600.0
HEAD = """
{tasks:,} tasks at a time, one worker in a burst, its start included.
In a retry storm every task fails once, with a traceback, is due again at once, and succeeds.
Locks: each task has one of 10,000 lock keys.
Limits: each has one of 10,000 keys, of which five run at a time.
Fair: one tenant's {tasks:,} tasks are worked off, and five others submit their first ones.
How long those wait for their start, in milliseconds: the median of each round.
Requeue and cancel are by filter: all that completed, then all that are queued.
Tasks per second: median (lowest..highest) of the rounds, and the median's part of a plain drain's.

"""


@dataclass(frozen=True, slots=True)
class Storms:
    """Rates by case, of one store."""

    store: str
    rates: dict[str, list[float]]
    first_waits: list[float]

    def share(self, case: str) -> float:
        """Of the plain drain in the same run."""
        return median(self.rates[case]) / median(self.rates[DRAIN])


def measure(store: str, fresh: Callable[[], str], size: Size) -> Storms:
    """All rounds, on one store; `fresh` is the URL of an empty one."""
    tasks, rates = size.sqlite_tasks, {case: list[float]() for case in CASES}
    waits: list[float] = []
    for number in range(1, size.rounds + 1):
        print(f"storms on {store}: round {number} of {size.rounds}", file=sys.stderr, flush=True)
        for case, body in (
            (STORM, "stormy"),
            (LOCKS, "locked"),
            (LIMITS, "limited"),
            (DRAIN, "plain"),
        ):
            url = fresh()
            _act(url, body, tasks)
            rates[case].append(tasks / _drain(url))
        for case in (REQUEUE, CANCEL):
            rates[case].append(tasks / float(_act(url, case, tasks)))
        waits.append(_first_wait(fresh(), tasks))
    return Storms(store, rates, waits)


def text(found: list[Storms], size: Size) -> str:
    """The part of the page."""
    rows = [
        (
            one.store,
            *(f"{spread(one.rates[case])}, {one.share(case):.2f}" for case in CASES),
            spread(one.first_waits),
        )
        for one in found
    ]
    return HEAD.format(tasks=size.sqlite_tasks) + table(("", *CASES, "fair, ms"), rows)


def _act(url: str, verb: str, tasks: int) -> str:
    return run_module(url, "bench.storm_tasks", verb, str(tasks))


def _drain(url: str) -> float:
    begun = time.perf_counter()
    run_module(url, "holdfast", "worker", "bench.storm_tasks:app", "--burst")
    return time.perf_counter() - begun


def _first_wait(url: str, tasks: int) -> float:
    _act(url, "shared", tasks)
    command = [sys.executable, "-m", "holdfast", "worker", "bench.storm_tasks:app"]
    with subprocess.Popen(command, env=environment_of(url), stderr=subprocess.DEVNULL) as worker:
        try:
            return float(_act(url, "first", 0)) * 1000
        finally:
            worker.terminate()


def environment_of(url: str) -> dict[str, str]:
    """The variables for this store."""
    path = f"{ROOT}{os.pathsep}{ROOT / 'src'}"
    return os.environ | VARIABLES | {"HOLDFAST_URL": url, "PYTHONPATH": path}


def run_module(url: str, *module: str, **variables: str) -> str:
    """Run a module with this store; what it printed."""
    ran = subprocess.run(
        [sys.executable, "-m", *module],
        env=environment_of(url) | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if ran.returncode:
        raise Unavailable(f"{' '.join(module)}: {ran.stderr[-300:]}")
    return ran.stdout
