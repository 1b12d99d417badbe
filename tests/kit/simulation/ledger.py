"""Watches every call and its true answer, and judges at once.

It keeps a `Book`, a second, independent reading of `ports/store.py`, so that a store and the ledger
agree only if both read the contract right. The first entry in `broken` names the rule and what was
seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from tests.kit.checker import Picture
from tests.kit.simulation.book import us
from tests.kit.simulation.known import Known, Place
from tests.kit.simulation.note_book import NoteBook
from tests.kit.simulation.watching import WatchesGates, WatchesWorkers
from tests.kit.simulation.world import SimClock

from holdfast.core.attempt import Claim, Claimed, Refusal, Report, Settlement
from holdfast.core.lifecycle import TERMINAL, cancelled_instead
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Name, Record
from holdfast.core.stats import Standing, Stats
from holdfast.core.task import (
    Added,
    AttemptEnd,
    Cause,
    NewTask,
    Reason,
    State,
    SubmitOutcome,
    Task,
    TaskId,
    WorkerId,
)

_CHARGED = (AttemptEnd.ERROR, AttemptEnd.TIMEOUT)


class Ledger(WatchesGates, WatchesWorkers):
    """Knows what was promised about every task, worker, key and pause.

    `look` reads one task from the store, past all faults, and `stands` where it stands. `seen`
    counts what happened, to show that a simulation is not empty.
    """

    def __init__(
        self,
        clock: SimClock,
        look: Callable[[TaskId], Task | None],
        stands: Callable[[TaskId], Standing | None],
        *,
        lease: float,
        crash_limit: int,
    ) -> None:
        super().__init__(clock, look, stands, lease)
        self.notes = NoteBook()
        self.forgotten: set[TaskId] = set()
        self.acknowledged: set[TaskId] = set()
        self._crash_limit = crash_limit
        self._fence = 0
        self._refusals = 0

    # Tasks

    def added(
        self, tasks: Sequence[NewTask], window: float, answers: Sequence[Added] | None
    ) -> None:
        """Answers None: the store raised `IdempotencyConflict`."""
        now = self._clock.now_us()
        expected, fresh = self.book.expected_answers(tasks, now)
        if expected is None or answers is None:
            self.seen["idempotency conflict"] += 1
            if (expected is None) != (answers is None):
                self._fail("idempotency_key", None, f"expected {expected}, got {answers}")
            return
        for new in fresh:
            self._create(new, window, now)
        self._watch(tells=True)
        for (task_id, outcome), got in zip(expected, answers, strict=True):
            self.seen[f"submit {outcome}"] += 1
            if (task_id, outcome) != got[:2]:
                rule = "false_duplicate" if outcome is SubmitOutcome.CREATED else outcome.value
                self._fail(rule, task_id, f"expected {outcome} {task_id}, got {got}")
            else:
                self._compare(task_id, "add")
                if got.state is not self.book.shown(self.book.tasks[task_id]):
                    self._fail("add", task_id, f"answered as {got.state}")

    def committed(
        self, changes: Changes, answers: Sequence[Added] | None, records: Mapping[Name, Record]
    ) -> None:
        """Answers None: the store said that it clashes. `records` are those it names, as the store
        has them now.
        """
        done = None if self._clashes(changes) else self._commit(changes)
        self.book.gates.shut.clear()  # latches are closed before its tasks come
        self._watch(tells=True)
        if done is None or answers is None:
            self.seen["commit clashed"] += 1
            if (done is None) != (answers is None):
                self._fail("commit", None, f"{changes.id}: expected {done}, got {answers}")
        elif [each[:2] for each in answers] != done:
            self._fail("commit", None, f"{changes.id} answered {answers}, not {done}")
        self._compare_records(changes, records)

    def _compare_records(self, changes: Changes, records: Mapping[Name, Record]) -> None:
        for name in changes.names:
            if (detail := self.notes.differs(name, records.get(name))) is not None:
                self._fail("record", None, detail)
        for new in changes.tasks:
            if (self._look(new.id) is None) != (new.id not in self.book.tasks):
                self._fail("commit", new.id, "half of a commit was written")

    def _clashes(self, changes: Changes) -> bool:
        expected, _ = self.book.expected_answers(changes.tasks, self._clock.now_us())
        is_repeat = self.notes.is_repeat(changes, self.book.tasks)
        return expected is None or not (is_repeat or self.notes.clash(changes) is None)

    def _commit(
        self,
        changes: Changes,
        ended: Callable[[], None] = lambda: None,
        behind: str | None = None,
    ) -> list[tuple[TaskId, SubmitOutcome]] | None:
        """Write it in the book, after what `ended` if it comes with that, and say what it must
        answer.
        """
        now, gates = self._clock.now_us(), self.book.gates
        is_repeat = self.notes.is_repeat(changes, self.book.tasks)
        self.seen["commit repeated" if is_repeat else "commit"] += 1
        if not is_repeat:
            gates.count(changes.ups, now, behind)
        ended()
        expected, fresh = self.book.expected_answers(changes.tasks, now)
        for new in fresh:
            self._create(new, changes.idempotency_window, now)
        if not is_repeat:
            self.notes.write(changes)
            gates.count(changes.downs, now)
            gates.pin(changes.capacities)
        return expected

    def _create(self, new: NewTask, window: float, now: int) -> None:
        self.book.create(new, window, now)
        self._created.add(new.id)
        if new.id in self.forgotten:
            self.book.gates.unsure.add(f"latch:{new.id}")

    def acknowledge(self, task_id: TaskId) -> None:
        """The submitter was told so."""
        self.acknowledged.add(task_id)

    def refused_claim(self, worker_id: WorkerId) -> None:
        if self.book.is_alive(worker_id):
            self._fail("live_worker_refused", None, f"{worker_id} is alive and was told it is gone")

    def claimed(
        self,
        worker_id: WorkerId,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
        got: Claimed,
    ) -> None:
        if not self.book.is_alive(worker_id):
            self._fail("dead_worker_claimed", None, f"{worker_id} is dead and may still claim")
        now = self._clock.now_us()
        moved = self.book.move_on(now)
        fitting = [k for k in self.book.tasks.values() if self.book.fits(k, queues, capabilities)]
        timed = self.book.gates.is_timed()
        if moved or timed or got.claims:
            self._observe(but={claim.task_id for claim in got.claims})
        ready = (k for k in fitting if k.is_ready)
        expected = sorted(ready, key=lambda k: k.order)[:limit]
        if [k.new.id for k in expected] != [c.task_id for c in got.claims]:
            self._explain(expected, got.claims, queues, capabilities)
            return
        for known, claim in zip(expected, got.claims, strict=True):
            self._start(known, claim, worker_id)
        if moved or timed or got.claims:
            self._judge_gates(by_claim=True)
        self._judge_next_due(fitting, got.next_due, now)

    def saved(
        self,
        settlements: Sequence[Settlement],
        refusals: Sequence[Refusal],
        records: Mapping[Name, Record],
        *,
        rescuer: bool,
    ) -> None:
        refused = [(r.task_id, r.attempt, r.worker_id) for r in refusals if not r.conflict]
        clashed = [(r.task_id, r.attempt, r.worker_id) for r in refusals if r.conflict]
        touched: dict[TaskId, str] = {}  # compared after the whole batch: one commit
        for settlement in settlements:
            fence = (settlement.task_id, settlement.attempt, settlement.worker_id)
            known = self.book.tasks.get(settlement.task_id)
            holds = known is not None and self.book.holds(known, settlement)
            repeat = known is not None and self.book.is_repeat(known, settlement)
            if (holds or repeat) and fence in refused:
                self._fail("rightful_refused", settlement.task_id, f"{settlement} was refused")
            if rescuer and holds and self.book.is_alive(settlement.worker_id):
                self._fail("live_worker_rescued", settlement.task_id, f"{settlement.worker_id}")
            if known is not None and holds and known.cancel_requested:
                settlement = cancelled_instead(settlement)  # noqa: PLW2901 - with nothing along
            also = settlement.also if holds else None
            clashes = also is not None and self._clashes(also)
            if clashes != (fence in clashed):
                self._fail("commit", settlement.task_id, f"{settlement.also} clashes: {clashes}")
            if clashes:
                self.seen["settlement clashed"] += 1
                touched[settlement.task_id] = "commit"
            elif known is not None and holds:
                self._settle(known, settlement)
                touched[settlement.task_id] = "settle"
            elif repeat:
                self.seen["settlement repeated"] += 1
                touched[settlement.task_id] = "recorded_twice"
            else:
                self._refuse(known, settlement, told=fence in refused)
                touched[settlement.task_id] = "stale_write"
        if len(settlements) == 1:
            self.book.gates.shut.clear()  # nobody came before its latches were closed
        self._watch(tells=True)
        for task_id in touched.keys() & self.book.tasks.keys():
            self._compare(task_id, touched[task_id])
        for also in [s.also for s in settlements if s.also is not None]:
            self._compare_records(also, records)

    def reported(self, reports: Sequence[Report], refusals: Sequence[Refusal]) -> None:
        refused = {(r.task_id, r.attempt, r.worker_id) for r in refusals}
        for report in reports:
            known = self.book.tasks.get(report.task_id)
            holds = known is not None and self.book.holds(known, report)
            if holds == ((report.task_id, report.attempt, report.worker_id) in refused):
                self._fail("stale_report", report.task_id, f"{report} holds: {holds}")
            self._refusals += not holds

    def cancelled(self, where: TaskFilter, limit: int, tasks: Sequence[Task]) -> None:
        now = self._clock.now_us()
        able = [
            k
            for k in self.book.matching(where)
            if k.place is not Place.DONE and not k.cancel_requested
        ]
        self._same("cancel", able[:limit], tasks)
        self.seen["cancel"] += len(able[:limit])
        for known in able[:limit]:
            if known.place is Place.RUNNING:
                known.cancel_requested = True
            else:
                self.book.finish(known, State.CANCELLED, Reason.CANCELLED, now)
        self._watch(tells=True)
        for known in able[:limit]:
            self._compare(known.new.id, "cancel")

    def asked_to_stop(self, worker_id: WorkerId, ids: Sequence[TaskId]) -> None:
        expected = sorted(
            k.new.id
            for k in self.book.tasks.values()
            if k.place is Place.RUNNING and k.worker == worker_id and k.cancel_requested
        )
        if list(ids) != expected:
            self._fail("cancel", None, f"{worker_id} should stop {expected}, was told {ids}")

    def requeued(
        self,
        where: TaskFilter,
        limit: int,
        head_starts: Mapping[str, int],
        pace: float | None,
        tasks: Sequence[Task],
    ) -> None:
        now = self._clock.now_us()
        changed: list[Known] = []
        for known in self.book.matching(where):
            if len(changed) == limit:
                break
            if known.place not in (Place.DONE, Place.WAITING) or self.book.is_taken(known):
                continue
            changed.append(known)
            due = now + (us(len(changed) / pace) if pace else 0)
            if known.place is Place.DONE:
                self.book.gates.begun_again(known)
                known.renew(due, head_starts[known.new.priority], now)
            else:
                known.hurry(due, head_starts[known.new.priority], now)
        self._watch()
        self._same("requeue", changed, tasks)
        for known in changed:
            self._compare(known.new.id, "requeue")

    def discarded(self, where: TaskFilter, limit: int, number: int) -> None:
        ended = [k for k in self.book.matching(where) if k.place is Place.DONE][:limit]
        self._forget(ended, number, "discard")

    def pruned(self, retention: float, dead_retention: float, limit: int, number: int) -> None:
        now = self._clock.now_us()
        old = [
            k
            for k in self.book.matching(TaskFilter())
            if k.place is Place.DONE
            and k.finished < now - us(dead_retention if k.state is State.DEAD_LETTER else retention)
        ]
        self.book.forget_workers(now - us(retention))
        self.book.keys = {key: seen for key, seen in self.book.keys.items() if seen[2] > now}
        self.book.gates.pruned(now - us(retention))
        self._forget(old[:limit], number, "prune")

    def counted(self, stats: Stats) -> None:
        if stats.refused != self._refusals:
            self._fail("refusal_recorded", None, f"{stats.refused} counted, not {self._refusals}")
        states = dict.fromkeys(State, 0)
        for task_id, known in self.book.tasks.items():
            self._compare(task_id, "stats")
            states[self.book.shown(known)] += 1
        if dict(stats.states) != states:
            self._fail("stats", None, f"{dict(stats.states)}, not {states}")

    # The end of a history

    def close(self, pictures: Sequence[Picture]) -> None:
        """Compare the whole store with the book."""
        found = {picture.task.id: picture for picture in pictures}
        for task_id in found.keys() - self.book.tasks.keys():
            self._fail("from_nowhere", task_id, "nobody added it, or it was forgotten before")
        for task_id, known in self.book.tasks.items():
            picture = found.get(task_id)
            if picture is None:
                self._fail("lost", task_id, f"the store forgot it ({self.book.shown(known)})")
                continue
            self._note("terminal", task_id, known.differs(picture.task, self.book.shown(known)))
            self._note("history", task_id, known.history_differs(picture))
            self._note("refusal_recorded", task_id, known.refusals_differ(picture))

    # Rules

    def _explain(
        self,
        expected: Sequence[Known],
        claims: Sequence[Claim],
        queues: Collection[str] | None,
        capabilities: frozenset[str],
    ) -> None:
        """Find the reason why a claim brought other tasks than it should."""
        now = self._clock.now_us()
        for claim in claims:
            known = self.book.tasks.get(claim.task_id)
            if known is None:
                self._fail("from_nowhere", claim.task_id, "claimed, but nobody added it")
            elif known not in expected:
                rule = self.book.why_not(known, queues, capabilities, now)
                self._fail(rule, claim.task_id, f"claimed while {known.place.name.lower()}")
        claimed = {claim.task_id for claim in claims}
        for known in expected:
            if known.new.id not in claimed:
                gone = self._look(known.new.id) is None
                self._fail("lost" if gone else "order", known.new.id, "was passed over")
        self._fail("order", None, f"claimed in order {[c.task_id for c in claims]}")

    def _start(self, known: Known, claim: Claim, worker_id: WorkerId) -> None:
        known.start(worker_id, claim.fence)
        self.book.gates.started(known, self._clock.now_us())
        self.seen[f"start by {known.cause}"] += 1
        expected = (known.attempt, worker_id, known.charged, known.crash_count)
        if (claim.attempt, claim.worker_id, claim.charged, claim.crash_count) != expected:
            rule = "attempt_numbers" if claim.attempt != known.attempt else "claim"
            self._fail(rule, claim.task_id, f"{claim} should show {expected}")
        if claim.cause is not known.cause:
            self._fail("cause", claim.task_id, f"cause {claim.cause}, not {known.cause}")
        self._judge_fence(claim)
        self._compare(claim.task_id, "claim")

    def _judge_fence(self, claim: Claim) -> None:
        if (claim.lock is None) != (claim.fence is None):
            self._fail("fence", claim.task_id, f"lock {claim.lock!r} with fence {claim.fence}")
        elif claim.fence is not None:
            if claim.fence <= self._fence:
                self._fail("fence", claim.task_id, f"{claim.fence} after {self._fence}")
            self._fence = claim.fence

    def _judge_next_due(self, fitting: list[Known], next_due: float | None, now: int) -> None:
        dues = [k.run_at for k in fitting if k.place is Place.WAITING]
        if self.book.gates.is_timed():
            dues += self.book.gates.openings(fitting, now)
        if dues:
            truth = (min(dues) - now) / 1e6
            if next_due is None or next_due > truth + 1e-5:
                self._fail("next_due", None, f"in {truth} s, the store says {next_due}")

    def _settle(self, known: Known, settlement: Settlement) -> None:
        self._judge_decision(known, settlement)
        if settlement.also is None:
            self._end(known, settlement)
        else:  # its tasks come after the end of this one, whose keys are free by then
            self._commit(settlement.also, lambda: self._end(known, settlement), settlement.behind)

    def _end(self, known: Known, settlement: Settlement) -> None:
        now = self._clock.now_us()
        self.seen[f"task {settlement.state}"] += 1
        self.seen[f"attempt {settlement.ended}"] += 1
        known.ends[known.attempt] = settlement.ended
        known.charged = settlement.charged
        known.crash_count = settlement.crash_count
        known.reason = settlement.reason
        known.result = settlement.result
        if settlement.state in TERMINAL:
            self.book.finish(known, settlement.state, settlement.reason, now)
        else:
            known.run_at = now + us(settlement.delay)
            known.cause = settlement.cause or known.cause
            known.retrying = settlement.state is State.RETRYING
            if settlement.behind is not None:
                known.stand_behind(settlement.behind)
            known.become_eligible(now)

    def _judge_decision(self, known: Known, settlement: Settlement) -> None:
        """What the core may decide at most."""
        task_id, again = settlement.task_id, settlement.state not in TERMINAL
        charged = known.charged + (settlement.ended in _CHARGED)
        crashes = known.crash_count + (settlement.ended is AttemptEnd.WORKER_LOST)
        if settlement.charged != charged:
            self._fail("charge", task_id, f"{settlement.ended}: {settlement.charged}")
        if again and charged > known.new.max_retries:
            self._fail("retry_limit", task_id, f"{charged} of {known.new.max_retries} retries")
        if again and crashes >= self._crash_limit:
            self._fail("crash_limit", task_id, f"started again after {crashes} crashes")
        if again and settlement.cause in (None, Cause.SUBMITTED):
            self._fail("cause", task_id, f"starts again with cause {settlement.cause}")

    def _refuse(self, known: Known | None, settlement: Settlement, *, told: bool) -> None:
        if not told:
            self._fail("stale_write", settlement.task_id, f"{settlement} was accepted")
        self._refusals += 1
        self.seen["settlement refused"] += 1
        if known is not None:
            known.refused[settlement.attempt, settlement.worker_id] += 1

    # Judgement

    def _same(self, rule: str, expected: Sequence[Known], tasks: Sequence[Task]) -> None:
        ids = [k.new.id for k in expected]
        if ids != [task.id for task in tasks]:
            self._fail(rule, None, f"should change {ids}, changed {[t.id for t in tasks]}")

    def _forget(self, gone: Sequence[Known], number: int, rule: str) -> None:
        if number != len(gone):
            self._fail(rule, None, f"{number} forgotten, not {len(gone)}")
        for known in gone:
            del self.book.tasks[known.new.id]
            self.forgotten.add(known.new.id)
            key = known.new.idempotency_key
            if key is not None and self.book.keys.get(key, ("",))[0] == known.new.id:
                del self.book.keys[key]

    def _compare(self, task_id: TaskId, rule: str) -> None:
        """Whether the store says about this task what it must."""
        task, known = self._look(task_id), self.book.tasks[task_id]
        if task is None:
            self._fail("lost", task_id, f"gone after {rule}")
            return
        shown = self.book.shown(known)
        if task.state is not shown and State.BLOCKED in (task.state, shown):
            rule = "gate"
        elif task.rank != known.rank:
            rule = "rank"
        self._note(rule, task_id, known.differs(task, shown))

    def _note(self, rule: str, task_id: TaskId, detail: str | None) -> None:
        if detail is not None:
            self._fail(rule, task_id, detail)
