"""What must be so, as a plain reading of `ports/store.py`: few tasks, simple loops, no indexes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from tests.kit.simulation.gate_book import GateBook
from tests.kit.simulation.known import Known, KnownWorker, Place

from holdfast.core.attempt import Report, Settlement
from holdfast.core.query import TaskFilter
from holdfast.core.task import NewTask, Reason, State, SubmitOutcome, TaskId, WorkerId

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Answer = tuple[TaskId, SubmitOutcome]


def us(seconds: float) -> int:
    """A duration as a store rounds it."""
    return round(seconds * 1_000_000)


class Book:
    """Every task, worker, key and pause as they must be, and the answers that follow from them."""

    def __init__(self) -> None:
        self.tasks: dict[TaskId, Known] = {}
        self.keys: dict[str, tuple[TaskId, str | None, int]] = {}
        self.workers: dict[WorkerId, KnownWorker] = {}
        self.paused: set[str] = set()
        self.gates = GateBook(self.tasks)

    def expected_answers(
        self, tasks: Sequence[NewTask], now: int
    ) -> tuple[list[Answer] | None, list[NewTask]]:
        fresh: dict[TaskId, NewTask] = {}
        answers: list[Answer] = []
        for new in tasks:
            if new.id in self.tasks or new.id in fresh:
                answers.append((new.id, SubmitOutcome.CREATED))
                continue
            seen = self._seen(new, fresh, now)
            if seen is not None and seen[1] != new.fingerprint:
                return None, []
            if seen is not None:
                answers.append((seen[0], SubmitOutcome.IDEMPOTENCY_KEY))
            elif (owner := self._owner(new, fresh)) is not None:
                answers.append((owner, SubmitOutcome.UNIQUE_KEY))
            else:
                fresh[new.id] = new
                answers.append((new.id, SubmitOutcome.CREATED))
        return answers, list(fresh.values())

    def _seen(
        self, new: NewTask, fresh: Mapping[TaskId, NewTask], now: int
    ) -> tuple[TaskId, str | None] | None:
        if new.idempotency_key is None:
            return None
        for other in fresh.values():
            if other.idempotency_key == new.idempotency_key:
                return other.id, other.fingerprint
        seen = self.keys.get(new.idempotency_key)
        return seen[:2] if seen is not None and seen[2] > now else None

    def _owner(self, new: NewTask, fresh: Mapping[TaskId, NewTask]) -> TaskId | None:
        """The unfinished task that has its unique key."""
        if new.unique_key is None:
            return None
        unfinished = [k.new for k in self.tasks.values() if k.place is not Place.DONE]
        key = (new.name, new.unique_key)
        same = (o.id for o in (*unfinished, *fresh.values()) if (o.name, o.unique_key) == key)
        return next(same, None)

    def is_taken(self, known: Known) -> bool:
        return self._owner(known.new, {}) not in (None, known.new.id)

    def create(self, new: NewTask, window: float, now: int) -> None:
        run_at = now + us(new.delay or 0.0)
        if new.run_at is not None:
            run_at = (new.run_at - _EPOCH) // timedelta(microseconds=1)
        expires = None if new.expires_in is None else now + us(new.expires_in)
        known = self.tasks[new.id] = Known(new, run_at, expires)
        known.become_eligible(now)
        self.gates.submitted(new)
        if new.idempotency_key is not None:
            self.keys[new.idempotency_key] = (new.id, new.fingerprint, now + us(window))

    def move_on(self, now: int) -> bool:
        """At a claim, what has expired ends and what is due becomes eligible. Whether any did."""
        moved = False
        for known in self.tasks.values():
            if known.place in (Place.WAITING, Place.ELIGIBLE):
                if known.expires is not None and known.expires <= now:
                    self.finish(known, State.CANCELLED, Reason.EXPIRED, now)
                    moved = True
                elif known.place is Place.WAITING and known.run_at <= now:
                    known.become_eligible(now)
                    moved = True
        return moved

    def fits(
        self, known: Known, queues: Collection[str] | None, capabilities: frozenset[str]
    ) -> bool:
        queue = known.new.queue
        served = queues is None or queue in queues
        return served and queue not in self.paused and known.new.requires <= capabilities

    def finish(self, known: Known, state: State, reason: Reason | None, now: int) -> None:
        known.finish(state, reason, now)
        self.gates.ended(known, now)

    def shown(self, known: Known) -> State:
        match known.place:
            case Place.DONE:
                assert known.state is not None
                return known.state
            case Place.RUNNING:
                return State.RUNNING
            case Place.WAITING:
                return State.RETRYING if known.retrying else State.QUEUED
            case Place.ELIGIBLE:
                return State.QUEUED if known.is_ready else State.BLOCKED

    def holds(self, known: Known, by: Settlement | Report) -> bool:
        return known.place is Place.RUNNING and (known.attempt, known.worker) == (
            by.attempt,
            by.worker_id,
        )

    def is_repeat(self, known: Known, settlement: Settlement) -> bool:
        """Saved before: same attempt, same worker, same end."""
        attempt = settlement.attempt
        return (
            known.ends.get(attempt) is settlement.ended
            and known.workers[attempt - 1] == settlement.worker_id
        )

    def matching(self, where: TaskFilter) -> Iterator[Known]:
        for task_id in sorted(self.tasks):
            known = self.tasks[task_id]
            if (
                (where.ids is None or task_id in where.ids)
                and (where.name is None or known.new.name == where.name)
                and (where.queue is None or known.new.queue == where.queue)
                and (where.states is None or self.shown(known) in where.states)
            ):
                yield known

    def forget_workers(self, before: int) -> None:
        """Pruning forgets workers that ended and last beat before this instant."""
        self.workers = {
            worker_id: worker
            for worker_id, worker in self.workers.items()
            if worker.alive or worker.last_beat_us >= before
        }

    def is_alive(self, worker_id: WorkerId) -> bool:
        worker = self.workers.get(worker_id)
        return worker is not None and worker.alive

    def why_not(
        self,
        known: Known,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        now: int,
    ) -> str:
        if known.place is Place.DONE:
            if known.reason is Reason.EXPIRED:
                return "expired_started"
            return "cancelled_started" if known.state is State.CANCELLED else "started_after_end"
        if known.place is Place.RUNNING:
            return "double_start"
        if known.place is Place.WAITING and known.run_at > now:
            return "started_early"
        if known.new.queue in self.paused:
            return "paused_started"
        if not self.fits(known, queues, capabilities):
            return "capability"
        return "order"

    def unfinished(self) -> list[TaskId]:
        return [k.new.id for k in self.tasks.values() if k.place is not Place.DONE]

    def next_due_us(self) -> int | None:
        """When the next task is due, if no unfinished one can start before; 0: never."""
        unfinished = [k for k in self.tasks.values() if k.place is not Place.DONE]
        if any(k.place is Place.RUNNING or k.is_ready for k in unfinished):
            return None
        standing = {k.names[k.past] for k in unfinished if k.place is Place.ELIGIBLE}
        opening = [self.gates.opens_at(name) for name in standing if name.startswith("rate:")]
        dues = [k.run_at for k in unfinished if k.place is Place.WAITING]
        return min((*dues, *(at for at in opening if at is not None)), default=0)
