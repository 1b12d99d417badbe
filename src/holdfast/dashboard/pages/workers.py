"""Workers: who is at work, on what, and who has fallen silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from holdfast.core.fleet import WorkerInfo, WorkerStatus, shown_capabilities
from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import State
from holdfast.dashboard.page import READ_ALL, Page, Shown, View
from holdfast.server.pages import read_page

page = Page("/workers", "workers.html", "Workers", rule=READ_ALL)

MOST: Final = 200
MOST_RUNNING: Final = 200
SHOWN: Final = 3
"""Tasks that are named beside a worker; its own page has more."""
AT_WORK: Final = (WorkerStatus.ACTIVE, WorkerStatus.DRAINING)
LOST: Final = (WorkerStatus.SILENT, WorkerStatus.DEAD)


class Row(NamedTuple):
    """A worker, and some of what it runs."""

    worker: WorkerInfo
    capabilities: Sequence[str]
    tasks: Sequence[Any]


@page.read
async def read(view: View) -> Shown:
    numbers = await view.service.gauge.numbers(await view.verbs())
    wanted = view.query.get("queue", "")
    workers = [each for each in numbers.workers if not wanted or serves(each, wanted)]
    running = await _running(view)
    rows = {
        name: _rows([each for each in workers if each.status in statuses], running)
        for name, statuses in {
            "at_work": AT_WORK,
            "lost": LOST,
            "stopped": (WorkerStatus.STOPPED,),
        }.items()
    }
    return {
        **rows,
        "queue": wanted,
        "left_out": max(0, len(workers) - MOST),
        "versions": _versions(each for each in workers if each.status in AT_WORK),
    }


def serves(worker: WorkerInfo, queue: str) -> bool:
    """Whether it takes tasks of this queue."""
    return worker.queues is None or queue in worker.queues


async def _running(view: View) -> Sequence[Any]:
    which = TaskFilter(states=frozenset({State.RUNNING}))
    reach = await view.reach()
    found = await read_page(reach, which, limit=MOST_RUNNING, after=None, order=Order.OLDEST)
    return found.tasks


def _rows(workers: Sequence[WorkerInfo], running: Sequence[Any]) -> list[Row]:
    return [
        Row(
            worker,
            shown_capabilities(worker.capabilities),
            [task for task in running if task.worker_id == worker.id][:SHOWN],
        )
        for worker in workers[:MOST]
    ]


def _versions(workers: Iterable[WorkerInfo]) -> list[tuple[str, int]]:
    """Of those at work, if they are not all the same; the one that most have first."""
    found = Counter(worker.version for worker in workers if worker.version)
    return found.most_common() if len(found) > 1 else []
