"""Work made of work: what a link of a chain, a member of a group and a step of a workflow cost,
beside plain tasks in the same run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from bench.flow_tasks import STEPS
from bench.size import Size
from bench.storms import run_module
from bench.table import spread, table

LINKS = 1000
AT_ONCE = 200
"""Workflows that run at a time: each waits for its steps to be on disk, so few share a commit."""
PLAIN, GROUP, CHAIN, WORKFLOW = "plain tasks/s", "group, members/s", "chain, ms a link", "steps/s"
CASES = (PLAIN, GROUP, CHAIN, WORKFLOW)
HEAD = """
One worker in a burst, from the first start to the last end.
A group of {tasks:,} tasks, whose end is counted; a chain of {links:,} links, each of which gets \
the result before; {workflows:,} workflows of {steps} durable steps each, {at_once} at a time.
Median (lowest..highest) of the rounds; in brackets, its part of the plain tasks' rate.

"""


@dataclass(frozen=True, slots=True)
class Flows:
    """Figures by case, of one store."""

    store: str
    figures: dict[str, list[float]]

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
    return head + table(("", *CASES), rows)


def _cell(one: Flows, case: str) -> str:
    if case == CHAIN:
        return ", ".join(f"{each:.2f}" for each in sorted(one.figures[case]))
    return f"{spread(one.figures[case])} ({one.share(case):.2f})"


def _seconds(url: str, verb: str, tasks: int, *options: str) -> float:
    run_module(url, "bench.flow_tasks", verb, str(tasks))
    run_module(url, "holdfast", "worker", "bench.flow_tasks:app", "--burst", *options)
    return float(run_module(url, "bench.flow_tasks", "span"))
