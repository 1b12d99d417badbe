"""Work made of work: what a link of a chain, a member of a group and a step of a workflow cost,
beside plain tasks in the same run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from bench import flow_peers
from bench.flow_peers import COMPOSERS
from bench.peers.bodies import STEPS
from bench.samples import Samples
from bench.size import Size
from bench.storms import run_module
from bench.table import spread, table

LINKS = 1000
AT_ONCE = 200
"""Workflows that run at a time: each waits for its steps to be on disk, so few share a commit."""
PLAIN, GROUP, CHAIN, WORKFLOW = "plain tasks/s", "group, members/s", "chain, ms a link", "steps/s"
KINDS = {PLAIN: "plain", GROUP: "group", CHAIN: "chain", WORKFLOW: "workflow"}
CASES = tuple(KINDS)
HEAD = """
One worker in a burst, from the first start to the last end.
A group of {tasks:,} tasks, whose end is counted; a chain of {links:,} links, each of which gets \
the result before; {workflows:,} workflows of {steps} durable steps each, {at_once} at a time.
Median (lowest..highest) of the rounds; in brackets, its part of the plain tasks' rate.
The first two rows are Holdfast on that store; Celery, Dramatiq and DBOS are measured in the same \
run (below).

"""


@dataclass(frozen=True, slots=True)
class Flows:
    """Figures by case, of one store or one peer, which may lack some."""

    store: str
    figures: dict[str, list[float]]
    failed: tuple[str, ...] = ()

    def share(self, case: str) -> float:
        """Of the plain tasks in the same run."""
        return median(self.figures[case]) / median(self.figures[PLAIN])


def measure(store: str, fresh: Callable[[], str], size: Size) -> Flows:
    """All rounds, on one store; `fresh` is the URL of an empty one."""
    tasks, figures = size.sqlite_tasks, {case: list[float]() for case in CASES}
    for number in range(1, size.rounds + 1):
        print(f"flows on {store}: round {number} of {size.rounds}", file=sys.stderr, flush=True)
        figures[PLAIN].append(tasks / _seconds(fresh(), "plain", tasks))
        figures[GROUP].append(tasks / _seconds(fresh(), "group", tasks))
        figures[CHAIN].append(1000 * _seconds(fresh(), "chain", LINKS) / LINKS)
        workflows = tasks // STEPS
        seconds = _seconds(fresh(), "workflow", workflows, "--concurrency", str(AT_ONCE))
        figures[WORKFLOW].append(STEPS * workflows / seconds)
    return Flows(store, figures)


def of_peers(samples: Samples) -> list[Flows]:
    """What was measured of each peer, in the units of this table."""
    return [_of_peer(samples, one.peer.title) for one in COMPOSERS]


def _of_peer(samples: Samples, title: str) -> Flows:
    rates, failures = samples.rates.get(title, {}), samples.failures.get(title, {})
    figures = {
        case: [_figure(case, rate) for rate in rates[kind]]
        for case, kind in KINDS.items()
        if kind in rates
    }
    return Flows(title, figures, tuple(case for case in CASES if KINDS[case] in failures))


def _figure(case: str, rate: float) -> float:
    if case == CHAIN:
        return 1000 / rate
    return rate * STEPS if case == WORKFLOW else rate


def text(found: list[Flows], size: Size) -> str:
    """The part of the page."""
    rows = [(one.store, *(_cell(one, case) for case in CASES)) for one in found]
    head = HEAD.format(
        tasks=size.sqlite_tasks,
        links=LINKS,
        workflows=size.sqlite_tasks // STEPS,
        steps=STEPS,
        at_once=AT_ONCE,
    )
    return head + table(("", *CASES), rows) + flow_peers.text(size)


def _cell(one: Flows, case: str) -> str:
    if case not in one.figures:
        return "failed" if case in one.failed else ""
    if case == CHAIN:
        return ", ".join(f"{each:.2f}" for each in sorted(one.figures[case]))
    share = f" ({one.share(case):.2f})" if PLAIN in one.figures else ""
    return f"{spread(one.figures[case])}{share}"


def _seconds(url: str, verb: str, tasks: int, *options: str) -> float:
    run_module(url, "bench.flow_tasks", verb, str(tasks))
    run_module(url, "holdfast", "worker", "bench.flow_tasks:app", "--burst", *options)
    return float(run_module(url, "bench.flow_tasks", "span"))
