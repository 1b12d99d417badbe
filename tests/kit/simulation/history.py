"""One history: who lives in it, how long it is disturbed, how it heals, and whether it held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from tests.kit.checker import Broken, Picture, check
from tests.kit.simulation.actors import (
    CRASH_LIMIT,
    LEASE,
    QUEUES,
    Committer,
    Operator,
    Rescuer,
    Submitter,
    Worker,
)
from tests.kit.simulation.ledger import Ledger
from tests.kit.simulation.observed import Drive, Faults, ObservedStore
from tests.kit.simulation.world import World

from holdfast import pauses
from holdfast.core.gate import Capacity, Count
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes
from holdfast.core.stats import Standing
from holdfast.core.task import Task, TaskId
from holdfast.ports.clock import Clock
from holdfast.ports.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.factories import worker_info

HEAL_STEPS = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is simulated: the store, and the parts around it that a test may break on purpose."""

    store: Callable[[Clock], Store] = lambda clock: MemoryStore(clock=clock)
    drive: Drive = field(default_factory=Drive)
    rescuer: type[Rescuer] = Rescuer
    worker: type[Worker] = Worker
    sets_clock_back: bool = True
    gates: bool = True


class Verdict(NamedTuple):
    """What came out of one seed. `broken` is empty if every promise held; its first entry is the
    earliest.
    """

    seed: int
    broken: tuple[Broken, ...]
    seen: Mapping[str, int]
    steps: int

    def __str__(self) -> str:
        lines = "\n  ".join(str(broken) for broken in self.broken[:5]) or "every promise held"
        again = f"SIM_SEED={self.seed} python -m tests.kit.simulation"
        return f"seed {self.seed}:\n  {lines}\n  again: {again}"


class History:
    """Everything that happens for one seed."""

    def __init__(self, seed: int, setup: Setup) -> None:
        self.seed = seed
        self.setup = setup
        rng = Random(seed)
        self.world = World(rng, gates=setup.gates)
        self.store = setup.store(self.world.clock)
        self.ledger = Ledger(
            self.world.clock, self._look, self._stands, lease=LEASE, crash_limit=CRASH_LIMIT
        )
        self.store.passed_on = self.ledger.passed_on
        rate = rng.choice((0.0, 0.0, 0.05, 0.2))
        self.faults = Faults(rate, rate)
        self.violence = rng.choice((0.0, 0.02, 0.05))
        self.clock_is_steady = not setup.sets_clock_back or rng.random() < 0.8
        self.submitters = [
            Submitter(self.world, self._face(), self.ledger, rng.choice((2, 3, 4)))
            for _ in range(2)
        ]
        self.workers: list[Worker] = []
        self.rescuers: list[Rescuer] = []
        self.crew = rng.choice((1, 2, 2, 3))

    def run(self) -> Verdict:
        drive = self.setup.drive
        drive(self.store.open())
        try:
            self._live()
            if not self.ledger.broken:
                self._judge(self._pictures())
            if not self.ledger.broken and self.world.gated.is_on:
                self._judge_gates()
        finally:
            self.world.end()
            drive(self.store.close())
        return Verdict(self.seed, tuple(self.ledger.broken), self.ledger.seen, self.world.steps)

    def _live(self) -> None:
        world, rng = self.world, self.world.rng
        for submitter in self.submitters:
            world.spawn(submitter, submitter.live())
        for _ in range(rng.choice((1, 1, 2))):
            self._start_rescuer()
        committer = Committer(world, self._face())
        world.spawn(committer, committer.live())
        operator = Operator(world, self._face(), self.ledger)
        world.spawn(operator, operator.live())
        for _ in range(rng.choice((50, 110, 180))):
            self._keep_crew()
            if rng.random() < self.violence:
                self._disturb()
            world.step()
            if self.ledger.broken:
                return
        world.kill(operator)
        self._heal()

    def _heal(self) -> None:
        """Nothing fails any more: now everything must come to its end."""
        self.faults.heal()
        self.world.is_healing = True
        for rescuer in self.rescuers[1:]:
            self.world.kill(rescuer)
        for worker in self.workers[2:]:
            worker.draining = True
        for queue in QUEUES:
            self.ledger.resumed(queue, self.setup.drive(pauses.resume(self.store, queue)))
        shut = [name for name, capacity in self.ledger.book.gates.pins.items() if capacity == 0]
        self._commit(Changes("heal", capacities=[Capacity(name, None) for name in shut]))
        for step in range(HEAL_STEPS):
            if step % 10 == 0:
                self._keep_able_worker()
                if all(s.done or not s.alive for s in self.submitters) and not self._pending():
                    return
                self._skip_waiting()
            self.world.step()
            if self.ledger.broken:
                return

    def _skip_waiting(self) -> None:
        """Nobody runs and nothing is due: go on to the next due instant. If there is none, the
        groups that were counted up too often are counted down.
        """
        due = self.ledger.book.next_due_us()
        if due == 0:
            left = {name: latch.left for name, latch in self.ledger.book.gates.latches.items()}
            counts = [Count(name, -number) for name, number in left.items() if number]
            self._commit(Changes("heal", counts=counts))
        elif due is not None and due > self.world.clock.wall_us:
            self.world.clock.jump((due - self.world.clock.wall_us) / 1e6 + 0.001)

    def _commit(self, changes: Changes) -> None:
        self.ledger.committed(changes, self.setup.drive(self.store.commit(changes)), {})

    def _pending(self) -> bool:
        return bool(self.ledger.book.unfinished())

    def _keep_crew(self) -> None:
        """The supervisor: starts a new worker for each that died."""
        self.workers = [worker for worker in self.workers if worker.alive]
        while len(self.workers) < self.crew:
            gpu = self.world.rng.random() < 0.4
            self._start_worker(frozenset({"gpu"}) if gpu else frozenset())

    def _keep_able_worker(self) -> None:
        if not any(worker.alive and worker.is_able for worker in self.workers):
            self._start_worker(frozenset({"gpu"}))
            self.workers[-1].queues = None

    def _start_worker(self, capabilities: frozenset[str]) -> None:
        worker = self.setup.worker(self.world, self._face(), capabilities=capabilities)
        self.workers.append(worker)
        self.world.spawn(worker, worker.live())

    def _start_rescuer(self) -> None:
        rescuer = self.setup.rescuer(self.world, self._face(is_rescuer=True))
        self.rescuers.append(rescuer)
        self.world.spawn(rescuer, rescuer.live())

    def _disturb(self) -> None:
        world, rng = self.world, self.world.rng
        draw = rng.random()
        victim = rng.choice(self.workers)
        if draw < 0.2:
            world.kill(victim)
        elif draw < 0.6:
            world.stop(victim, LEASE * rng.choice((0.9, 1.1, 2.0, 4.0)))
        elif draw < 0.7:
            victim.draining = True
        elif draw < 0.75:
            world.stop(rng.choice(self.submitters), 20.0)
        elif draw < 0.8:
            world.stop(rng.choice(self.rescuers), 10.0 + 20.0 * rng.random())
        elif draw < 0.85:
            world.kill(rng.choice(self.submitters))
        elif draw < 0.95 or self.clock_is_steady:
            world.clock.jump(rng.choice((60.0, 1300.0, 4000.0)))
        else:
            world.clock.jump(-rng.choice((5.0, 600.0, 3600.0)))

    def _face(self, *, is_rescuer: bool = False) -> ObservedStore:
        return ObservedStore(
            self.store,
            world=self.world,
            ledger=self.ledger,
            faults=self.faults,
            drive=self.setup.drive,
            is_rescuer=is_rescuer,
        )

    def _look(self, task_id: TaskId) -> Task | None:
        return self.setup.drive(self.store.get(task_id))

    def _stands(self, task_id: TaskId) -> Standing | None:
        return self.setup.drive(self.store.standing(task_id))

    def _pictures(self) -> list[Picture]:
        drive = self.setup.drive
        tasks = drive(self.store.list(TaskFilter(), limit=1000)).tasks
        histories = [(task, drive(self.store.history(task.id))) for task in tasks]
        return [Picture(task, history) for task, history in histories if history is not None]

    def _judge(self, pictures: list[Picture]) -> None:
        ledger = self.ledger
        ledger.broken += check(
            pictures,
            acknowledged=ledger.acknowledged - ledger.forgotten,
            crash_limit=CRASH_LIMIT,
            steady_clock=self.clock_is_steady,
        )
        ledger.close(pictures)
        ledger.counted(self.setup.drive(self.store.stats()))

    def _judge_gates(self) -> None:
        """Nobody is left: a period later nothing is known of gates but open latches and pins."""
        drive, store, last = self.setup.drive, self.store, worker_info()
        self.world.clock.jump(40_000.0)
        drive(store.register(last))
        drive(store.claim(last.id, queues=None, capabilities=frozenset(), limit=1))
        gates = self.ledger.book.gates
        gates.starts.clear()
        self.ledger.listed(drive(store.gates(limit=1000)))


def run_history(seed: int, setup: Setup | None = None) -> Verdict:
    """Live through the history of this seed and judge it."""
    return History(seed, setup or Setup()).run()
