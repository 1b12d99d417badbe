"""The parts of the ledger that watch gates, workers and queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from tests.kit.checker import Broken
from tests.kit.simulation.book import Book
from tests.kit.simulation.known import Known, KnownWorker, Place
from tests.kit.simulation.world import SimClock

from holdfast.core.attempt import Claim
from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.gate import GateState
from holdfast.core.stats import Standing
from holdfast.core.task import State, Task, TaskId, WorkerId
from holdfast.ports.dispatcher import EVERYBODY


class Watches:
    """The book, and what was found broken."""

    def __init__(
        self,
        clock: SimClock,
        look: Callable[[TaskId], Task | None],
        stands: Callable[[TaskId], Standing | None],
        lease: float,
    ) -> None:
        self.book = Book()
        self.broken: list[Broken] = []
        self.seen: Counter[str] = Counter()
        self._clock = clock
        self._look = look
        self._stands = stands
        self._lease = lease
        self._told: Counter[str] = Counter()
        self._created: set[TaskId] = set()

    def _fail(self, rule: str, task_id: TaskId | None, detail: str) -> None:
        self.broken.append(Broken(rule, task_id, detail))


class WatchesGates(Watches):
    """The store says who has passed, the book whether they may."""

    def listed(self, gates: Sequence[GateState]) -> None:
        """All gates, as the store tells of them."""
        for finding in self.book.gates.judge_list(gates):
            self._fail(*finding)

    def passed_on(self, queues: Mapping[str, int]) -> None:
        """The store tells of those whom gates let pass."""
        self._told.update(queues)

    def _watch(self, *, tells: bool = False) -> None:
        """After a step. `tells`: it must tell of those whom it made ready."""
        self._observe()
        if tells:
            self._judge_told()
        self._told.clear()
        self._created.clear()
        self._judge_gates(by_claim=False)

    def _observe(self, but: Collection[TaskId] = ()) -> None:
        """See how far everybody has come. Those who have just started have passed all."""
        for task_id, known in self.book.tasks.items():
            if known.gates and known.place is Place.ELIGIBLE:
                known.ahead = None
                past = len(known.gates)
                if task_id not in but and (task := self._look(task_id)) is not None:
                    if task.state is State.BLOCKED:
                        past = self._gates_behind(known)
                        self.seen[f"blocked by {known.gates[past].kind}"] += known.was is None
                    elif task.state is not State.QUEUED:
                        self._fail("gate", task_id, f"is {task.state}, though eligible")
                known.have_passed(past, self._clock.now_us())

    def _gates_behind(self, known: Known) -> int:
        """How many gates a blocked task has passed."""
        if len(known.gates) == 1:
            return 0
        standing = self._stands(known.new.id)
        if standing is None or standing.gate is None or standing.gate.name not in known.names:
            self._fail("standing", known.new.id, f"blocked, but stands nowhere: {standing}")
            return 0
        known.ahead = standing.ahead_at_gate
        return known.names.index(standing.gate.name)

    def _judge_told(self) -> None:
        """Whoever stood before a gate and is ready now was told of."""
        needed: Counter[str] = Counter()
        for task_id, known in self.book.tasks.items():
            passed = known.gates and known.is_ready and known.was != len(known.gates)
            if passed and task_id not in self._created:
                needed[known.new.queue] += EVERYBODY if known.new.requires else 1
        for queue, number in needed.items():
            self.seen["told of"] += 1
            if self._told[queue] < min(number, EVERYBODY):
                self._fail("untold", None, f"{number} ready in {queue}, told of {self._told}")

    def _judge_gates(self, *, by_claim: bool) -> None:
        for finding in self.book.gates.judge(self._clock.now_us(), by_claim=by_claim):
            self._fail(*finding)


class WatchesWorkers(Watches):
    """Who is alive, whose tasks are orphans, which queues are paused."""

    def registered(self, worker: WorkerInfo) -> None:
        fresh = KnownWorker(self._clock.mono, self._clock.now_us())
        self.book.workers.setdefault(worker.id, fresh)

    def beaten(self, worker_id: WorkerId, status: WorkerStatus | None, ok: bool) -> None:
        if ok != self.book.is_alive(worker_id):
            self._fail("beat", None, f"{worker_id} was told {ok}")
        elif ok:
            worker = self.book.workers[worker_id]
            worker.beats += 1
            worker.alive = status is not WorkerStatus.STOPPED
            worker.last_beat = self._clock.mono
            worker.last_beat_us = self._clock.now_us()

    def buried(self, worker_id: WorkerId, beats: int | None, done: bool) -> None:
        worker = self.book.workers.get(worker_id)
        able = worker is not None and worker.alive and beats in (None, worker.beats)
        if done != able:
            self._fail("live_worker_buried", None, f"{worker_id} with beats {beats}: {done}")
        elif worker is not None and done:
            silent = self._clock.mono - worker.last_beat
            if silent < self._lease:
                self._fail("live_worker_buried", None, f"{worker_id}, silent for {silent:.1f} s")
            worker.alive = False
            self.seen["worker buried"] += 1

    def orphaned(self, claims: Sequence[Claim], limit: int) -> None:
        expected = sorted(
            k.new.id
            for k in self.book.tasks.values()
            if k.place is Place.RUNNING and k.worker and not self.book.is_alive(k.worker)
        )
        found = sorted(c.task_id for c in claims)
        if found != expected and len(found) < limit:
            self._fail("orphans", None, f"orphans are {expected}, the store says {found}")

    def paused(self, queue: str, new: bool) -> None:
        if new != (queue not in self.book.paused):
            self._fail("pause", None, f"pause of {queue} answered {new}")
        self.book.paused.add(queue)

    def resumed(self, queue: str, new: bool) -> None:
        if new != (queue in self.book.paused):
            self._fail("pause", None, f"resume of {queue} answered {new}")
        self.book.paused.discard(queue)
