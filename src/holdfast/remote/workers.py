"""The engine for workers over HTTP: what each of their requests means."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from holdfast.announcing import Gate
from holdfast.core.attempt import Claim, Report, Settlement
from holdfast.core.fleet import WorkerStatus, is_internal
from holdfast.core.lifecycle import Released
from holdfast.core.query import running_on
from holdfast.core.report import Said, bounded
from holdfast.core.task import TaskId, WorkerId
from holdfast.definitions.readers import read_capabilities, read_name
from holdfast.definitions.registry import Registry
from holdfast.errors import InvalidOption, StoreUnavailable, WorkerGone
from holdfast.herald import Herald
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.remote.desk import Desk
from holdfast.remote.hall import Hall
from holdfast.remote.handouts import Handout, Handouts
from holdfast.remote.overseer import Overseer
from holdfast.remote.roster import Member, Roster
from holdfast.remote.values import Heartbeat, Registration, RemoteResult, ResultAnswer
from holdfast.remote.verdicts import Judge
from holdfast.settings import EVERY_QUEUE, Settings

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
        self._dispatcher = dispatcher
        self._settings = settings
        self._herald = Herald(store, dispatcher.wake)
        self._judge = Judge(registry, settings)
        self._handouts = Handouts(self._judge.timeout_of, grace=grace)
        self._gate = Gate(log)
        self._roster = Roster(store, heartbeat=settings.heartbeat)
        self._desk = Desk(store, self._handouts, self._judge, on_saved=self._saved)
        self._said: dict[tuple[TaskId, int], Said] = {}
        self._hall = Hall(
            store,
            dispatcher,
            poll=settings.poll,
            on_claimed=self._claimed,
            give_back=self.give_back,
            running=self._handouts.count,
            room=self._room,
        )
        self.overseer = Overseer(
            store, self._roster, self._handouts, self._judge, on_saved=self._saved
        )
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
        """Take in a new worker; `*` among its queues means all of them. `token_id` is the only
        token that may speak for it from now on.
        """
        member = await self._roster.register(
            capabilities=read_capabilities("capabilities", list(capabilities)),
            capacity=capacity,
            queues=_read_queues(queues),
            version=version,
            host=host,
            token_id=token_id,
        )
        log.info("worker.registered", worker_id=member.id, host=host, version=version)
        return Registration(
            worker_id=member.id,
            poll_interval_ms=round(self._settings.poll * 1000),
            heartbeat_seconds=self._settings.heartbeat,
        )

    async def refuse_others(self, worker_id: WorkerId, token_id: str) -> None:
        """`WorkerNotFound` unless the worker registered with this token, at whatever server."""
        await self._roster.refuse_others(worker_id, token_id)

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
        member = await self._roster.member(worker_id)
        await self._roster.saw(member)
        if await self._roster.is_leaving(member):
            await asyncio.sleep(min(wait, DRAINED_PAUSE))
            return []
        free = await self._room(member, wait=min(wait, FULL_PAUSE))
        if free <= 0:
            return []
        limit = min(limit, free, max(1, POLL_BYTES // self._settings.max_payload))
        wait = min(wait, LONGEST_WAIT, self._roster.longest_wait(member))
        try:
            return await self._hall.poll(_now_able(member, capabilities), limit=limit, wait=wait)
        except WorkerGone:
            self._roster.forget(worker_id)
            raise

    def timeout_of(self, claim: Claim) -> float | None:
        """How many seconds its attempt may take, if there is a limit."""
        return self._judge.timeout_of(claim)

    async def give_back(self, claims: Sequence[Claim]) -> None:
        """Hand back what nobody received, uncharged. If the store is away they stay with their
        worker, whose heartbeat will not name them.
        """
        pairs = [(claim, self._judge.settle(claim, Released())) for claim in claims]
        try:
            await self._store.save([settlement for _, settlement in pairs])
        except StoreUnavailable as error:
            log.warning("tasks.not_given_back", tasks=len(claims), error=str(error))
            return
        self._handouts.drop(claims)
        self._saved(pairs)

    async def results(
        self, worker_id: WorkerId, results: Sequence[RemoteResult]
    ) -> Sequence[ResultAnswer]:
        """Take results, each on its own; the answers come in the same order.

        A worker that was buried may still hand in what nobody else was given.
        """
        await self._roster.find(worker_id)
        answers = await self._desk.take(worker_id, results)
        self._roster.freed(worker_id)
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
        member = await self._roster.member(worker_id)
        self._roster.heard(member)
        drain = await self._roster.is_leaving(member)
        if status is WorkerStatus.DRAINING and not drain:
            await self._roster.leave(member)
        await self._roster.beat(member)
        stop = dict.fromkeys(await self._store.cancel_requests(worker_id))
        self._handouts.mark_cancelled(worker_id, stop)
        if reports:
            refused = await self._store.report(list(map(self._bounded, reports)))
            stop |= dict.fromkeys(refusal.task_id for refusal in refused)
        if running is not None:
            stop |= dict.fromkeys(await self._reconcile(member, frozenset(running)))
        if member.is_leaving:
            await self._hall.dismiss(worker_id)
        return Heartbeat(cancel=tuple(stop), drain=member.is_leaving)

    async def drain(self, worker_id: WorkerId) -> int:
        """The worker takes no more; how many tasks it still has. With none left it has left."""
        info = await self._roster.find(worker_id)
        if info.status is WorkerStatus.STOPPED:
            return 0
        member = await self._roster.member(worker_id)
        await self._roster.leave(member)
        await self._roster.beat(member)
        await self._hall.dismiss(worker_id)
        left = await self._store.count(running_on(worker_id), limit=MOST_RUNNING)
        if not left:
            await self._store.retire(worker_id)
            self._roster.forget(worker_id)
        return left

    async def close(self) -> None:
        """Answer every poll that waits, call the last who are next, let go of the listeners."""
        await self._hall.close()
        await self._herald.finish()

    async def _room(self, member: Member, *, wait: float = 0.0) -> int:
        """How many more tasks it may hold, by what the store has leased to it. While it may hold
        none, its next result is waited for.
        """
        until = asyncio.get_running_loop().time() + wait
        capacity = member.info.capacity
        while True:
            member.freed.clear()
            room = capacity - await self._store.count(running_on(member.id), limit=capacity)
            left = until - asyncio.get_running_loop().time()
            if room > 0 or left <= 0:
                return room
            with suppress(TimeoutError):
                await asyncio.wait_for(member.freed.wait(), left)

    async def _reconcile(self, member: Member, named: frozenset[TaskId]) -> Collection[TaskId]:
        """Compare what the worker has with what it was given; returns what it must stop."""
        known = self._handouts.of(member.id)
        strays: list[Handout] = []
        for task_id, handout in known.items():
            handout.missed = 0 if task_id in named else handout.missed + 1
            old = self._handouts.age(handout) > 2 * self._settings.heartbeat
            if handout.missed > 1 and old:
                strays.append(handout)
        if strays:
            claims = await self.overseer.still_running(strays)
            for claim in claims:
                log.warning("task.stray", task_id=claim.task_id, attempt=claim.attempt)
            if claims:
                await self.give_back(claims)
        return await self.overseer.adopt_running(member.id, sorted(named - known.keys()))

    def _bounded(self, report: Report) -> Report:
        """The report with as much of its log as the attempt may still write."""
        if not report.logs:
            return report
        key = (report.task_id, report.attempt)
        logs, said = bounded(report.logs, self._said.pop(key, Said()))
        self._said[key] = said
        if len(self._said) > MOST_SAID:
            del self._said[next(iter(self._said))]
        return report._replace(logs=logs)

    def _claimed(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            self._handouts.add(claim)
            if self._gate.is_open():
                self._gate.started(claim)

    def _saved(self, pairs: Sequence[tuple[Claim, Settlement]]) -> None:
        """These are on disk: wake whoever may take what they made ready. Nobody submits that."""
        queues: Counter[str] = Counter()
        for claim, settlement in pairs:
            if settlement.cause is None:
                continue
            if settlement.delay < self._settings.poll:  # later ones are found by looking
                self._hall.nudge(settlement.delay)
                # Somebody who sleeps must know when it is due. One with a lock that is ready again
                # is among those who are next for it.
                if claim.lock is None or settlement.delay > 0.0:
                    queues[claim.queue] += 1
        if queues:
            self._dispatcher.wake(queues)
        self._herald.let_go({claim.lock for claim, _ in pairs if claim.lock is not None})


def _now_able(member: Member, capabilities: Collection[str] | None) -> Member:
    """The worker with only these of its capabilities."""
    if capabilities is None:
        return member
    given = frozenset(capabilities)
    able = (each for each in member.info.capabilities if each in given or is_internal(each))
    return replace(member, info=replace(member.info, capabilities=frozenset(able)))


def _read_queues(queues: Collection[str]) -> tuple[str, ...] | None:
    if EVERY_QUEUE in queues:
        return None
    if not queues:
        raise InvalidOption("queues", "expected at least one queue, or '*' for all of them")
    names = (read_name(f"queues[{n}]", queue) for n, queue in enumerate(queues))
    return tuple(dict.fromkeys(names))
