"""Do ids from Redis make claims quicker? Two databases with the same backlog take turns: one is
claimed from by the product's statement, the other by ids that Redis hands out.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from statistics import median
from uuid import UUID

from bench.environments import ROOT, Unavailable
from bench.filling import fill
from bench.growth import Size as Depth
from bench.handing.claimer import QUEUE, SQL
from bench.machine import Watch
from bench.place import WORKER, Place, worker_info
from bench.resp import Line
from bench.servers import Postgres, Redis, ask, ask_all
from bench.size import Size
from bench.table import spread, table
from holdfast.wiring import open_store

PRODUCT, HANDED = "product", "handed"
MOST = 4
TURNS = 3
"""Of each way in a round. Many short turns: a slow moment of the machine then meets both ways."""
WIN = 1.1
"""Less than this much quicker is noise."""

HEAD = """
Would it pay to hand out the ids of tasks through Redis, and claim them by id?
A prototype (`bench/handing/`) does: a sorted set by rank, one Lua call for each claim, and a \
statement with the product's row changes, but none of its decisions about pause, capabilities, \
expiry, locks, due tasks and order across priorities.
Putting ids in at the submit, and putting back what a dead claimer had, is not counted either; so \
these are upper bounds.
Tasks per second: median (lowest..highest) of {turns} turns; the ratio is the median of the \
turns' own; each claimer is a process with a connection, and {depth:,} tasks wait.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """So many claimers, so many tasks to a claim; `settles`: with the product's own settlement."""

    claimers: int
    batch: int
    tasks: int
    settles: bool = False

    @property
    def title(self) -> str:
        who = "1 claimer" if self.claimers == 1 else f"{self.claimers} claimers"
        return f"{who}, {self.batch} a claim" + (", settled too" if self.settles else "")


CASES = (
    Case(claimers=1, batch=1, tasks=500),
    Case(claimers=MOST, batch=1, tasks=1_000),
    Case(claimers=1, batch=100, tasks=10_000),
    Case(claimers=MOST, batch=100, tasks=20_000),
    Case(claimers=1, batch=100, tasks=10_000, settles=True),
    Case(claimers=MOST, batch=100, tasks=20_000, settles=True),
)


@dataclass(slots=True)
class Found:
    """One case: tasks a second and PostgreSQL's microseconds a task, by way, a turn each."""

    case: Case
    rates: dict[str, list[float]] = field(default_factory=dict)
    costs: dict[str, list[float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """How many times as quick ids from Redis are, turn by turn."""
        turns = zip(self.rates[HANDED], self.rates[PRODUCT], strict=True)
        return median(handed / product for handed, product in turns)


class Crew:
    """Claimers of one way, at their own database."""

    def __init__(self, way: str, url: str, redis_url: str, lane: int) -> None:
        self.url = url
        command = [sys.executable, "-m", "bench.handing.claimer", way]
        variables = {**os.environ, "BENCH_POSTGRES": url, "BENCH_REDIS": redis_url}
        self._claimers = [
            subprocess.Popen(
                [*command, f"{WORKER}-{number}", str(lane)],
                cwd=ROOT,
                env={**variables, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(MOST)
        ]

    def work(self, case: Case) -> float:
        """Seconds from the first begin to the last end."""
        chosen = self._claimers[: case.claimers]
        order = json.dumps([case.batch, case.tasks // case.claimers, case.settles])
        for claimer in chosen:
            assert claimer.stdin is not None
            print(order, file=claimer.stdin, flush=True)
        spans = [json.loads(c.stdout.readline() or "[0, 0, 0]") for c in chosen if c.stdout]
        got = sum(span[2] for span in spans)
        if got != case.tasks:
            raise Unavailable(f"{case.title}: {got:.0f} of {case.tasks} tasks were claimed")
        return float(max(span[1] for span in spans) - min(span[0] for span in spans))

    def close(self) -> None:
        for claimer in self._claimers:
            claimer.kill()
            claimer.communicate()


def measure(postgres: Postgres, queue: Redis, size: Size, watch: Watch) -> list[Found]:
    """Every case in every round, the two ways in turns."""
    cases = [_scaled(case, size.share) for case in CASES]
    found = [Found(case) for case in cases]
    warm_up = Case(claimers=MOST, batch=20, tasks=400)
    depth = size.rounds * TURNS * sum(case.tasks for case in cases) + warm_up.tasks + 10_000
    with ExitStack() as stack:
        crews = {
            way: stack.enter_context(hired(way, postgres, queue, depth))
            for way in (HANDED, PRODUCT)
        }
        for crew in crews.values():
            crew.work(warm_up)
        for number in range(1, size.rounds + 1):
            print(f"ids from Redis: round {number} of {size.rounds}", file=sys.stderr, flush=True)
            for one in found:
                with watch.watching():
                    _round(one, crews, postgres)
    return found


def _scaled(case: Case, share: float) -> Case:
    step = case.claimers * case.batch
    return replace(case, tasks=max(1, int(case.tasks * share) // step) * step)


def _round(one: Found, crews: dict[str, Crew], postgres: Postgres) -> None:
    for crew in crews.values():
        ask(crew.url, SQL["sweep"])  # as the product's workers do now and then
    for way, crew in [*crews.items()] * TURNS:
        before = postgres.cpu()
        rate = one.case.tasks / crew.work(one.case)
        one.rates.setdefault(way, []).append(rate)
        one.costs.setdefault(way, []).append((postgres.cpu() - before) / one.case.tasks * 1e6)


@contextmanager
def hired(way: str, postgres: Postgres, queue: Redis, depth: int) -> Iterator[Crew]:
    """A database with so many tasks ready, a Redis that knows their ids, and claimers."""
    name = f"bench_{way}"
    url = postgres.fresh(name)
    asyncio.run(_fill(url, depth))
    ask(url, SQL["install"])
    if way == HANDED:
        queue.fresh()
        asyncio.run(_load(queue.url, ask_all(url, SQL["ready"])))
    crew = Crew(way, url, queue.url, int(ask(url, SQL["lane"])))
    try:
        yield crew
    finally:
        crew.close()
        postgres.drop(name)


async def _fill(url: str, depth: int) -> None:
    async with open_store(url) as store:
        place = Place(store)
        await place.enter()
        for number in range(MOST):
            await store.register(worker_info(f"{WORKER}-{number}"))
        await fill(place, url, Depth(depth, 0))


async def _load(url: str, rows: Sequence[tuple[UUID, int]]) -> None:
    line = await Line.open(url)
    for start in range(0, len(rows), 1_000):
        piece = rows[start : start + 1_000]
        words = [word for task_id, rank in piece for word in (rank, task_id.bytes)]
        await line.ask("ZADD", QUEUE, *words)
    await line.close()


def text(found: Sequence[Found]) -> str:
    """The end of the part on dispatch, with the verdict."""
    depth = sum(one.case.tasks * len(one.rates[PRODUCT]) for one in found)
    rows = [
        (
            one.case.title,
            spread(one.rates[PRODUCT]),
            spread(one.rates[HANDED]),
            f"{one.ratio:.2f}",
            f"{median(one.costs[PRODUCT]):,.1f}",
            f"{median(one.costs[HANDED]):,.1f}",
        )
        for one in found
    ]
    head = ("", "product", "ids from Redis", "ratio", "PostgreSQL CPU µs", "with ids")
    turns = len(found[0].rates[PRODUCT])
    return HEAD.format(depth=depth, turns=turns) + table(head, rows) + _verdict(found)


def _verdict(found: Sequence[Found]) -> str:
    won = [f"{one.case.title} ({one.ratio:.2f})" for one in found if one.ratio >= WIN]
    lost = [f"{one.case.title} ({one.ratio:.2f})" for one in found if one.ratio <= 1 / WIN]
    return (
        f"\nQuicker with ids from Redis by a tenth or more: {'; '.join(won) or 'no case'}.\n"
        f"Slower by as much: {'; '.join(lost) or 'no case'}.\n"
    )
