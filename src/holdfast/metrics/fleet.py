"""The fleet in numbers, now and over the last hour: for `/metrics` and for the overview."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

from holdfast.core.alerts import Alert, Sample, alerts_at
from holdfast.core.fleet import ALIVE, WorkerInfo, WorkerStatus, for_tasks
from holdfast.core.gate import GateKind
from holdfast.core.metrics import Counts
from holdfast.core.stats import Stats
from holdfast.core.task import Priority
from holdfast.metrics.keeping import fleet_counts
from holdfast.metrics.minutes import Minute, Note, between, last_notes, lately
from holdfast.ports.store import Store

AN_HOUR: Final = 61
"""Notes of an hour: its minutes lie between them."""
GATES_LOOKED_AT: Final = 1000
"""Gates of each kind that are added up, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The whole fleet. `lately` is what happened in the last five minutes; `parked` counts who
    waits before gates of a kind.
    """

    now: datetime
    stats: Stats
    workers: Sequence[WorkerInfo]
    counts: Counts
    notes: Sequence[Note]
    lately: Minute
    parked: Mapping[GateKind, int]

    @property
    def minutes(self) -> Sequence[Minute]:
        """The last hour, oldest first, up to the last full minute."""
        return between(self.notes)

    @property
    def alerts(self) -> Sequence[Alert]:
        """What deserves attention, in words."""
        before = [_sample_of(note, self.now) for note in self.notes]
        return alerts_at(self._sample(), before)

    @property
    def oldest(self) -> Mapping[Priority, float]:
        """For how many seconds the oldest ready task of each priority has waited."""
        oldest: defaultdict[Priority, float] = defaultdict(float)
        for queue in self.stats.queues:
            for depth in queue.depths:
                oldest[depth.priority] = max(oldest[depth.priority], depth.oldest_seconds or 0.0)
        return oldest

    @property
    def used(self) -> float:
        """The share of the live workers' capacity that is used."""
        alive = [worker for worker in self.workers if worker.status in ALIVE]
        capacity = sum(worker.capacity for worker in alive)
        return sum(worker.load for worker in alive) / capacity if capacity else 0.0

    def _sample(self) -> Sample:
        lately, ended = self.lately, self.lately.completed + self.lately.failed
        urgent = (Priority.CRITICAL, Priority.HIGH)
        return Sample(
            workers=sum(worker.status is WorkerStatus.ACTIVE for worker in self.workers),
            used=self.used,
            depths={queue.queue: queue.ready for queue in self.stats.queues},
            urgent=sum(
                depth.ready
                for queue in self.stats.queues
                for depth in queue.depths
                if depth.priority in urgent
            ),
            oldest=self.oldest,
            failed_share=lately.failed / ended if ended else 0.0,
            dead_per_minute=60 * lately.dead / lately.seconds,
            oldest_transaction=self.stats.oldest_transaction,
            dead_rows=self.stats.dead_rows,
        )


async def read_fleet(store: Store, stats: Stats, workers: Sequence[WorkerInfo]) -> Fleet:
    """Read what is not in these numbers of it."""
    now, notes = await store.now(), await last_notes(store, AN_HOUR)
    counts = await fleet_counts(store)
    return Fleet(
        now=now,
        stats=stats,
        workers=for_tasks(workers),
        counts=counts,
        notes=notes,
        lately=lately(notes, counts, now),
        parked=await _parked(store),
    )


async def _parked(store: Store) -> Mapping[GateKind, int]:
    parked: dict[GateKind, int] = dict.fromkeys(GateKind, 0)
    for kind in GateKind:
        found = await store.gates(after=f"{kind.value}:", limit=GATES_LOOKED_AT)
        # The names of a kind stand together; those after them are of the next one.
        for one, gates in groupby(found, key=lambda gate: gate.kind):
            if one is kind:
                parked[kind] = sum(gate.parked for gate in gates)
    return parked


def _sample_of(note: Note, now: datetime) -> Sample:
    return Sample(
        ago=(now - note.at).total_seconds(),
        workers=note.workers,
        used=note.running / note.capacity if note.capacity else 0.0,
        depths=note.depths,
        oldest=note.oldest,
    )
