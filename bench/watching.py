"""What metrics and spans cost a drain: the processor time of a worker with them and without, taking
turns, each on a store of its own. Processor time, because a quiet half second on a shared machine
is luck, and because a worker that is busy has nothing else to give.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from tests.kit.otlp import SpanReceiver
from tests.kit.receivers import running

from bench.size import Size
from bench.storms import run_module
from bench.table import table

UNCOUNTED = "nothing counted"
COUNTED = "metrics"
SAMPLED = {
    "metrics and spans, none sampled": "0",
    "metrics and spans, 1 in 1,000": "0.001",
    "metrics and spans, 1 in 100": "0.01",
    "metrics and spans, all": "1",
}
HEAD = """
{tasks:,} no-ops at a time, one worker in a burst; processor time of its process, less that of one \
that finds nothing to do, in microseconds a task, and what that is of the processor time without.
Spans go to a receiver of OTLP on the same machine.
Median of {rounds} rounds, in which all take turns.

"""


@dataclass(frozen=True, slots=True)
class Watching:
    """Microseconds a task by case, of one store."""

    store: str
    costs: dict[str, list[float]]

    def share(self, case: str) -> float:
        """Of the same without anything: the median of the rounds' own ratios."""
        pairs = zip(self.costs[case], self.costs[UNCOUNTED], strict=True)
        return median(with_it / without for with_it, without in pairs)


def measure(store: str, fresh: Callable[[], str], size: Size) -> Watching:
    costs: dict[str, list[float]] = {case: [] for case in (UNCOUNTED, COUNTED, *SAMPLED)}
    with running(SpanReceiver()) as receiver:
        cases = _cases(receiver.url)
        for number in range(1, size.rounds + 1):
            print(f"watching on {store}: round {number}", file=sys.stderr, flush=True)
            for case, variables in cases.items():
                url = fresh()
                run_module(url, "bench.watch_tasks", "1", **variables)
                starting = _drain(url, variables)
                run_module(url, "bench.watch_tasks", str(_tasks(size)), **variables)
                costs[case].append((_drain(url, variables) - starting) / _tasks(size) * 1e6)
                receiver.got.clear()
    return Watching(store, costs)


def _drain(url: str, variables: dict[str, str]) -> float:
    """Seconds of processor time of a worker that does all there is."""
    with _processor_time() as used:
        run_module(url, "holdfast", "worker", "bench.watch_tasks:app", "--burst", **variables)
    return used[0]


def text(found: list[Watching], size: Size) -> str:
    """The part of the page."""
    rows = [
        (case, *(f"{median(one.costs[case]):.1f}, {one.share(case):.2f}" for one in found))
        for case in (UNCOUNTED, COUNTED, *SAMPLED)
    ]
    head = HEAD.format(tasks=_tasks(size), rounds=size.rounds)
    return head + table(("", *(one.store for one in found)), rows)


def _tasks(size: Size) -> int:
    return size.sqlite_tasks


def _cases(receiver: str) -> dict[str, dict[str, str]]:
    spans = {
        "HOLDFAST_OTEL": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver,
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
    }  # fmt: skip
    return {
        UNCOUNTED: {"BENCH_UNCOUNTED": "1"},
        COUNTED: {},
        **{case: {**spans, "OTEL_TRACES_SAMPLER_ARG": share} for case, share in SAMPLED.items()},
    }


@contextmanager
def _processor_time() -> Iterator[list[float]]:
    """Seconds that processes used which ended inside."""
    used: list[float] = []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield used
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
