"""What is counted, each metric once, and counts that can be added up.

A process counts for itself; counts of many processes are added, and those of one process at two
times are subtracted, without knowing what they count. Labels come from closed sets, so there are
never more than a few hundred numbers, however many tasks, queues and owners there are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Self

from holdfast.core.task import Json

PREFIX: Final = "holdfast_"

SECONDS: Final = (
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0,
    1500.0, 3600.0,
)  # fmt: skip
"""Where the buckets of waits and runs end: from a pick-up at once to what aging is about."""
ROUND_TRIPS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Kind(StrEnum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """One metric. `name` is without the prefix; `bounds` are those of a histogram's buckets."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    says: str
    bounds: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{PREFIX}{self.name}"


QUEUE_DEPTH: Final = Metric(
    "queue_depth", Kind.GAUGE, ("queue", "priority"), "Tasks that are ready to start."
)
QUEUE_AGE: Final = Metric(
    "queue_age_seconds", Kind.GAUGE, ("priority", "stat"),
    "`oldest`: how long the oldest ready task has waited. `p50`, `p95`: how long those had waited "
    "that were started within the last five minutes.",
)  # fmt: skip
WORKERS: Final = Metric("workers_total", Kind.GAUGE, ("status",), "Workers, by their status.")
CAPACITY_USED: Final = Metric(
    "worker_capacity_used_ratio", Kind.GAUGE, (),
    "Tasks that live workers run, as a share of those that they could run.",
)  # fmt: skip
GATE_PARKED: Final = Metric(
    "gate_parked", Kind.GAUGE, ("kind",), "Tasks that wait before a gate of this kind."
)
OLDEST_TRANSACTION: Final = Metric(
    "store_oldest_transaction_seconds", Kind.GAUGE, (),
    "How long the oldest open transaction keeps dead rows; 0 where stores have none.",
)  # fmt: skip
DEAD_ROWS: Final = Metric(
    "store_dead_rows",
    Kind.GAUGE,
    (),
    "Dead rows in the tables that claims read; 0 where there are none.",
)
TASK_STATES: Final = Metric(
    "task_state_total",
    Kind.COUNTER,
    ("state",),
    "Tasks that a start or an end of an attempt brought into a state.",
)
PROMOTED: Final = Metric(
    "tasks_promoted_total", Kind.COUNTER, ("from", "to"),
    "Tasks that were worth another priority when they were started, because they had waited.",
)  # fmt: skip
DURATIONS: Final = Metric(
    "task_duration_seconds", Kind.HISTOGRAM, ("priority", "status"),
    "How long attempts ran, by how they ended.", SECONDS,
)  # fmt: skip
WAITS: Final = Metric(
    "queue_wait_seconds", Kind.HISTOGRAM, ("priority",),
    "How long tasks had waited when their first attempt started.", SECONDS,
)  # fmt: skip
LOCK_WAITS: Final = Metric(
    "lock_wait_seconds", Kind.HISTOGRAM, (),
    "The same of tasks with a lock: for their turn, and for whoever had it.", SECONDS,
)  # fmt: skip
RETRIES: Final = Metric(
    "task_retries_total", Kind.COUNTER, ("reason", "priority"),
    "Attempts after which the task is tried again.",
)  # fmt: skip
FAILED: Final = Metric(
    "tasks_failed_total", Kind.COUNTER, ("reason",), "Tasks that were given up, dead letters too."
)
DEAD: Final = Metric("tasks_dlq_total", Kind.COUNTER, (), "Tasks that became dead letters.")
LEASES_LOST: Final = Metric(
    "lease_lost_total", Kind.COUNTER, (), "Results that came too late, and were refused."
)
BEATS_FAILED: Final = Metric(
    "worker_heartbeat_failures_total", Kind.COUNTER, (), "Heartbeats that did not reach the store."
)
LATENESS: Final = Metric(
    "schedule_lateness_seconds", Kind.HISTOGRAM, (),
    "How long after its time a run of a schedule was fired.", SECONDS,
)  # fmt: skip
LATENCY: Final = Metric(
    "store_latency_seconds", Kind.HISTOGRAM, ("operation",),
    "How long the store took to answer.", ROUND_TRIPS,
)  # fmt: skip

METRICS: Final = (
    QUEUE_DEPTH, QUEUE_AGE, WORKERS, CAPACITY_USED, GATE_PARKED, OLDEST_TRANSACTION, DEAD_ROWS,
    TASK_STATES, PROMOTED, DURATIONS, WAITS, LOCK_WAITS, RETRIES, FAILED, DEAD, LEASES_LOST,
    BEATS_FAILED, LATENESS, LATENCY,
)  # fmt: skip
BY_NAME: Final = {metric.name: metric for metric in METRICS}

Key = tuple[str, ...]
"""A metric's name and the values of its labels."""


@dataclass(slots=True)
class Spread:
    """How values are spread over buckets: `buckets[n]` counts those up to the n-th bound and above
    the one before, the last one those above all. `micros` is their sum in millionths: a whole
    number, as others would come out a hair smaller when added in another order, and a sum that
    shrinks is taken for one that began anew.
    """

    buckets: list[int]
    micros: int = 0

    @classmethod
    def over(cls, bounds: Sequence[float]) -> Self:
        return cls([0] * (len(bounds) + 1))

    def take(self, bounds: Sequence[float], values: Iterable[float]) -> None:
        """Count some values more. By the thousand it costs a sort, not a look at each."""
        ordered = sorted(values)
        self.micros += round(sum(ordered) * 1e6)
        below = 0
        for number, bound in enumerate(bounds):
            upto = bisect_right(ordered, bound, below)
            self.buckets[number] += upto - below
            below = upto
            if below == len(ordered):
                return
        self.buckets[-1] += len(ordered) - below

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def plus(self, other: Spread, sign: int = 1) -> Spread:
        added = [a + sign * b for a, b in zip(self.buckets, other.buckets, strict=True)]
        return Spread(added, self.micros + sign * other.micros)

    def quantile(self, share: float, bounds: Sequence[float]) -> float | None:
        """The value below which this share lies, as if they were even within a bucket; of the last
        bucket its beginning is told. None if nothing was counted.
        """
        wanted, below, edge = share * self.count, 0, 0.0
        if not self.count:
            return None
        for number, bound in zip(self.buckets, bounds, strict=False):
            if number and below + number >= wanted:
                return edge + (bound - edge) * (wanted - below) / number
            below, edge = below + number, bound
        return bounds[-1]


@dataclass(slots=True)
class Counts:
    """Numbers that only grow, and spreads."""

    numbers: dict[Key, float] = field(default_factory=dict)
    spreads: dict[Key, Spread] = field(default_factory=dict)

    def add(self, metric: Metric, *labels: str, by: float = 1) -> None:
        key = (metric.name, *labels)
        self.numbers[key] = self.numbers.get(key, 0) + by

    def observe(self, metric: Metric, *labels: str, values: Iterable[float]) -> None:
        key = (metric.name, *labels)
        spread = self.spreads.get(key)
        if spread is None:
            spread = self.spreads[key] = Spread.over(metric.bounds)
        spread.take(metric.bounds, values)

    def number(self, metric: Metric, *labels: str) -> float:
        """What was counted with these labels, or with any if there are none."""
        if labels or not metric.labels:
            return self.numbers.get((metric.name, *labels), 0)
        return sum(number for key, number in self.numbers.items() if key[0] == metric.name)

    def spread(self, metric: Metric, *labels: str) -> Spread:
        """The spread of all keys that begin with these labels."""
        wanted, found = (metric.name, *labels), Spread.over(metric.bounds)
        for key, spread in self.spreads.items():
            if key[: len(wanted)] == wanted:
                found = found.plus(spread)
        return found

    def plus(self, other: Counts, sign: int = 1) -> Counts:
        """Both together; with `sign` -1 what has come since `other` was counted."""
        numbers = dict(self.numbers)
        for key, number in other.numbers.items():
            numbers[key] = numbers.get(key, 0) + sign * number
        # Each anew: they change where they are counted.
        spreads = {key: Spread([*each.buckets], each.micros) for key, each in self.spreads.items()}
        for key, spread in other.spreads.items():
            known = spreads.get(key) or Spread([0] * len(spread.buckets))
            spreads[key] = known.plus(spread, sign)
        return Counts(numbers, spreads)

    def since(self, before: Counts) -> Counts:
        """What has come since then."""
        return self.plus(before, -1)

    def copy(self) -> Counts:
        return Counts().plus(self)

    def to_json(self) -> Json:
        return {
            "numbers": [[*key, number] for key, number in self.numbers.items()],
            "spreads": [
                [*key, spread.buckets, spread.micros] for key, spread in self.spreads.items()
            ],
        }

    @classmethod
    def from_json(cls, said: Json) -> Self:
        """What `to_json` gave. What another release counts otherwise is left out."""
        counts = cls()
        for *key, number in said["numbers"]:
            if _is_known(key):
                counts.numbers[tuple(key)] = number
        for *key, buckets, micros in said["spreads"]:
            if _is_known(key) and len(buckets) == len(BY_NAME[key[0]].bounds) + 1:
                counts.spreads[tuple(key)] = Spread(buckets, micros)
        return counts


def _is_known(key: Sequence[str]) -> bool:
    metric = BY_NAME.get(key[0])
    return metric is not None and len(key) == 1 + len(metric.labels)
