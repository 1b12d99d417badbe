"""What deserves somebody's attention: each rule once, for Prometheus and for the overview.

`query` is the rule in PromQL, over the names that the recording rules give; rates are over the
counters as they are scraped, since the largest of several servers' counters may shrink when one
leaves. `value` is the same over what a server reads from the store, for those who have no
Prometheus. A rule with `minutes` must have held for so long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from holdfast.core.metrics import DEAD, TASK_STATES
from holdfast.core.task import Priority


class Severity(StrEnum):
    """How soon somebody should look."""

    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The fleet at one moment, `ago` seconds before now. `failed_share` and `dead_per_minute` are
    about the last five minutes; `used` is the share of the workers' capacity that is used; ages are
    in seconds.
    """

    workers: int
    ago: float = 0.0
    used: float = 0.0
    depths: Mapping[str, int] = field(default_factory=dict)
    urgent: int = 0
    oldest: Mapping[Priority, float] = field(default_factory=dict)
    failed_share: float = 0.0
    dead_per_minute: float = 0.0
    oldest_transaction: float = 0.0
    dead_rows: int = 0

    @property
    def deepest(self) -> tuple[str, int]:
        """The queue with the most ready tasks, and how many."""
        return max(self.depths.items(), key=lambda each: each[1], default=("", 0))


class Rule(NamedTuple):
    """One rule. `title` says what it is about, `says` how it stands, `about` is what to look at.
    One with `minutes` may look at no more of a sample than the notes of a minute tell.
    """

    name: str
    severity: Severity
    minutes: int
    title: str
    query: str
    limit: float
    value: Callable[[Sample], float]
    says: Callable[[Sample], str]
    advice: str
    about: str


class Alert(NamedTuple):
    """A rule that holds now, in words."""

    name: str
    severity: Severity
    text: str
    advice: str
    about: str


LOW_WAITS: Final = 1500.0
URGENT_DEPTH: Final = 1000
ANY_DEPTH: Final = 5000
FAILED_SHARE: Final = 0.25
DEAD_PER_MINUTE: Final = 10.0
USED: Final = 0.9
LONG_TRANSACTION: Final = 300.0
MANY_DEAD_ROWS: Final = 1_000_000

PATIENCE: Final = 180.0
"""The note that shows how it stood when a rule's minutes began may be older by so many seconds."""


def _rate(states: str) -> str:
    counter = f"holdfast_{TASK_STATES.name}"
    return f'sum(max by (state) (rate({counter}{{state=~"{states}"}}[5m])))'


def _pinned(now: Sample) -> str:
    if now.dead_rows > MANY_DEAD_ROWS:
        return f"{now.dead_rows:,} dead rows slow claims down."
    minutes = now.oldest_transaction / 60
    return f"A transaction has been open for {minutes:.0f} minutes, and keeps dead rows."


RULES: Final = (
    Rule(
        "HoldfastNoWorker", Severity.CRITICAL, 2,
        "No worker has been active for two minutes.",
        '(sum(workers_total{status="active"}) or vector(0)) < 1', 0,
        lambda now: 1 - min(1, now.workers),
        lambda _: "No worker is active: nothing is being started.",
        "Start one with `holdfast worker`, or look why they have left.", "workers",
    ),
    Rule(
        "HoldfastUrgentBacklog", Severity.CRITICAL, 0,
        f"More than {URGENT_DEPTH:,} tasks of high or critical priority are ready and wait.",
        f'sum(queue_depth{{priority=~"critical|high"}}) > {URGENT_DEPTH}', URGENT_DEPTH,
        lambda now: now.urgent,
        lambda now: f"{now.urgent:,} tasks of high or critical priority are ready and wait.",
        "Add workers, or look what they are busy with.", "queues",
    ),
    Rule(
        "HoldfastFailures", Severity.WARNING, 0,
        f"More than {FAILED_SHARE:.0%} of what ended in the last five minutes has failed.",
        f"{_rate('failed|dead_letter')} / {_rate('completed|failed|dead_letter')} > {FAILED_SHARE}",
        FAILED_SHARE,
        lambda now: now.failed_share,
        lambda now: f"{now.failed_share:.0%} of what ended in the last five minutes has failed.",
        "Look at the newest errors; a breaker keeps a broken dependency from eating retries.",
        "dead-letters",
    ),
    Rule(
        "HoldfastDeadLetters", Severity.WARNING, 0,
        f"More than {DEAD_PER_MINUTE:.0f} tasks a minute become dead letters.",
        f"max(rate(holdfast_{DEAD.name}[5m])) * 60 > {DEAD_PER_MINUTE:.0f}", DEAD_PER_MINUTE,
        lambda now: now.dead_per_minute,
        lambda now: f"{now.dead_per_minute:.0f} tasks a minute become dead letters.",
        "Group them by error, mend the cause, then replay them paced.", "dead-letters",
    ),
    Rule(
        "HoldfastBusy", Severity.WARNING, 10,
        f"Workers have used more than {USED:.0%} of their capacity for ten minutes.",
        f"max(worker_capacity_used_ratio) > {USED}", USED,
        lambda now: now.used,
        lambda now: f"Workers have used {now.used:.0%} of their capacity for ten minutes.",
        "Add workers or raise their concurrency.", "workers",
    ),
    Rule(
        "HoldfastLowWaits", Severity.WARNING, 0,
        f"A task of low priority has waited for more than {LOW_WAITS / 60:.0f} minutes.",
        f'max(queue_age_seconds{{priority="low",stat="oldest"}}) > {LOW_WAITS:.0f}', LOW_WAITS,
        lambda now: now.oldest.get(Priority.LOW, 0.0),
        lambda now: (
            f"A task of low priority has waited for {now.oldest[Priority.LOW] / 60:.0f} minutes."
        ),
        "More urgent work takes all the workers: add some, or see whether its queue is served.",
        "queues",
    ),
    Rule(
        "HoldfastBacklog", Severity.WARNING, 0,
        f"More than {ANY_DEPTH:,} tasks of one queue are ready and wait.",
        f"max(sum by (queue) (queue_depth)) > {ANY_DEPTH}", ANY_DEPTH,
        lambda now: now.deepest[1],
        lambda now: f"{now.deepest[1]:,} tasks of queue {now.deepest[0]!r} are ready and wait.",
        "Add workers for this queue, or see whether it is paused.", "queues",
    ),
    Rule(
        "HoldfastPinnedRows", Severity.WARNING, 0,
        "A transaction that is open for long keeps dead rows, or there are so many of them that "
        "they slow claims down.",
        f"max(store_oldest_transaction_seconds) > {LONG_TRANSACTION:.0f} "
        f"or max(store_dead_rows) > {MANY_DEAD_ROWS}", 1,
        lambda now: max(now.oldest_transaction / LONG_TRANSACTION, now.dead_rows / MANY_DEAD_ROWS),
        _pinned,
        "Run `holdfast doctor`: it names the transaction to end.", "settings",
    ),
)  # fmt: skip


def alerts_at(now: Sample, before: Sequence[Sample]) -> list[Alert]:
    """What holds now; `before` are samples of the last minutes, newest last. A rule with minutes
    that nobody looked at when they began does not hold yet.
    """
    return [
        Alert(rule.name, rule.severity, rule.says(now), rule.advice, rule.about)
        for rule in RULES
        if _holds(rule, now, before)
    ]


def _holds(rule: Rule, now: Sample, before: Sequence[Sample]) -> bool:
    looked_at = [now]
    if rule.minutes:
        begun = [sample for sample in before if sample.ago >= 60 * rule.minutes][-1:]
        if not begun or begun[0].ago > 60 * rule.minutes + PATIENCE:
            return False
        looked_at += begun + [sample for sample in before if sample.ago < begun[0].ago]
    return all(rule.value(sample) > rule.limit for sample in looked_at)
