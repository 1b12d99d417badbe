"""The requests of workers over HTTP: what each of them means."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.announcing import Announcer
from holdfast.asyncio_tools.shield import to_the_end
from holdfast.core.attempt import Claim, Report
from holdfast.core.fleet import HTTP, WorkerInfo, WorkerStatus, held_by, is_internal
from holdfast.core.lifecycle import Outcome
from holdfast.core.query import running_on
from holdfast.core.report import LogSize, bounded
from holdfast.core.task import TaskId, WorkerId
from holdfast.definitions.readers import read_capabilities, read_name
from holdfast.definitions.registry import Registry
from holdfast.engine.judging import Judge
from holdfast.engine.settling import Settling
from holdfast.engine.waking import Waker
from holdfast.errors import InvalidOption, WorkerGone
from holdfast.flow.breakers import Breakers
from holdfast.flow.starting import Starter
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.remote.leases import Leases
from holdfast.remote.polls import Polls
from holdfast.remote.registrations import Registrations, RemoteWorker
from holdfast.remote.results import Results
from holdfast.remote.steps import RemoteSteps
from holdfast.remote.timeouts import TimeoutEnforcer
from holdfast.remote.values import Heartbeat, Registration, RemoteResult, RemoteStep, TakenResult
from holdfast.setting_readers import EVERY_QUEUE
from holdfast.settings import Settings
from holdfast.tracing import spans_for

log = EventLog("holdfast.remote")

LONGEST_WAIT = 30.0
GRACE = 2.0
"""Seconds after its timeout in which a worker may still say itself how its attempt ended."""
FULL_PAUSE = 1.0
"""Seconds that a poll of a worker without room waits for one of its results."""
DRAINED_PAUSE = 1.0
"""Seconds that a poll of a leaving worker takes, so that one that does not listen does not spin."""
POLL_BYTES = 32 * 1024 * 1024
"""Arguments in one answer, at most; a worker that has room for more asks again."""
MOST_SAID = 10_000
"""Attempts of which it is remembered how much they have logged."""
MOST_RUNNING = 100_000


class RemoteWorkers:
    """Workers over HTTP on one store. Its methods are for one event loop."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        registry: Registry,
        settings: Settings,
        *,
        grace: float = GRACE,
    ) -> None:
        self._store = store
        self._settings = settings
        self._announcer = Announcer(log)
        judge = Judge(registry, settings)
        self.timeout_of = judge.timeout_of
        """How many seconds an attempt may take, if there is a limit."""
        # It must tell others of all that they would not find soon by looking: it runs nothing.
        self._waker = Waker(dispatcher.wake, nudge=self._nudge, ahead=settings.poll)
        self.breakers = Breakers(store, registry)
        """Maintenance too: let every server process run it."""
        self._spans = spans_for(settings)
        settling = Settling(store, judge, self._waker, self._announcer, on_saved=self._saved)
        self._leases = Leases(
            store,
            settling,
            judge.timeout_of,
            grace=grace,
            needs_payload=self.breakers.needs_payload,
        )
        self._registrations = Registrations(store, heartbeat=settings.heartbeat)
        self._steps = RemoteSteps(store, keep=settings.retention)
        self._results = Results(
            store,
            self._leases,
            judge,
            self._steps,
            max_result=settings.max_result,
            window=settings.idempotency_window,
            keep=settings.dead_letter_retention,
        )
        self._said: dict[tuple[TaskId, int], LogSize] = {}
        self._polls = Polls(
            store,
            dispatcher,
            self._registrations,
            self._leases,
            poll=settings.poll,
            aging=settings.aging,
            on_claimed=self._claimed,
            look=Starter(store, settings).start,
            breakers=self.breakers,
        )
        self.timeouts = TimeoutEnforcer(store, self._registrations, self._leases, judge)
        """The maintenance that only a server does. Let every server process run it."""

    async def register(
        self,
        *,
        capabilities: Collection[str] = (),
        capacity: int = 1,
        queues: Collection[str] = ("default",),
        version: str = "",
        host: str = "",
        token_id: str | None = None,
    ) -> Registration:
        """Take in a new worker, under an id that nobody had before; `*` among its queues means all
        of them. `token_id` is the only token that may speak for it from now on.
        """
        able = read_capabilities("capabilities", list(capabilities)) | {HTTP}
        worker = WorkerInfo(
            id=WorkerId(f"{HTTP}-{secrets.token_hex(8)}"),
            host=host,
            pid=0,
            version=version,
            queues=_read_queues(queues),
            capabilities=able if token_id is None else able | {held_by(token_id)},
            capacity=capacity,
            kind=HTTP,
        )
        await self._registrations.add(worker)
        log.info("worker.registered", worker_id=worker.id, host=host, version=version)
        return Registration(
            worker_id=worker.id,
            poll_interval_ms=round(self._settings.poll * 1000),
            heartbeat_seconds=self._settings.heartbeat,
        )

    async def refuse_others(self, worker_id: WorkerId, token_id: str) -> None:
        """`WorkerNotFound` unless the worker registered with this token, at whatever server."""
        await self._registrations.refuse_others(worker_id, token_id)

    async def poll(
        self,
        worker_id: WorkerId,
        *,
        limit: int,
        wait: float = LONGEST_WAIT,
        capabilities: Collection[str] | None = None,
    ) -> Sequence[Claim]:
        """Tasks for the worker, as soon as there is one; an empty answer after `wait` seconds.

        Counts as a sign of life; so the poll of a worker that sends no heartbeats is answered
        before it would have to send one. Cancel it when the client hangs up: what was claimed for
        nobody goes back. A worker that is to leave gets nothing more. `capabilities` are those that
        the worker has at the moment, of the ones it registered with.
        """
        worker = await self._registrations.alive(worker_id)
        await self._registrations.saw(worker)
        if await self._registrations.is_leaving(worker):
            await asyncio.sleep(min(wait, DRAINED_PAUSE))
            return []
        free = await self._registrations.free_capacity(worker, wait=min(wait, FULL_PAUSE))
        if free <= 0:
            return []
        limit = min(limit, free, max(1, POLL_BYTES // self._settings.max_payload))
        wait = min(wait, LONGEST_WAIT, self._registrations.longest_wait(worker))
        try:
            return await self._polls.poll(_now_able(worker, capabilities), limit=limit, wait=wait)
        except WorkerGone:
            self._registrations.forget(worker_id)
            raise

    async def recorded(self, claims: Sequence[Claim]) -> Mapping[TaskId, Sequence[RemoteStep]]:
        """What earlier attempts of these recorded; if that cannot be read, the claims go back."""
        try:
            return await self._steps.recorded(claims)
        except BaseException:
            await to_the_end(self.give_back(claims))
            raise

    async def give_back(self, claims: Sequence[Claim]) -> None:
        """Hand back what nobody received, uncharged."""
        await self._leases.give_back(claims)

    async def results(
        self, worker_id: WorkerId, results: Sequence[RemoteResult]
    ) -> Sequence[TakenResult]:
        """Take results, each on its own; the answers come in the same order.

        A worker that was buried may still hand in what nobody else was given.
        """
        await self._registrations.find(worker_id)
        answers = await self._results.take(worker_id, results)
        self._registrations.freed(worker_id)
        return answers

    async def heartbeat(
        self,
        worker_id: WorkerId,
        *,
        status: WorkerStatus | None = None,
        reports: Sequence[Report] = (),
        running: Collection[TaskId] | None = None,
    ) -> Heartbeat:
        """The worker lives. Says which of its tasks to stop, and whether to leave.

        `running` is all that the worker knows that it has. What it was given and does not name,
        beat after beat, never reached it, and is handed back; what it names and no longer has, it
        is told to stop. One that is to leave, or once said that it will, stays `draining` whatever
        it says now.
        """
        worker = await self._registrations.alive(worker_id)
        self._registrations.heard(worker)
        stop = dict.fromkeys(await self._registrations.to_stop(worker))
        if status is WorkerStatus.DRAINING and not worker.is_leaving:
            await self._registrations.leave(worker)
        await self._registrations.beat(worker)
        self._leases.mark_cancelled(worker_id, stop)
        if reports:
            refused = await self._store.report(list(map(self._bounded, reports)))
            stop |= dict.fromkeys(refusal.task_id for refusal in refused)
        if running is not None:
            stop |= dict.fromkeys(
                await self._leases.reconcile(
                    worker_id, frozenset(running), beat=self._settings.heartbeat
                )
            )
        if worker.is_leaving:
            await self._polls.dismiss(worker_id)
        return Heartbeat(cancel=tuple(stop), drain=worker.is_leaving)

    async def drain(self, worker_id: WorkerId) -> int:
        """The worker takes no more; how many tasks it still has. With none left it has left."""
        info = await self._registrations.find(worker_id)
        if info.status is WorkerStatus.STOPPED:
            return 0
        worker = await self._registrations.alive(worker_id)
        await self._registrations.leave(worker)
        await self._registrations.beat(worker)
        await self._polls.dismiss(worker_id)
        left = await self._store.count(running_on(worker_id), limit=MOST_RUNNING)
        if not left:
            await self._store.beat(worker_id, status=WorkerStatus.STOPPED)
            self._registrations.forget(worker_id)
        return left

    async def close(self) -> None:
        """Answer every poll that waits, let go of the listeners."""
        await self._polls.close()

    def _bounded(self, report: Report) -> Report:
        """The report with as much of its log as the attempt may still write."""
        if not report.logs:
            return report
        key = (report.task_id, report.attempt)
        logs, said = bounded(report.logs, self._said.pop(key, LogSize()))
        self._said[key] = said
        if len(self._said) > MOST_SAID:
            del self._said[next(iter(self._said))]
        return report._replace(logs=logs)

    def _claimed(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            self._leases.add(claim)
            if self._announcer.is_open():
                self._announcer.started(claim)

        if self._spans is not None:
            self._spans.given_out(claims)

    def _saved(self, claim: Claim, outcome: Outcome) -> None:
        self.breakers.ended(claim, outcome)
        if self._spans is not None:
            self._spans.ended_elsewhere(claim, outcome)

    def _nudge(self, due_in: float) -> None:
        self._polls.nudge(due_in)


def _now_able(worker: RemoteWorker, capabilities: Collection[str] | None) -> RemoteWorker:
    """The worker with only these of its capabilities."""
    if capabilities is None:
        return worker
    given = frozenset(capabilities)
    able = (each for each in worker.info.capabilities if each in given or is_internal(each))
    return replace(worker, info=replace(worker.info, capabilities=frozenset(able)))


def _read_queues(queues: Collection[str]) -> tuple[str, ...] | None:
    if EVERY_QUEUE in queues:
        return None
    if not queues:
        raise InvalidOption("queues", "expected at least one queue, or '*' for all of them")
    names = (read_name(f"queues[{n}]", queue) for n, queue in enumerate(queues))
    return tuple(dict.fromkeys(names))
