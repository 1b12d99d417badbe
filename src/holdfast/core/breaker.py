"""Circuit breakers: when to let nobody call what fails, and when to try it again.

A breaker is *closed* while all is well: everybody passes. Too large a share of failures within its
window *opens* it: nobody passes, tasks stand before its gate and use up no retries. After the
cool-down it is *half open*: one task, the probe, may try; its end closes the breaker, or opens it
for another cool-down. The whole fleet shares one record; a breaker that nothing fails behind has
none. Pure: `flow.breakers` counts, reads and writes.

Times are microseconds by the store's clock. Ends are counted in parts of the window, so that the
oldest can be forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from holdfast.core.gate import UNBOUNDED
from holdfast.core.lifecycle import Failed, Outcome, Succeeded, TimedOut
from holdfast.core.priority import MICROSECONDS
from holdfast.core.task import TaskId

BREAKER: Final = "breaker"
"""The kind of records that hold breakers. The key is the gate's."""
PARTS: Final = 10
HEARD: Final = 1.0
"""Seconds from the first counts to the opening: every worker that has successes to tell of must
have been heard before the share of failures means something.
"""


class BreakerState(StrEnum):
    """How much a breaker lets pass: all, nothing, one probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRule:
    """Opens when at least `at_least` attempts ended within `window` and `failures` (a share) of
    them failed. Times in seconds.
    """

    failures: float = 0.5
    window: float = 60.0
    at_least: int = 10
    cool_down: float = 30.0

    @property
    def part(self) -> int:
        """How long one part of the window is, in microseconds."""
        return max(1, round(self.window * MICROSECONDS / PARTS))


Counts = tuple[int, int]
"""Successes and failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRecord:
    """A breaker as the fleet shares it. `counts` are by the number of the part that they fall into.
    `forced`: an operator's word, which stays until it is taken back. `probe` is the task that may
    try while it is half open.
    """

    rule: BreakerRule
    state: BreakerState = BreakerState.CLOSED
    since: int = 0
    counts: Mapping[int, Counts]
    forced: bool = False
    probe: TaskId | None = None

    @property
    def capacity(self) -> int | None:
        """How many may pass its gate; None: as many as tasks say, which is all."""
        match self.state:
            case BreakerState.OPEN:
                return 0
            case BreakerState.HALF_OPEN:
                return 1
            case BreakerState.CLOSED:
                return UNBOUNDED if self.forced else None

    @property
    def due_in(self) -> float | None:
        """In how many seconds somebody must look at it again."""
        if self.forced:
            return None
        return self.rule.window if self.state is BreakerState.CLOSED else self.rule.cool_down

    def trying(self, task_id: TaskId) -> BreakerRecord:
        """With this task as the probe, unless another is or none may try."""
        if self.state is not BreakerState.HALF_OPEN or self.probe is not None:
            return self
        return replace(self, probe=task_id)

    def dump(self) -> str:
        """As a record's document."""
        rule = self.rule
        return json.dumps(
            {
                "state": self.state,
                "since": self.since,
                "forced": self.forced,
                "probe": self.probe,
                "counts": [[part, *n] for part, n in sorted(self.counts.items())],
                "rule": [rule.failures, rule.window, rule.at_least, rule.cool_down],
            }
        )

    @classmethod
    def load(cls, document: str) -> BreakerRecord:
        """What `dump` wrote."""
        said: dict[str, Any] = json.loads(document)
        failures, window, at_least, cool_down = said["rule"]
        return cls(
            rule=BreakerRule(
                failures=failures, window=window, at_least=at_least, cool_down=cool_down
            ),
            state=BreakerState(said["state"]),
            since=said["since"],
            counts={part: (well, failed) for part, well, failed in said["counts"]},
            forced=said["forced"],
            probe=said["probe"],
        )


def went_well(outcome: Outcome) -> bool | None:
    """What an attempt's end says of what it called; None if nothing. An error that is not retriable
    says that the task is wrong, not what it called.
    """
    match outcome:
        case Succeeded():
            return True
        case Failed(error):
            return False if error.retriable else None
        case TimedOut():
            return False
        case _:
            return None


def counted(record: BreakerRecord, ends: Iterable[tuple[int, Counts]], now: int) -> BreakerRecord:
    """The breaker after these ends: (when, how many well and failed). Those that came while it was
    not closed say nothing new.
    """
    if record.state is not BreakerState.CLOSED or record.forced:
        return record
    part = record.rule.part
    counts = dict(record.counts)
    for at, (well, failed) in ends:
        before = counts.get(at // part, (0, 0))
        counts[at // part] = (before[0] + well, before[1] + failed)
    oldest = (now - round(record.rule.window * MICROSECONDS)) // part
    kept = {number: n for number, n in counts.items() if number > oldest}
    since = record.since if record.counts and kept else now
    return _opened_if_need_be(replace(record, counts=kept, since=since), now)


def half_opened(record: BreakerRecord, now: int) -> BreakerRecord:
    """The cool-down is over, or a probe has not ended for as long as that: another may try."""
    return replace(record, state=BreakerState.HALF_OPEN, since=now, probe=None, counts={})


def probed(record: BreakerRecord, went_well: bool | None, now: int) -> BreakerRecord:
    """The probe has ended: well, badly, or without a verdict, which leaves it to another."""
    if went_well is None:
        return replace(record, probe=None)
    state = BreakerState.CLOSED if went_well else BreakerState.OPEN
    return replace(record, state=state, since=now, probe=None, counts={})


def is_needless(record: BreakerRecord) -> bool:
    """Whether nothing is lost without it."""
    return record.state is BreakerState.CLOSED and not record.forced and not record.counts


def _opened_if_need_be(record: BreakerRecord, now: int) -> BreakerRecord:
    rule = record.rule
    well = sum(n for n, _ in record.counts.values())
    failed = sum(n for _, n in record.counts.values())
    heard = min(HEARD, rule.window / 4) * MICROSECONDS
    if (
        not failed
        or well + failed < rule.at_least
        or failed < rule.failures * (well + failed)
        or now - record.since < heard
    ):
        return record
    return replace(record, state=BreakerState.OPEN, since=now, counts={})
