"""Tells counts and the fleet in the words of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from holdfast.core import metrics
from holdfast.core.fleet import WorkerStatus
from holdfast.core.metrics import METRICS, Counts, Kind, Metric
from holdfast.core.task import Priority
from holdfast.metrics.fleet import Fleet

if TYPE_CHECKING:
    from prometheus_client import Metric as Family

MOST_QUEUES: Final = 200
"""The deepest queues have a label of their own, so many at most; the others share one."""
OTHERS: Final = "(others)"
_QUANTILES: Final = (("p50", 0.5), ("p95", 0.95))


def text_of(families: Iterable[Family], accept: str = "") -> tuple[bytes, str]:
    """What Prometheus is told, and its content type, in the form that it accepts."""
    from prometheus_client import CollectorRegistry  # noqa: PLC0415 - only whoever is asked
    from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - likewise
    from prometheus_client.registry import Collector  # noqa: PLC0415 - likewise

    class Told(Collector):
        def collect(self) -> Iterable[Family]:
            return families

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Told())
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def counted(counts: Counts) -> Iterator[Family]:
    """Counters and histograms."""
    for metric in METRICS:
        if metric.kind is Kind.COUNTER:
            yield _counter(metric, counts)
        elif metric.kind is Kind.HISTOGRAM:
            yield _histogram(metric, counts)


def measured(fleet: Fleet) -> Iterator[Family]:
    """Gauges: how it stands now."""
    yield _depths(fleet)
    yield _ages(fleet)
    statuses = dict.fromkeys(WorkerStatus, 0)
    for worker in fleet.workers:
        statuses[worker.status] += 1
    yield _gauge(metrics.WORKERS, (((each.value,), n) for each, n in statuses.items()))
    yield _gauge(metrics.CAPACITY_USED, [((), fleet.used)])
    yield _gauge(metrics.GATE_PARKED, (((each.value,), n) for each, n in fleet.parked.items()))
    yield _gauge(metrics.OLDEST_TRANSACTION, [((), fleet.stats.oldest_transaction)])
    yield _gauge(metrics.DEAD_ROWS, [((), fleet.stats.dead_rows)])


def _depths(fleet: Fleet) -> Family:
    queues = sorted(fleet.stats.queues, key=lambda queue: -queue.ready)
    depths: dict[tuple[str, str], float] = {}
    for place, queue in enumerate(queues):
        name = queue.queue if place < MOST_QUEUES else OTHERS
        found = {depth.priority: depth.ready for depth in queue.depths}
        for priority in Priority:
            key = (name, priority.value)
            depths[key] = depths.get(key, 0) + found.get(priority, 0)
    return _gauge(metrics.QUEUE_DEPTH, depths.items())


def _ages(fleet: Fleet) -> Family:
    ages: list[tuple[tuple[str, ...], float]] = []
    for priority in Priority:
        ages.append(((priority.value, "oldest"), fleet.oldest.get(priority, 0.0)))
        for stat, share in _QUANTILES:
            wait = fleet.lately.waits[priority].quantile(share, metrics.WAITS.bounds)
            ages.append(((priority.value, stat), wait or 0.0))
    return _gauge(metrics.QUEUE_AGE, ages)


def _gauge(metric: Metric, values: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - as above

    family: Any = GaugeMetricFamily(metric.full_name, metric.says, labels=metric.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    made: Family = family
    return made


def _counter(metric: Metric, counts: Counts) -> Family:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 - as above

    family: Any = CounterMetricFamily(metric.full_name, metric.says, labels=metric.labels)
    if not metric.labels:
        family.add_metric((), counts.number(metric))
    for key, number in sorted(counts.numbers.items()):
        if key[0] == metric.name and metric.labels:
            family.add_metric(key[1:], number)
    made: Family = family
    return made


def _histogram(metric: Metric, counts: Counts) -> Family:
    from prometheus_client.core import HistogramMetricFamily  # noqa: PLC0415 - as above

    family: Any = HistogramMetricFamily(metric.full_name, metric.says, labels=metric.labels)
    spreads = {key[1:]: each for key, each in counts.spreads.items() if key[0] == metric.name}
    if not metric.labels:
        spreads.setdefault((), metrics.Spread.over(metric.bounds))
    for labels, spread in sorted(spreads.items()):
        buckets, below = [], 0
        for bound, number in zip((*map(str, metric.bounds), "+Inf"), spread.buckets, strict=True):
            below += number
            buckets.append((bound, below))
        family.add_metric(labels, buckets, spread.micros / 1e6)
    made: Family = family
    return made
