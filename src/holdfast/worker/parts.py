"""The parts of a worker, joined: feeder → buffer → slots → outcomes → settler → store.

Made inside the running loop, once per `Worker.run()`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.announcing import Announcer
from holdfast.core.attempt import Claim, Refusal, Settlement
from holdfast.core.fleet import knows
from holdfast.core.lifecycle import Outcome
from holdfast.core.task import State, WorkerId
from holdfast.core.unfit import offered_again_in
from holdfast.counting import tally_of
from holdfast.definitions.definition import Executor
from holdfast.definitions.registry import Registry
from holdfast.engine.waking import Waker, also_tell
from holdfast.flow.breakers import Breakers
from holdfast.flow.starting import Starter
from holdfast.flow.trees import Trees
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.settings import Settings
from holdfast.tracing import spans_for
from holdfast.worker.claim_buffer import ClaimBuffer
from holdfast.worker.coroutines import CoroutineRunner
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.feeder import Feeder
from holdfast.worker.gathering import Gatherer
from holdfast.worker.heartbeat import StartHeartbeat
from holdfast.worker.loopwatch import LoopWatch
from holdfast.worker.maintenance.forgetter import Forgetter
from holdfast.worker.membership import Membership
from holdfast.worker.middleware import Execute, around_run, around_settle
from holdfast.worker.outcomes import Outcomes
from holdfast.worker.pace import Pace
from holdfast.worker.reporter import Reporter
from holdfast.worker.requests import RequestWatch
from holdfast.worker.run import Run, Runner
from holdfast.worker.settler import Settler
from holdfast.worker.slots import Slots
from holdfast.worker.steps import WorkerSteps
from holdfast.worker.threads import ThreadRunner
from holdfast.worker.transactions import WorkerTransactionHost

log = EventLog("holdfast.worker")

R = TypeVar("R", bound=Runner)


class Parts:
    """Everything that lives as long as one `Worker.run()`."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        registry: Registry,
        settings: Settings,
        *,
        worker_id: WorkerId,
        app_spec: str | None,
        burst: bool,
        kind: str,
        start_heartbeat: StartHeartbeat,
        send_home: Callable[[], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        known = frozenset(map(knows, registry))
        settings = self._settings = replace(settings, capabilities=settings.capabilities | known)
        self._app_spec = app_spec
        self._loop = loop
        self._elsewhere: dict[Executor, Runner] = {}
        pace = Pace(settings.concurrency)
        self._announcer = Announcer(log, self._announcer_closed)
        self._counting: asyncio.TimerHandle | None = None
        self._counted_from = 0, 0.0
        self.deadlines = Deadlines(loop)
        self.membership = Membership(
            store,
            settings,
            worker_id,
            kind=kind,
            start_heartbeat=start_heartbeat,
            load=lambda: self.slots.busy,
            on_lost=self._lost,
        )
        self.reporter = Reporter(store, loop, self.membership.refused)
        self.steps = WorkerSteps(store, loop, settings, self.membership.refused)
        self.settler = Settler(
            store,
            self.reporter,
            on_saved=self._saved,
            on_clashed=self._clashed,
            on_refused=self.membership.refused,
        )
        self._store = store
        self.waker = Waker(dispatcher.wake, nudge=self._nudge)
        self.forgetter = Forgetter(store, registry)
        self.chores = Trees(store, dispatcher, settings).chores
        self.breakers = Breakers(store, registry)
        self.outcomes = Outcomes(
            registry,
            settings,
            save=self.settler.put,
            waker=self.waker,
            forget=self.forgetter.note,
            hurry=self.chores.hurry,
            announcer=self._announcer,
            tally=tally_of(store),
            breakers=self.breakers,
        )
        settle = around_settle(registry, self.outcomes.enter)
        spans = self.spans = spans_for(settings)
        parts = loop, self.deadlines, self._still_runs
        self._coroutines = self._in_spans(CoroutineRunner, *parts)
        self._room = asyncio.Event()
        self.buffer = ClaimBuffer(loop, self._room.set)
        self.gatherer = Gatherer(
            loop, registry, lambda batch, since: self.buffer.put([batch], since)
        )
        self.slots = Slots(
            self.buffer,
            registry,
            pace,
            hot=None if registry.middleware.run else self._coroutines,
            execute=self._with_spans(around_run(registry, self._execute)),
            report=self.reporter.put,
            settle=settle,
            too_old=settings.lease / 3,
            confirm=self.membership.confirm,
            unfit=self._unfit,
            look=Starter(store, settings).start,
            announcer=self._announcer,
            tally=tally_of(store),
            stop_grace=settings.stop_grace,
            host=WorkerTransactionHost(store, loop, self.reporter, self.outcomes.completed),
            step_host=self.steps,
            has_span=None if spans is None else spans.wants,
        )
        self.feeder = Feeder(
            store,
            dispatcher,
            settings,
            membership=self.membership,
            pace=pace,
            buffer=self.buffer,
            gatherer=self.gatherer,
            room=self._room,
            slots=self.slots,
            settler=self.settler,
            settle=settle,
            chores=self.chores,
            breakers=self.breakers,
            burst=burst,
        )
        self._hears_no_more = also_tell(store, self._passed_on)
        self.requests = RequestWatch(
            store,
            membership=self.membership,
            slots=self.slots,
            buffer=self.buffer,
            gatherer=self.gatherer,
            settle=settle,
            send_home=send_home,
        )
        self.loop_watch = LoopWatch(
            store,
            settings,
            membership=self.membership,
            feeder=self.feeder,
            slots=self.slots,
            settler=self.settler,
            outcomes=self.outcomes,
        )

    async def close(self) -> None:
        """Let go of threads, processes and timers."""
        self._hears_no_more()
        self.loop_watch.close()
        self.deadlines.close()
        if self._counting is not None:
            self._counting.cancel()
            self._count()
        for runner in self._elsewhere.values():
            await runner.close()
        await self.steps.close()

    def _in_spans(self, make: Callable[..., R], *args: Any) -> R:
        """Make a runner, whose bodies see the span of their task if there are spans."""
        return make(*args) if self.spans is None else self.spans.inside(make, *args)

    def _with_spans(self, execute: Execute) -> Execute:
        if self.spans is None:
            return execute
        from holdfast.worker.spans import with_spans  # noqa: PLC0415 - it needs OpenTelemetry

        return with_spans(self.spans, execute, lambda: self.buffer.filled_at)

    # The parts know each other in a circle; these are called only once all of them are made.

    def _nudge(self, due_in: float) -> None:
        self.feeder.nudge(due_in)

    def _passed_on(self, _queues: Mapping[str, int]) -> None:
        """What ended here let others pass a gate: look for them at once."""
        if asyncio.get_running_loop() is self._loop:
            self.feeder.nudge(0.0)

    def _still_runs(self, run: Run) -> None:
        self.slots.still_runs(run)

    def _saved(self, settlements: Sequence[Settlement]) -> None:
        self.outcomes.saved(settlements)
        self.feeder.saved()

    def _clashed(self, refusal: Refusal) -> None:
        self.outcomes.clashed(refusal)

    def _announcer_closed(self, seconds: float) -> None:
        """So many start and end that single ones are shown no more: count them instead."""
        self._counted_from = self.settler.saved, self._loop.time()
        self._counting = self._loop.call_later(seconds, self._count)

    def _count(self) -> None:
        before, since = self._counted_from
        unsaid, self._counting = self._announcer.unsaid, None
        log.info(
            "worker.throughput",
            worker_id=self.membership.id,
            ended=self.settler.saved - before,
            retried=unsaid[State.RETRYING],
            released=unsaid[State.QUEUED],
            seconds=round(self._loop.time() - since, 3),
        )
        self._announcer.renew()

    def _lost(self, worker_id: WorkerId) -> None:
        self.buffer.drop(worker_id)
        self.gatherer.drop(worker_id)
        self.slots.lose(worker_id)

    async def _unfit(self, claim: Claim) -> float | None:
        self.feeder.stand_back()
        history = await self._store.history(claim.task_id)
        grace = self._settings.unknown_task_grace
        return None if history is None else offered_again_in(history, grace)

    async def _execute(self, run: Run) -> Outcome:
        executor = self._place_of(run)
        if executor is Executor.ASYNC:
            return await self._coroutines.run(run)
        runner = self._elsewhere.get(executor)
        if runner is None:
            runner = self._elsewhere[executor] = self._start(executor)
        return await runner.run(run)

    def _place_of(self, run: Run) -> Executor:
        """Where to run it. The last try of a task whose workers died is made in a process of its
        own: when a worker dies, nobody knows which of its tasks did it, and without this a poison
        pill would take its neighbours along into the dead letters.
        """
        crashes = run.claim.crash_count
        if crashes and crashes + 1 >= self._settings.crash_limit and self._app_spec is not None:
            return Executor.PROCESS
        return run.definition.executor

    def _start(self, executor: Executor) -> Runner:
        if executor is Executor.THREAD:
            size = self._settings.concurrency
            parts = self._loop, self.deadlines, size, self._still_runs
            return self._in_spans(ThreadRunner, *parts)
        # Only workers that run such tasks pay for the machinery of child processes.
        from holdfast.worker.processes.runner import ProcessRunner  # noqa: PLC0415

        return ProcessRunner(self._app_spec, self._settings, self._settings.concurrency)
