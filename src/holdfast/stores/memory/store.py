"""Keeps tasks in this process's memory (`memory://`): for tests, gone when the process ends.

The shortest correct reading of `ports/store.py`, and the place to start from when writing a store.
One lock makes each call atomic; what is where is the business of `places.py`. No call ever
suspends: a coroutine that does nothing but poll this store must let its event loop breathe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from holdfast.core.attempt import (
    CLASHES,
    Attempt,
    Claim,
    Claimed,
    Event,
    History,
    Refusal,
    Report,
    Settlement,
    clashed,
)
from holdfast.core.fleet import Requests
from holdfast.core.gate import GateState
from holdfast.core.lifecycle import (
    HURRIED,
    REQUEUEABLE,
    TERMINAL,
    cancelled_instead,
    ended_idle_as,
)
from holdfast.core.query import Order, Page, TaskFilter, page_of, read_cursor
from holdfast.core.record import Changes, decided
from holdfast.core.stats import Depth, QueueStats, Standing, Stats
from holdfast.core.task import Added, NewTask, Priority, Reason, State, Task, TaskId, WorkerId
from holdfast.errors import WorkerGone
from holdfast.ports.clock import Clock
from holdfast.stores.callees import Tell, callees, tell_nobody
from holdfast.stores.keys import KeyBook, Plan
from holdfast.stores.memory.fleet import KeepsWorkers
from holdfast.stores.memory.opening import NothingToOpen
from holdfast.stores.memory.places import Places
from holdfast.stores.memory.records import KeepsRecords
from holdfast.stores.refusing import NoTransactions
from holdfast.stores.values import (
    as_time,
    created,
    holds_lease,
    hurried,
    is_behind,
    matches,
    renewed,
    reported,
    settled,
    span_us,
    started,
)

_AHEAD_CAP = 1000
_MINUTE = 60_000_000


class MemoryStore(KeepsWorkers, KeepsRecords, NothingToOpen, NoTransactions):
    """All of `ports.store.Store`, without durability. Usable from any thread and event loop."""

    url = "memory://"
    abilities: frozenset[str] = frozenset()

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self.passed_on: Tell = tell_nobody
        self._places = Places()
        self._tasks = self._places.tasks
        self._attempts: dict[TaskId, list[Attempt]] = {}
        self._events: dict[TaskId, list[Event]] = {}
        self._keys = KeyBook()
        self._fence = 0
        self._refused = 0

    # Tasks

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        return await self.commit(Changes("", tasks, (), idempotency_window))

    async def commit(self, changes: Changes) -> Sequence[Added]:
        with self._lock:
            now = self._clock.now_us()
            plan = self._write_changes(changes, now)
            self._places.settle(now)
            for new in plan.fresh:
                self._places.gates.passed_on.pop(new.id, None)  # whoever submits it tells of it
            answers = [Added(id_, how, self._tasks[id_].state) for id_, how in plan.answers]
        self._tell()
        return answers

    async def get(self, task_id: TaskId) -> Task | None:
        with self._lock:
            return self._tasks.get(task_id)

    async def list(
        self,
        where: TaskFilter,
        *,
        limit: int,
        after: str | None = None,
        order: Order = Order.NEWEST,
    ) -> Page:
        edge = read_cursor(after, order)

        def place(task: Task) -> tuple[datetime | None, TaskId]:
            return (task.finished_at if order.is_by_end else None, task.id)

        with self._lock:
            rest = [task for task in self._matching(where) if is_behind(task, edge, order)]
            rest.sort(key=place, reverse=not order.is_ascending)
            return page_of(rest[: limit + 1], limit=limit, order=order)

    async def count(self, where: TaskFilter, *, limit: int) -> int:
        with self._lock:
            return sum(1 for _ in islice(self._matching(where), limit))

    async def history(self, task_id: TaskId) -> History | None:
        with self._lock:
            if task_id not in self._tasks:
                return None
            attempts, events = self._attempts[task_id], self._events[task_id]
            return History(attempts=tuple(attempts), events=tuple(events))

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        def fits(task_id: TaskId) -> bool:
            task = self._tasks[task_id]
            served = queues is None or task.queue in queues
            return served and task.queue not in paused and task.requires <= capabilities

        with self._lock:
            now, paused = self._clock.now_us(), self._paused
            if not self._is_alive(worker_id):
                raise WorkerGone(worker_id)
            while expired := self._places.next_expired(now):
                self._end(expired, Reason.EXPIRED, now)
            self._places.settle(now)
            self._places.promote(now)
            in_line = (task_id for _, task_id in self._places.ready)
            chosen = list(islice(filter(fits, in_line), limit))
            claims = [self._start(self._tasks[task_id], worker_id, now) for task_id in chosen]
            due = next((at for at, task_id in self._places.waiting if fits(task_id)), None)
            moments = [at for at in (due, self._places.gates.next_look()) if at is not None]
            ranks = [self._tasks[task_id].rank for task_id in chosen]
            return Claimed(claims, (min(moments) - now) / 1e6 if moments else None, ranks)

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        with self._lock:
            now = self._clock.now_us()
            refusals: list[Refusal] = []
            for settlement in settlements:
                task = self._tasks.get(settlement.task_id)
                if task and holds_lease(task, settlement):
                    refusals += self._settle(task, settlement, now)
                elif not self._was_saved(settlement):
                    refusals.append(self._refuse(task, settlement))
                    if task:
                        self._note(task.id, "late_result_refused", now, settlement)
            self._places.settle(now)
        self._tell()
        return refusals

    async def report(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        with self._lock:
            now = self._clock.now_us()
            refusals = []
            for report in reports:
                task = self._tasks.get(report.task_id)
                if not (task and holds_lease(task, report)):
                    refusals.append(self._refuse(task, report))
                    continue
                self._tasks[task.id] = reported(task, report)
                for line in report.logs:
                    self._note(task.id, "log", now, report, detail=line)
                for step, result in report.steps:
                    self._journals.setdefault(task.id, {}).setdefault(step, result)
            return refusals

    async def cancel(
        self, where: TaskFilter, *, limit: int, reason: Reason = Reason.CANCELLED
    ) -> Sequence[Task]:
        with self._lock:
            now = self._clock.now_us()
            stoppable = (
                task
                for task in self._matching(where)
                if task.state not in TERMINAL and not task.cancel_requested
            )
            chosen = list(islice(stoppable, limit))
            for task in chosen:
                if task.state is State.RUNNING:
                    self._tasks[task.id] = replace(task, cancel_requested=True)
                    self._note(task.id, "cancel_requested", now)
                else:
                    self._end(self._tasks[task.id], reason, now)
            self._places.settle(now)
            changed = [self._tasks[task.id] for task in chosen]
        self._tell()
        return changed

    async def requeue(
        self,
        where: TaskFilter,
        *,
        limit: int,
        head_starts: Mapping[str, int],
        pace: float | None = None,
    ) -> Sequence[Task]:
        with self._lock:
            now = self._clock.now_us()
            ids: list[TaskId] = []
            for task in self._matching(where):
                if len(ids) == limit:
                    break
                if task.state not in REQUEUEABLE or self._places.is_ready(task):
                    continue
                if self._places.is_unique_key_taken(task):
                    continue
                ids.append(task.id)
                due = now + (span_us(len(ids) / pace) if pace else 0)
                head_start = head_starts[task.priority]
                if task.state in HURRIED:
                    self._places.put(hurried(task, due, head_start), now)
                else:
                    self._places.put(renewed(task, due, head_start), now)
                    self._note(task.id, "requeued", now)
            self._places.settle(now)
            return [self._tasks[task_id] for task_id in ids]

    async def discard(self, where: TaskFilter, *, limit: int) -> int:
        with self._lock:
            ended = (task for task in self._matching(where) if task.state in TERMINAL)
            return self._forget(list(islice(ended, limit)))

    async def prune(self, *, retention: float, dead_letter_retention: float, limit: int) -> int:
        with self._lock:
            now = self._clock.now_us()
            oldest = dict.fromkeys(TERMINAL, as_time(now - span_us(retention)))
            oldest[State.DEAD_LETTER] = as_time(now - span_us(dead_letter_retention))
            self._keys.forget(used_up=now)
            self._forget_workers(as_time(now - span_us(retention)))
            self._places.gates.forget_latches(now - span_us(retention))
            too_old = (
                task
                for task in self._matching(TaskFilter(states=TERMINAL))
                if task.finished_at and task.finished_at < oldest[task.state]
            )
            return self._forget(list(islice(too_old, limit)))

    async def standing(self, task_id: TaskId) -> Standing | None:
        with self._lock:
            task = self._tasks.get(task_id)
            if task is None:
                return None
            gate = self._places.gates.gate_before(task)
            return Standing(
                now=as_time(self._clock.now_us()),
                task=task,
                queue_paused=task.queue in self._paused,
                ahead=self._places.ahead(task, _AHEAD_CAP),
                ahead_cap=_AHEAD_CAP,
                gate=self._places.gates.state(gate) if gate else None,
                ahead_at_gate=self._places.gates.ahead(gate, task) if gate else None,
                workers=self._newest_workers(),
                ended_last_minute=self._ended_since(task.queue, self._clock.now_us() - _MINUTE),
            )

    async def count_ready(
        self, *, queue: str | None, priority: Priority, rank: int, limit: int
    ) -> int:
        with self._lock:
            ready = [self._tasks[task_id] for order, task_id in self._places.ready if order <= rank]
            aged = (t for t in ready if t.priority is priority and queue in (None, t.queue))
            return min(limit, sum(1 for _ in aged))

    async def gates(
        self, *, names: Collection[str] | None = None, after: str = "", limit: int
    ) -> Sequence[GateState]:
        with self._lock:
            found = self._places.gates.states()
            wanted = (g for g in found if g.name > after and (names is None or g.name in names))
            return list(islice(wanted, max(0, limit)))

    async def demand(self) -> Mapping[frozenset[str], int]:
        with self._lock:
            lines = (*self._places.ready, *self._places.waiting)
            required = (self._tasks[task_id].requires for _, task_id in lines)
            return Counter(each for each in required if each)

    async def stats(self) -> Stats:
        with self._lock:
            now = self._clock.now_us()
            a_minute_ago = as_time(now - _MINUTE)
            tasks = self._tasks.values()
            states = Counter(t.state for t in tasks)
            recent = Counter(
                t.state for t in tasks if t.finished_at and t.finished_at > a_minute_ago
            )
            queues = {task.queue for task in tasks if task.state not in TERMINAL} | self._paused
            return Stats(
                queues=tuple(self._queue_stats(queue, now) for queue in sorted(queues)),
                states={state: states[state] for state in State},
                last_minute={state: recent[state] for state in State if state in TERMINAL},
                refused=self._refused,
            )

    # Workers: the rest is in `fleet.py`.

    async def requests(self, worker_id: WorkerId) -> Requests:
        with self._lock:
            worker = self._workers.get(worker_id)
            running = (self._tasks[task_id] for task_id in sorted(self._places.running))
            asked = [t.id for t in running if t.worker_id == worker_id and t.cancel_requested]
            return Requests(asked, worker is not None and worker.drain_requested)

    async def orphans(self, *, limit: int) -> Sequence[Claim]:
        with self._lock:
            running = (self._tasks[task_id] for task_id in sorted(self._places.running))
            lost = (t for t in running if t.worker_id and not self._is_alive(t.worker_id))
            return [Claim.of(task) for task in islice(lost, limit)]

    def _tell(self) -> None:
        """Tell of those whom gates let pass."""
        with self._lock:
            passed = [self._tasks[task_id] for task_id in self._places.gates.passed_on]
            self._places.gates.passed_on.clear()
            ready = [task for task in passed if self._places.is_ready(task)]
        if ready:
            self.passed_on(callees((task.queue, task.requires, 1) for task in ready))

    # Steps of the above; the lock is held.

    def _start(self, task: Task, worker_id: WorkerId, now: int) -> Claim:
        self._fence += task.lock is not None
        running = started(task, worker_id, None if task.lock is None else self._fence, now)
        self._places.put(running, now)
        self._attempts[task.id].append(
            Attempt(
                number=running.attempt,
                cause=running.cause,
                worker_id=worker_id,
                started_at=as_time(now),
            )
        )
        return Claim.of(running)

    def _plan(self, changes: Changes, now: int) -> tuple[Plan, Changes]:
        """What to write of these; raises what they clash with."""
        until, unique = now + span_us(changes.idempotency_window), self._places.unique
        plan = self._keys.plan(
            changes.tasks, known=self._tasks, unique=unique, now=now, until=until
        )
        return plan, decided(changes, self._kept(changes), self._tasks)

    def _write_changes(self, changes: Changes, now: int) -> Plan:
        plan, fresh = self._plan(changes, now)
        self._keys.seen.update(plan.seen)
        gates = self._places.gates
        gates.count(fresh.ups, now)
        self._tasks.update((new.id, created(new, now)) for new in plan.fresh)  # known to each other
        for new in plan.fresh:
            self._attempts[new.id], self._events[new.id] = [], []
            self._note(new.id, "submitted", now)
            self._places.touch(gates.announce(new.gates))
            self._places.put(self._tasks[new.id], now)
        self._write_records(fresh.records, changes.id, now)
        self._places.touch(gates.count(fresh.downs, now))
        self._places.touch(gates.set_capacities(fresh.capacities))
        return plan

    def _settle(self, task: Task, settlement: Settlement, now: int) -> Sequence[Refusal]:
        if task.cancel_requested:
            settlement = cancelled_instead(settlement)
        if settlement.also is not None:
            try:
                _, also = self._plan(settlement.also, now)
            except CLASHES as clash:
                return [clashed(settlement, clash)]
            self._places.gates.count(also.ups, now, settlement.behind)  # before its own end counts
        self._attempts[task.id][-1] = replace(
            self._attempts[task.id][-1],
            ended_at=as_time(now),
            ended=settlement.ended,
            charged=settlement.charged > task.charged,
            error=settlement.error,
        )
        self._places.put(settled(task, settlement, now), now)
        if settlement.also is not None:
            rest = settlement.also._replace(counts=settlement.also.downs)
            self._write_changes(rest, now)  # after it: its keys are free by now
        return ()

    def _end(self, task: Task, reason: Reason, now: int) -> None:
        """End a task that is not running."""
        state = ended_idle_as(reason)
        self._places.put(replace(task, state=state, reason=reason, finished_at=as_time(now)), now)
        self._note(task.id, reason.value, now)

    def _refuse(self, task: Task | None, late: Settlement | Report) -> Refusal:
        self._refused += 1
        holder = task.worker_id if task and task.state is State.RUNNING else None
        return Refusal(late.task_id, late.attempt, late.worker_id, holder)

    def _note(
        self,
        task_id: TaskId,
        kind: str,
        now: int,
        by: Settlement | Report | None = None,
        detail: str | None = None,
    ) -> None:
        attempt, worker_id = (by.attempt, by.worker_id) if by else (None, None)
        event = Event(
            at=as_time(now), kind=kind, attempt=attempt, worker_id=worker_id, detail=detail
        )
        self._events[task_id].append(event)

    def _forget(self, tasks: Sequence[Task]) -> int:
        for task in tasks:
            del self._tasks[task.id], self._attempts[task.id], self._events[task.id]
            self._journals.pop(task.id, None)
        self._keys.forget(tasks={task.id for task in tasks})
        return len(tasks)

    def _matching(self, where: TaskFilter, *, newest_first: bool = False) -> Iterator[Task]:
        wanted = self._tasks if where.ids is None else self._tasks.keys() & set(where.ids)
        for task_id in sorted(wanted, reverse=newest_first):
            if matches(self._tasks[task_id], where):
                yield self._tasks[task_id]

    def _was_saved(self, settlement: Settlement) -> bool:
        return any(
            attempt.number == settlement.attempt
            and attempt.worker_id == settlement.worker_id
            and attempt.ended == settlement.ended
            for attempt in self._attempts.get(settlement.task_id, ())
        )

    def _ended_since(self, queue: str, since: int) -> int:
        """How many tasks of a queue left the line for good, by being run."""
        return sum(
            task.queue == queue
            and task.state in TERMINAL - {State.CANCELLED}
            and task.finished_at is not None
            and task.finished_at > as_time(since)
            for task in self._tasks.values()
        )

    def _queue_stats(self, queue: str, now: int) -> QueueStats:
        here = [task for task in self._tasks.values() if task.queue == queue]
        states = Counter(task.state for task in here)
        ready = [task for task in here if self._places.is_ready(task)]
        depths = [
            Depth(
                priority=priority,
                ready=len(eligible),
                oldest_seconds=(as_time(now) - min(eligible)).total_seconds(),
            )
            for priority in Priority
            if (eligible := [task.run_at for task in ready if task.priority is priority])
        ]
        return QueueStats(
            queue=queue,
            paused=queue in self._paused,
            ready=len(ready),
            waiting=states[State.QUEUED] + states[State.RETRYING] - len(ready),
            blocked=states[State.BLOCKED],
            running=states[State.RUNNING],
            depths=tuple(depths),
        )
