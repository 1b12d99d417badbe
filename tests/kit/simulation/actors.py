"""Who lives in the simulated world: submitters, workers, rescuers and operators.

They behave as the real parts must: they repeat a call whose outcome they do not know, with the same
arguments; they believe nothing that the store did not say; they may be stopped or killed between
any two steps. What an attempt's end means is decided by the real `core.lifecycle.settle`, and the
rescuer is the real one of `worker.maintenance`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TypeVar

from tests.kit.simulation.ledger import Ledger
from tests.kit.simulation.observed import ObservedStore
from tests.kit.simulation.world import Process, World

from holdfast.core.attempt import CLASHES, Claim, Report, Settlement
from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.gate import Count
from holdfast.core.ids import uuid7
from holdfast.core.lifecycle import (
    Deferred,
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    WorkerLost,
    settle,
)
from holdfast.core.priority import Aging
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Delete, Put
from holdfast.core.task import NewTask, Priority, Progress, State, TaskError, TaskId, WorkerId
from holdfast.engine.waking import Waker
from holdfast.errors import IdempotencyConflict, StoreUnavailable, WorkerGone
from holdfast.ports.dispatcher import Dispatcher, Listener
from holdfast.ports.store import Store
from holdfast.settings import Settings
from holdfast.worker.maintenance.rescuer import Rescuer as RealRescuer

T = TypeVar("T")

LEASE, HEARTBEAT, POLL, IDLE = 30.0, 10.0, 4.0, 12.0
CRASH_LIMIT = 3
SETTINGS = Settings(lease=LEASE, sweep=7.5, crash_limit=CRASH_LIMIT)
WINDOW = 3600.0
QUEUES = ("mail", "video")
NAMES = ("send", "render", "poison")
AGING = Aging()
HEAD_STARTS = {priority.value: AGING.head_start(priority) for priority in Priority}
_ERROR = TaskError(type="ValueError", message="simulated")
_FATAL = TaskError(type="Fatal", message="simulated", retriable=False)
_LOST = TaskError(type="WorkerLost", message="simulated")


class Submitter(Process):
    """Submits with every kind of key, delay and lock, and repeats until it is told the outcome."""

    def __init__(self, world: World, store: Store, ledger: Ledger, number: int) -> None:
        super().__init__()
        self.world, self.store, self.ledger = world, store, ledger
        self.number = number
        self.done = False

    async def live(self) -> None:
        rng = self.world.rng
        while self.number > 0:
            batch = [new_task(self.world) for _ in range(2 if rng.random() < 0.3 else 1)]
            self.number -= len(batch)
            await self._submit(self.world.gated.chained(batch))
            pause = 0.0 if self.world.is_healing else rng.choice((0.0, 0.0, 1.0, 20.0))
            await self.world.sleep(pause)
        self.done = True

    async def _submit(self, batch: Sequence[NewTask]) -> None:
        while True:
            try:
                answers = await self.store.add(batch, idempotency_window=WINDOW)
            except StoreUnavailable:
                if self.world.rng.random() < 0.1:
                    return  # the client gave up: the outcome stays unknown
                continue
            except IdempotencyConflict:
                return
            for answer in answers:
                self.ledger.acknowledge(answer.task_id)
            return


def new_task(world: World) -> NewTask:
    rng, pick = world.rng, world.rng.random
    priority = rng.choice(tuple(Priority))
    new = NewTask(
        id=uuid7(world.clock.wall_us // 1000, rng.getrandbits(74)),
        name=NAMES[2] if pick() < 0.03 else rng.choice(NAMES[:2]),
        payload=b"{}",
        queue=rng.choice(QUEUES),
        priority=priority,
        head_start=AGING.head_start(priority),
        delay=rng.choice((None, None, None, 0.5, 30.0, 900.0)),
        expires_in=rng.choice((5.0, 60.0, 1800.0)) if pick() < 0.1 else None,
        max_retries=rng.choice((0, 1, 3)),
        unique_key=rng.choice(("u1", "u2")) if pick() < 0.3 else None,
        idempotency_key=rng.choice(("i1", "i2")) if pick() < 0.25 else None,
        fingerprint=rng.choice(("f1", "f1", "f1", "f2")),
        lock=rng.choice(("l1", "l2")) if pick() < 0.4 else None,
        requires=frozenset({"gpu"}) if pick() < 0.15 else frozenset(),
    )
    return world.gated.dress(new)


class Worker(Process):
    """One worker process: a main loop that claims and saves, a heartbeat, a body per attempt."""

    def __init__(self, world: World, store: Store, *, capabilities: frozenset[str]) -> None:
        super().__init__()
        self.world, self.store = world, store
        self.capabilities = capabilities
        self.slots = world.rng.choice((1, 2, 3))
        self.queues = world.rng.choice((None, None, QUEUES[:1], QUEUES[1:]))
        self.draining = False
        self._id: WorkerId | None = None
        self._held: dict[tuple[TaskId, int], Claim] = {}
        self._stopping: set[TaskId] = set()
        self._outbox: list[Settlement] = []

    @property
    def is_able(self) -> bool:
        """Whether every task can run here, sooner or later."""
        return self.queues is None and bool(self.capabilities) and not self.draining

    async def live(self) -> None:
        self.world.spawn(self, self._beat())
        while not (self.draining and not self._held and not self._outbox):
            if self._outbox:
                await self._flush()
            elif self.draining:
                self._release_all()
            elif self._id is None:
                await self._register()
            elif len(self._held) < self.slots:
                await self._claim(self._id)
            await self.world.sleep((POLL if self._is_busy() else IDLE) * self.world.rng.random())
        if self._id is not None:
            own = self._id
            await self._insist(lambda: self.store.beat(own, status=WorkerStatus.STOPPED))
        self.alive = False

    def _is_busy(self) -> bool:
        return bool(self._held or self._outbox)

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat until the outcome is known."""
        while True:
            try:
                return await call()
            except StoreUnavailable:
                await self.world.sleep(1.0)

    async def _register(self) -> None:
        worker = WorkerInfo(
            id=WorkerId(f"w-{self.world.rng.getrandbits(48):012x}"),
            host="sim",
            pid=1,
            version="0",
            queues=self.queues,
            capabilities=self.capabilities,
            capacity=self.slots,
        )
        await self._insist(lambda: self.store.register(worker))
        self._id = worker.id

    async def _beat(self) -> None:
        while not self.draining or self._held:
            await self.world.sleep(HEARTBEAT)
            worker_id = self._id
            if worker_id is None:
                continue
            try:
                if not await self.store.beat(worker_id):
                    self._id = None if self._id == worker_id else self._id
                    continue
                if self._held:
                    self._stopping.update((await self.store.requests(worker_id)).cancel)
            except StoreUnavailable:
                continue

    async def _claim(self, worker_id: WorkerId) -> None:
        try:
            claimed = await self.store.claim(
                worker_id,
                queues=self.queues,
                capabilities=self.capabilities,
                limit=self.slots - len(self._held),
            )
        except WorkerGone:
            self._id = None
        except StoreUnavailable:
            await self._reconcile(worker_id)
        else:
            for claim in claimed.claims:
                self._begin(claim)

    async def _reconcile(self, worker_id: WorkerId) -> None:
        """A claim of unknown outcome may have started tasks that nobody runs: hand them back.

        A live worker is never rescued, so without this they would stay `running` for ever.
        """
        mine = TaskFilter(worker_id=worker_id, states=frozenset({State.RUNNING}))
        page = await self._insist(lambda: self.store.list(mine, limit=100))
        ours = self._held.keys() | {(s.task_id, s.attempt) for s in self._outbox}
        for task in page.tasks:
            if (task.id, task.attempt) not in ours:
                self._settle(Claim.of(task), Released())

    def _begin(self, claim: Claim) -> None:
        self._held[claim.task_id, claim.attempt] = claim
        self.world.spawn(self, self._body(claim))

    async def _body(self, claim: Claim) -> None:
        rng = self.world.rng
        lengths = (0.0, 0.1, 3.0) if self.world.is_healing else (0.0, 0.1, 3.0, 20.0, 60.0)
        await self.world.sleep(rng.choice(lengths))
        if claim.name == "poison":
            self.world.kill(self)
            return
        if rng.random() < 0.15:
            await self._report(claim)
        if (claim.task_id, claim.attempt) in self._held:  # else it was drained meanwhile
            self._settle(claim, self._outcome(claim))

    async def _report(self, claim: Claim) -> None:
        try:
            progress = Progress(done=0.5, total=1.0)
            await self.store.report(
                [Report(claim.task_id, claim.attempt, claim.worker_id, progress, None, ("half",))]
            )
        except StoreUnavailable:
            return

    def _outcome(self, claim: Claim) -> Outcome:
        rng = self.world.rng
        if claim.task_id in self._stopping and rng.random() < 0.8:
            return Stopped()
        draw = rng.random()
        if draw < 0.6:
            also = changes(self.world) if rng.random() < 0.2 else None
            return Succeeded(f'"{claim.attempt}"'.encode(), also)
        if draw < 0.78:
            return Failed(_ERROR, rng.choice((None, None, 0.0, 2.0)))
        if draw < 0.83:
            return Failed(_FATAL)
        if draw < 0.89:
            return TimedOut(_ERROR)
        if draw < 0.92:
            return Released(2.0)
        return deferred(self.world) if draw < 0.96 else WorkerLost(_LOST)

    def _release_all(self) -> None:
        for claim in list(self._held.values()):
            self._settle(claim, Released())

    def _settle(self, claim: Claim, outcome: Outcome) -> None:
        self._held.pop((claim.task_id, claim.attempt), None)
        self._outbox.append(settle(claim, outcome, backoff=_backoff, crash_limit=CRASH_LIMIT))

    async def _flush(self) -> None:
        batch, self._outbox = self._outbox, []
        refusals = await self._insist(lambda: self.store.save(batch))
        clashed = {(r.task_id, r.attempt) for r in refusals if r.conflict is not None}
        self._outbox += [s._replace(also=None) for s in batch if (s.task_id, s.attempt) in clashed]


class Committer(Process):
    """Commits tasks and records together, and repeats until it is told the outcome."""

    def __init__(self, world: World, store: Store) -> None:
        super().__init__()
        self.world, self.store = world, store

    async def live(self) -> None:
        while not self.world.is_healing:
            await self.world.sleep(self.world.rng.choice((1.0, 10.0, 60.0)))
            commit = changes(self.world)
            while True:
                try:
                    await self.store.commit(commit)
                except StoreUnavailable:
                    continue
                except CLASHES:
                    pass
                break


class Rescuer(Process):
    """A process that runs the real rescuer, and nothing else."""

    def __init__(self, world: World, store: Store) -> None:
        super().__init__()
        self.world, self.store = world, store
        self._agent = RealRescuer(
            store,
            _Nobody(),
            SETTINGS,
            clock=lambda: world.clock.mono,
            waker=Waker(_Nobody().wake),
        )

    async def live(self) -> None:
        while True:
            rest = SETTINGS.sweep
            with suppress(StoreUnavailable):
                rest = await self.tick()
            await self.world.sleep(rest)

    async def tick(self) -> float:
        return await self._agent.tick()


class _Nobody(Dispatcher):
    """A dispatcher that wakes nobody: workers of this world poll."""

    def wake(self, queues: Mapping[str, int]) -> None: ...

    def listen(self, queues: Collection[str] | None) -> AbstractAsyncContextManager[Listener]:
        raise NotImplementedError

    async def mode(self) -> str:
        return "poll"

    async def close(self) -> None: ...


class Operator(Process):
    """Cancels, requeues, pauses, sets capacities, discards, prunes and counts, at the worst
    moments.
    """

    def __init__(self, world: World, store: ObservedStore, ledger: Ledger) -> None:
        super().__init__()
        self.world, self.store, self.ledger = world, store, ledger

    async def live(self) -> None:
        while True:
            await self.world.sleep(self.world.rng.choice((1.0, 10.0, 40.0)))
            try:
                await self._act()
            except StoreUnavailable:
                continue

    async def _act(self) -> None:
        rng, store = self.world.rng, self.store
        draw, where, limit = rng.random(), self._where(), rng.choice((1, 2, 100))
        if self.world.gated.is_on and rng.random() < 0.2:
            capacity = self.world.gated.capacity(self.ledger.book.gates.busy())
            await store.commit(Changes("", capacities=[capacity]))
        elif draw < 0.15:
            await store.cancel(where, limit=limit)
        elif draw < 0.3:
            await store.cancel(TaskFilter(states=frozenset({State.RUNNING})), limit=limit)
        elif draw < 0.6:
            pace = rng.choice((None, None, 0.5))
            await store.requeue(where, limit=limit, head_starts=HEAD_STARTS, pace=pace)
        elif draw < 0.75:
            await store.pause(rng.choice(QUEUES))
        elif draw < 0.9:
            await store.resume(rng.choice(QUEUES))
        elif draw < 0.91 and self.world.gated.is_on:
            await store.gates(limit=1000)
        elif draw < 0.93:
            await store.discard(where, limit=limit)
        elif draw < 0.96:
            await store.prune(retention=300.0, dead_letter_retention=1200.0, limit=limit)
        else:
            await store.stats()

    def _where(self) -> TaskFilter:
        rng = self.world.rng
        draw = rng.random()
        if draw < 0.6 and self.ledger.book.tasks:
            return TaskFilter(ids=(rng.choice(list(self.ledger.book.tasks)),))
        if draw < 0.8:
            return TaskFilter(name=rng.choice(NAMES))
        if draw < 0.9:
            return TaskFilter(queue=rng.choice(QUEUES))
        return TaskFilter(states=frozenset({rng.choice(tuple(State))}))


def changes(world: World) -> Changes:
    """A record or two of few, of a version that may be right, and perhaps tasks and counts."""
    rng = world.rng
    number = rng.choice((1, 2, 3)) if world.gated.is_on else 1
    tasks: Sequence[NewTask] = ()
    counts: Sequence[Count] = ()
    if rng.random() < 0.6:
        tasks, counts = world.gated.fan([new_task(world) for _ in range(number)])
    keys = rng.sample(("a", "b", "c"), rng.choice((1, 1, 2)))
    versions = (None, 0, 0, 1, 1, 2, 3)
    puts: list[Put | Delete] = [
        Put("note", key, str(rng.getrandbits(30)), rng.choice(versions)) for key in keys
    ]
    if rng.random() < 0.3:
        puts[0] = Delete("note", keys[0], rng.choice(versions))
    return Changes(f"{rng.getrandbits(64):x}", tasks, puts, WINDOW, counts)


def deferred(world: World) -> Deferred:
    """A sleep, or tasks that are waited for; or both."""
    rng = world.rng
    delay = rng.choice((0.0, 0.0, 2.0, 40.0))
    if not world.gated.is_on or rng.random() < 0.2:
        return Deferred(delay)
    latch, tasks, counts = world.gated.group([new_task(world) for _ in range(rng.choice((1, 2)))])
    return Deferred(delay, latch, changes(world)._replace(tasks=tasks, counts=counts))


def lose(claim: Claim) -> Settlement:
    """What a rescuer writes for a task whose worker is lost."""
    return settle(claim, WorkerLost(_LOST), backoff=_backoff, crash_limit=CRASH_LIMIT)


def _backoff(n: int) -> float:
    return 2.0 * n
