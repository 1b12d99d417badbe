"""The part on SQLite: limit, Holdfast and Huey take turns within each round, on the same disk."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from bench import growth
from bench.peers import contest
from bench.peers.match import Arena
from bench.peers.roster import HOLDFAST_SQLITE, HUEY_SQLITE
from bench.samples import BEST, BULK, CALLERS, ONE, SUBMIT, Samples
from bench.size import Size
from holdfast.cli import measure
from holdfast.stores.sqlite import limit
from holdfast.worker.settler import MOST_PER_SAVE

RAW = "raw SQL on SQLite"
BATCHES = {ONE: limit.BATCH, BEST: MOST_PER_SAVE}
"""The raw limit is measured at a usual batch, and at the largest that the product writes."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one sample's database, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        yield Path(name)


class Speed(Protocol):
    """What Holdfast's own measure answers with."""

    @property
    def per_second(self) -> float: ...


def on_file(measured: Callable[[str], Speed]) -> float:
    """Measure on a new file."""
    with scratch() as folder:
        return measured(f"sqlite:///{folder}/bench.db").per_second


def raw(tasks: int, batch: int) -> float:
    with scratch() as folder:
        return limit.drain_rate(folder / "bench.db", tasks, batch=batch)


def play(samples: Samples, size: Size) -> None:
    """All rounds, then pick-up and idle cost once."""
    arena = Arena()
    for number in range(1, size.rounds + 1):
        print(f"SQLite: round {number} of {size.rounds}", file=sys.stderr)
        for case, batch in BATCHES.items():
            samples.rate(RAW, case, partial(raw, size.sqlite_tasks, batch))
        ours(samples, size)
        theirs(samples, arena, size)
    for peer in (HOLDFAST_SQLITE, HUEY_SQLITE):
        samples.live(
            peer.title, partial(contest.live, peer, arena, size.pick_ups, size.idle_seconds)
        )


def claims(size: Size) -> list[growth.Cost]:
    """What a claim costs in a shallow store, over a deep backlog, and with a deep history too."""
    deep = size.deep
    sizes = [growth.Size(1_000, 0), growth.Size(deep, 0), growth.Size(deep, deep)]
    with scratch() as folder:
        urls = [f"sqlite:///{folder}/{number}.db" for number in range(len(sizes))]
        return growth.measure(urls, sizes)


def ours(samples: Samples, size: Size) -> None:
    """Holdfast by its own measure, which reads the store's times and so costs a task nothing."""
    name, few = HOLDFAST_SQLITE.title, int(3_000 * size.share)
    for callers, case in ((1, SUBMIT), (8, CALLERS)):
        submit = partial(measure.measure_submit, tasks=few * callers // 2, callers=callers)
        samples.rate(name, case, partial(on_file, submit))
    bulk = partial(measure.measure_bulk, tasks=size.sqlite_tasks)
    samples.rate(name, BULK, partial(on_file, bulk))
    for processes, case in ((1, ONE), (2, BEST)):
        drain = partial(measure.measure_drain, tasks=size.sqlite_tasks, processes=processes)
        samples.rate(name, case, partial(on_file, drain))


def theirs(samples: Samples, arena: Arena, size: Size) -> None:
    """Huey, results kept in every drain, as ours are."""
    peer, share = HUEY_SQLITE, size.share
    samples.rate(peer.title, SUBMIT, partial(contest.submit_rate, peer, arena, share=share))
    for commands, case in ((peer.one, ONE), (peer.best, BEST)):
        drain = partial(contest.drain, peer, arena, commands, results=True, share=share)
        samples.drain(peer.title, case, drain)
