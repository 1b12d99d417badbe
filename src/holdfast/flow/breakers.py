"""Circuit breakers at work, in every process that ends attempts: workers, and servers for HTTP
workers.

A process counts how attempts ended in memory. As long as nothing fails it writes nothing. Once
something does, it adds its counts to the breaker's record, about once a second, and so does every
other process that finds the record there: the share of failures is that of the fleet. Who finds too
large a share opens the breaker (`core.breaker` decides).

What was ready when a breaker opened has passed its gate already. It is claimed and handed back,
uncharged, and then stands before the gate with the others. While a breaker is half open, the record
names the one task that may try.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from holdfast.core.attempt import Claim
from holdfast.core.breaker import (
    BREAKER,
    BreakerRecord,
    BreakerRule,
    BreakerState,
    Counts,
    counted,
    half_opened,
    probed,
    went_well,
)
from holdfast.core.gate import Gate
from holdfast.core.lifecycle import Outcome, Released
from holdfast.core.priority import MICROSECONDS
from holdfast.core.record import Record
from holdfast.core.scope import QUEUE, TASK, Scope
from holdfast.core.task import TaskId
from holdfast.definitions.gate_makers import GateMaker, Makers, made_gates, queue_values
from holdfast.definitions.registry import Registry
from holdfast.errors import HoldfastError, RecordConflict, StoreUnavailable
from holdfast.flow import breaker_records
from holdfast.ports.records import one_record
from holdfast.ports.store import Store

EVERY: Final = 1.0
"""Seconds between looks, where there are breakers; between writes of counts, too."""
SELDOM: Final = 5.0
"""Where there are none: somebody must see to it that open ones of others become half open."""
FRESH: Final = 0.2
"""A breaker that keeps claimed tasks from running is read anew if it was read longer ago."""
OFFERED_AGAIN_IN: Final = 0.5
AT_A_TIME: Final = 100
LEASE: Final = 10.0

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


@dataclass(slots=True)
class _Tally:
    """Ends of attempts that were not written yet, by the part of the window they fall into."""

    rule: BreakerRule
    ends: dict[int, list[int]] = field(default_factory=dict)
    has_failures: bool = False

    def add(self, at: int, *, well: bool) -> None:
        n = self.ends.setdefault(at // self.rule.part, [0, 0])
        n[0 if well else 1] += 1
        self.has_failures |= not well

    def forget(self, now: int) -> None:
        oldest = (now - round(self.rule.window * MICROSECONDS)) // self.rule.part
        for number in [number for number in self.ends if number <= oldest]:
            del self.ends[number]

    def shifted(self, by: int) -> list[tuple[int, Counts]]:
        """By another clock."""
        part = self.rule.part
        return [(number * part + by, (n[0], n[1])) for number, n in self.ends.items()]


@dataclass(slots=True)
class _Shut:
    """A breaker that lets not everybody pass, as it was when it was read."""

    record: BreakerRecord
    read_at: float


class Breakers:
    """The breakers of one process. A maintenance agent (`tick`); for one event loop."""

    def __init__(
        self, store: Store, registry: Registry, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._tallies: dict[str, _Tally] = {}
        self._shut: dict[str, _Shut] = {}
        self._verdicts: dict[str, bool | None] = {}
        self._hurry = asyncio.Event()
        self._rest = 0.0

    @property
    def is_used(self) -> bool:
        """Whether this process knows any: without, `ended` need not be called."""
        return bool(self._registry.breakers)

    @property
    def has_shut(self) -> bool:
        """Whether some let not everybody pass: without, `admit` need not be called."""
        return bool(self._shut)

    def needs_payload(self, claim: Claim) -> bool:
        """Whether its arguments say which breaker it stands behind."""
        return any(
            maker.make_key is not None for _, makers in self._makers(claim) for maker in makers
        )

    def ended(self, claim: Claim, outcome: Outcome) -> None:
        """This attempt has ended thus."""
        if not self._registry.breakers:
            return
        verdict = went_well(outcome)
        for key, rule in self._behind(claim):
            shut = self._shut.get(key)
            if shut is not None and shut.record.probe == claim.task_id:
                self._verdicts[key] = verdict
                self._hurry.set()
            elif verdict is not None:
                tally = self._tallies.get(key)
                if tally is None:
                    tally = self._tallies[key] = _Tally(rule)
                tally.add(self._now(), well=verdict)

    async def admit(self, claims: Sequence[Claim]) -> tuple[list[Claim], list[Claim]]:
        """Which of these may run, and which are to be handed back (as `given_back` has it)."""
        may: list[Claim] = []
        may_not: list[Claim] = []
        for claim in claims:
            (may if await self._may_run(claim) else may_not).append(claim)
        return may, may_not

    async def tick(self) -> float:
        """Look once: at once if a probe has ended."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), self._rest)
        self._hurry.clear()
        self._rest = EVERY if self.is_used else SELDOM
        if self.is_used:
            await self.share()
        due = await self._store.take_due(BREAKER, limit=AT_A_TIME, lease=LEASE)
        for record in due.records:
            await self._go_on(record)
        if due.next_due is not None:
            self._rest = min(self._rest, max(0.01, due.next_due))
        return 0.0

    async def share(self) -> None:
        """Tell the fleet what was counted here, and hear what others did."""
        self._forget_old_counts()
        found = await breaker_records.read_all(self._store)
        self._look_at(found)
        failing = {key for key, tally in self._tallies.items() if tally.has_failures}
        if not (failing or found):
            return
        shift = _microseconds(await self._store.now()) - self._now()
        for key in {*failing, *found, *self._verdicts}:
            await self._tell(key, found.get(key), shift)

    async def _tell(self, key: str, found: Record | None, shift: int) -> None:
        tally = self._tallies.pop(key, None)
        if tally is None:
            if found is None:
                self._verdicts.pop(key, None)
                return
            tally = _Tally(BreakerRecord.load(found.document).rule)
        now = self._now() + shift
        has_verdict, verdict = key in self._verdicts, self._verdicts.pop(key, None)

        def make(record: BreakerRecord) -> BreakerRecord:
            if has_verdict and record.state is BreakerState.HALF_OPEN:
                return probed(record, verdict, now)
            return counted(record, tally.shifted(shift), now)

        try:
            after = await breaker_records.change(
                self._store, key, make, rule=tally.rule, found=found
            )
        except (StoreUnavailable, RecordConflict):
            if tally.ends:
                self._tallies[key] = tally  # counted twice at worst
            if has_verdict:
                self._verdicts[key] = verdict
            raise
        self._remember(key, after)

    async def _go_on(self, found: Record) -> None:
        """A breaker is due: its cool-down is over, its probe did not end, its counts are old."""
        now = _microseconds(await self._store.now())
        record = BreakerRecord.load(found.document)
        closed = record.state is BreakerState.CLOSED
        make = partial(counted, ends=(), now=now) if closed else partial(half_opened, now=now)
        with suppress(RecordConflict):  # somebody else wrote it meanwhile
            after = await breaker_records.write(
                self._store, found.key, make, rule=record.rule, found=found
            )
            self._remember(found.key, after)

    async def _may_run(self, claim: Claim) -> bool:
        for key, _ in self._behind(claim):
            if key in self._shut and not await self._lets_pass(key, claim.task_id):
                return False
        return True

    async def _lets_pass(self, key: str, task_id: TaskId) -> bool:
        shut = self._shut[key]
        with suppress(StoreUnavailable, RecordConflict):
            if self._clock() - shut.read_at > FRESH:
                record = await breaker_records.read(self._store, key)
                self._remember(key, record)
                if record is None or record.state is BreakerState.CLOSED:
                    return True
                shut = self._shut[key]
            if shut.record.state is BreakerState.HALF_OPEN and shut.record.probe is None:
                found = await one_record(self._store, BREAKER, key)
                if found is not None:
                    await self._let_try(key, task_id, found)
        current = self._shut.get(key)
        return current is None or current.record.probe == task_id

    async def _let_try(self, key: str, task_id: TaskId, found: Record) -> None:
        """Make this the task that tries, unless another is."""

        def make(record: BreakerRecord) -> BreakerRecord:
            return record.trying(task_id)

        after = await breaker_records.write(
            self._store, key, make, rule=BreakerRecord.load(found.document).rule, found=found
        )
        self._remember(key, after)

    def _remember(self, key: str, record: BreakerRecord | None) -> None:
        if record is None or record.state is BreakerState.CLOSED:
            self._shut.pop(key, None)
        else:
            self._shut[key] = _Shut(record, self._clock())

    def _look_at(self, found: Mapping[str, Record]) -> None:
        self._shut.clear()
        for key, record in found.items():
            self._remember(key, BreakerRecord.load(record.document))

    def _forget_old_counts(self) -> None:
        now = self._now()
        for key, tally in list(self._tallies.items()):
            tally.forget(now)
            if not tally.ends:
                del self._tallies[key]

    def _makers(self, claim: Claim) -> Iterator[tuple[str, Makers]]:
        for of, name in ((TASK, claim.name), (QUEUE, claim.queue)):
            makers = self._registry.breakers.get(Scope(of, name))
            if makers is not None:
                yield of, makers

    def _behind(self, claim: Claim) -> list[tuple[str, BreakerRule]]:
        """The breakers that it stands behind."""
        found: list[tuple[str, BreakerRule]] = []
        for of, makers in self._makers(claim):
            if all(maker.make_key is None for maker in makers):
                made = made_gates(makers, (), {}, {})
            else:
                try:
                    made = self._made(of, claim, makers)
                except HoldfastError:  # arguments that no longer fit: it does not run anyway
                    continue
            found += [(gate.key, maker.rule) for maker, gate in made if maker.rule is not None]
        return found

    def _made(self, of: str, claim: Claim, makers: Makers) -> list[tuple[GateMaker, Gate]]:
        if of == QUEUE:
            return made_gates(makers, *queue_values(claim.payload, claim.owner))
        return self._registry[claim.name].made_gates(claim.payload, makers)

    def _now(self) -> int:
        return round(self._clock() * MICROSECONDS)


def given_back() -> Outcome:
    """How a claimed task ends that a breaker keeps from running: uncharged, and soon before its
    gate. Not at once: one that was submitted before its task had a breaker has no gate to wait at.
    """
    return Released(delay=OFFERED_AGAIN_IN)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
