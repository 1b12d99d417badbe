"""Runs tasks right here, one after another, as a worker would: for tests of your own tasks.

Everything goes the worker's way (arguments and results through the codec, outcomes through
`core.lifecycle`, the store's order, locks and fences), only without threads, processes and waiting.
Sync handlers run in the calling thread and cannot be timed out here; async ones can. Retries wait
for the full delay, without jitter, so that a test can say when.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import orjson

from holdfast.app import Holdfast
from holdfast.asyncio_tools.bridge import BRIDGE
from holdfast.builtin.worker import built_ins, registry_of
from holdfast.companions import firer_of
from holdfast.core.attempt import Claim, Report
from holdfast.core.delivery import NAME as DELIVER
from holdfast.core.fleet import WorkerInfo
from holdfast.core.lifecycle import (
    UNFINISHED,
    Deferred,
    Dropped,
    Failed,
    Outcome,
    Released,
    Succeeded,
    TimedOut,
    Unfit,
)
from holdfast.core.query import TaskFilter
from holdfast.core.task import Json, State, TaskError, TaskId, WorkerId
from holdfast.definitions.context import Context, enter_context
from holdfast.definitions.steps import Deferral, StepHost
from holdfast.engine.judging import Judge, bringing, refused_follow_up
from holdfast.errors import HoldfastError
from holdfast.flow.bodies import after_its_body, is_body_first
from holdfast.flow.starting import Starter, must_look
from holdfast.flow.stored_steps import StoredSteps
from holdfast.flow.trees import Trees
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.worker.batch import BatchRun
from holdfast.worker.batch_claim import BatchClaim, members_of
from holdfast.worker.gathering import is_better_alone
from holdfast.worker.middleware import around_run, around_settle
from holdfast.worker.run import Run, StopReason
from holdfast.worker.verdict import accept, judge, stopped, unknown

Until = Literal["idle", "empty"]
"""`idle`: nothing may start now. `empty`: nothing waits for a later time either."""

WORKER = WorkerId("drain")
_WITH_ERROR = (Dropped, Failed, TimedOut, Unfit)
MOST = 10_000
"""Attempts after which a drain gives up: something submits itself without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One attempt that a drain made: what became of the task, what it returned or raised."""

    task_id: TaskId
    name: str
    attempt: int
    state: State
    result: Json = None
    error: TaskError | None = None


class Drains:
    """The two verbs of everything that can be drained."""

    _drain: Drain

    def drain(self, until: Until = "idle", *, most: int = MOST, reraise: bool = False) -> list[Ran]:
        """Run tasks in this thread until nothing may start now, and say what ran.

        Args:
            until: "idle" leaves retries and delayed tasks waiting; "empty" moves the clock forward
                to them until nothing is left.
            most: attempts after which it gives up.
            reraise: raise what a handler raises, instead of only recording it.
        """
        return self._drain.run(until, most=most, reraise=reraise)

    async def drain_async(
        self, until: Until = "idle", *, most: int = MOST, reraise: bool = False
    ) -> list[Ran]:
        """`drain` for async tests."""
        return await self._drain.run_async(until, most=most, reraise=reraise)


class Drain:
    """Drains an app whose store is in memory."""

    def __init__(self, app: Holdfast, clock: FakeClock) -> None:
        self._app = app
        self._clock = clock
        self._capabilities: frozenset[str] = frozenset()
        self._gathered: dict[str, list[Claim]] = {}

    def run(self, until: Until, *, most: int, reraise: bool) -> list[Ran]:
        """Drain from sync code; handlers run in this thread, unless it has a running loop."""
        work = self.run_async(until, most=most, reraise=reraise)
        if _has_running_loop():
            return BRIDGE.run(work)
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(work)

    async def run_async(self, until: Until, *, most: int, reraise: bool) -> list[Ran]:
        """Run what is ready, most urgent first, and what that submits, until nothing is."""
        self._app.load_tasks()
        store = (await self._app.verbs()).store
        await self._register(store)
        if self._app.registry.schedules:
            await self._app.schedules.reconcile_async()
        ran: list[Ran] = []
        while (claim := await self._next(store, until)) is not None:
            if len(ran) >= most:
                for one in [claim, *chain(*self._gathered.values())]:
                    for member in members_of(one):
                        await self._save(store, member, Released())
                self._gathered.clear()
                raise HoldfastError(
                    f"drain made {most} attempts and there is more to do. Does a task submit "
                    "itself again and again? Otherwise raise `most`."
                )
            ran += await self._ran(store, claim, reraise=reraise)
        return ran

    async def _register(self, store: Store) -> None:
        if not any(worker.id == WORKER for worker in await store.workers()):
            await store.register(
                WorkerInfo(
                    id=WORKER,
                    host="test",
                    pid=os.getpid(),
                    version="test",
                    queues=None,
                    capabilities=frozenset(),
                    capacity=1,
                )
            )

    async def _next(self, store: Store, until: Until) -> Claim | None:
        while True:
            found = await store.claim(WORKER, queues=None, capabilities=self._capabilities, limit=1)
            if found.claims:
                if (claim := self._unless_gathered(found.claims[0])) is not None:
                    return claim
                continue
            if await self._learned(store) or await self._did_chores(store):
                continue
            if self._gathered:
                return BatchClaim.gathered(self._gathered.pop(next(iter(self._gathered))))
            if until == "idle" or found.next_due is None:
                return None
            self._clock.advance(max(found.next_due, 1e-6))

    def _unless_gathered(self, claim: Claim) -> Claim | None:
        """The claim to run now: a member of a batch waits until that is full, or nothing else may
        start.
        """
        definition = self._app.registry.get(claim.name)
        if definition is None or definition.batch is None:
            return claim
        if is_better_alone(claim):
            return BatchClaim.gathered([claim])
        gathered = self._gathered.setdefault(claim.name, [])
        gathered.append(claim)
        if len(gathered) < definition.batch.max:
            return None
        return BatchClaim.gathered(self._gathered.pop(claim.name))

    async def _learned(self, store: Store) -> bool:
        """Take on every capability that a waiting task requires; whether there was a new one."""
        page = await store.list(TaskFilter(states=UNFINISHED), limit=1000)
        needed = frozenset[str]().union(*(task.requires for task in page.tasks))
        is_new = not needed <= self._capabilities
        self._capabilities |= needed
        return is_new

    async def _did_chores(self, store: Store) -> bool:
        """Finish what takes several steps and fire what is due, as every worker does beside its
        work.
        """
        dispatcher = (await self._app.verbs()).dispatcher
        chores = Trees(store, dispatcher, self._app.settings).chores
        await chores.round()
        firer = firer_of(store, dispatcher, self._app.settings)
        await firer.round()
        return chores.done + firer.fired > 0

    async def _ran(self, store: Store, claim: Claim, *, reraise: bool) -> list[Ran]:
        reports: list[Report] = []
        raised: list[Exception] = []
        ended: list[tuple[Claim, Outcome]] = []
        may_run: list[Claim] = []
        for one in members_of(claim):
            looked_at: Claim | Outcome = one
            if must_look(one):
                looked_at = await Starter(store, self._app.settings).start(one)
            if isinstance(looked_at, Claim):
                may_run.append(looked_at)
            else:
                ended.append((one, looked_at))
        if may_run:
            whole = BatchClaim.gathered(may_run) if isinstance(claim, BatchClaim) else may_run[0]
            ended += await self._attempted(store, whole, reports, raised)
        await store.report(reports)
        ran = [await self._ended(store, one, outcome) for one, outcome in ended]
        failed = [outcome for _, outcome in ended if isinstance(outcome, (Failed, Unfit))]
        if reraise and raised and failed:
            raise raised[0]
        return ran

    async def _attempted(
        self, store: Store, claim: Claim, reports: list[Report], raised: list[Exception]
    ) -> list[tuple[Claim, Outcome]]:
        """Run the handler, and say how each attempt ended."""
        definition = self._app.registry.get(claim.name)
        if definition is None and claim.name == DELIVER:
            tasks = await built_ins(self._app, is_server=False)
            definition = registry_of(self._app, tasks)[claim.name]
        if definition is None:
            return [(claim, unknown(claim.name, self._app.registry.suggest(claim.name)))]
        if isinstance(claim, BatchClaim):
            run: Run = BatchRun(claim, definition, reports.append)
        else:
            host = self._step_host(store)
            run = Run(claim, definition, None, reports.append, step_host=host)
        execute = around_run(self._app.registry, lambda run: _attempt(run, raised.append))
        outcome = await execute(run)
        run.ended = True
        if isinstance(run, BatchRun):
            return run.ends(outcome)
        settings = definition.home.settings
        if run.follow_ups or is_body_first(claim):
            outcome = bringing(outcome, run.follow_ups or (), settings.idempotency_window)
        return [(claim, after_its_body(claim, outcome, settings.dead_letter_retention))]

    async def _ended(self, store: Store, claim: Claim, outcome: Outcome) -> Ran:
        if isinstance(outcome, Unfit):  # there is no other worker here that might be fit
            outcome = replace(outcome, again_in=None)
        state = await self._save(store, claim, outcome)
        return Ran(
            task_id=claim.task_id,
            name=claim.name,
            attempt=claim.attempt,
            state=state,
            result=orjson.loads(outcome.result) if isinstance(outcome, Succeeded) else None,
            error=outcome.error if isinstance(outcome, _WITH_ERROR) else None,
        )

    def _step_host(self, store: Store) -> StepHost:
        settings = self._app.settings
        return StoredSteps(store, settings.max_result, settings.retention)

    async def _save(self, store: Store, claim: Claim, outcome: Outcome) -> State:
        judge = Judge(self._app.registry, self._app.settings, draw=_no_jitter)
        settlement = around_settle(self._app.registry, judge.settle)(claim, outcome)
        for refusal in await store.save([settlement]):
            sleeps = isinstance(outcome, Deferred) and outcome.behind is None
            again = Deferred() if sleeps else refused_follow_up(refusal)
            settlement = judge.settle(claim, again)
            await store.save([settlement])
        task = await store.get(claim.task_id)
        return settlement.state if task is None else task.state


async def _attempt(run: Run, raised: Callable[[Exception], None]) -> Outcome:
    """One attempt, from stored payload to outcome."""
    definition = run.definition
    limit = asyncio.timeout(definition.timeout_of(run.claim))
    try:
        async with limit:
            value = await _called(run)
    except Deferral as deferral:
        return judge(definition, run.claim.payload, deferral)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is the task's outcome
        if limit.expired():
            run.stop(StopReason.TIMED_OUT)
            return stopped(run, error)
        raised(error)
        return judge(definition, run.claim.payload, error)
    return accept(definition, run.claim.payload, value)


async def _called(run: Run) -> Any:
    """Call the handler with a context of its own, so that nothing it sets is seen by the next."""
    definition = run.definition
    context = Context(run.claim, run)
    variables = copy_context()
    variables.run(enter_context, context)
    value = variables.run(definition.start, context, run.claim.payload)
    if definition.is_async:
        run.line = task = asyncio.get_running_loop().create_task(value, context=variables)
        return await task
    return value


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _no_jitter() -> float:
    return 1.0
