"""The slots: long-lived tasks that run one attempt after another.

This is the hot path. A body that ends without suspending costs no task, no timer and no entry in
any table but the list of settlements. A slot lends the loop to the others every `TURN` seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from holdfast.announcing import Announcer
from holdfast.core.attempt import Claim, Report
from holdfast.core.flow import IN_PAYLOAD
from holdfast.core.lifecycle import Failed, Outcome, Released, Stopped, Succeeded, Unfit
from holdfast.core.task import TaskId, WorkerId
from holdfast.counting import Tally
from holdfast.definitions.definition import Executor
from holdfast.definitions.registry import AnyDefinition, Registry
from holdfast.definitions.steps import StepHost
from holdfast.engine.judging import bringing
from holdfast.errors import StoreUnavailable
from holdfast.flow.bodies import after_its_body, is_body_first
from holdfast.flow.starting import GOES_ON
from holdfast.logs import EventLog, trace_of
from holdfast.worker.batch import BatchRun, ends_of
from holdfast.worker.batch_claim import BatchClaim, ids_of, locks_of, members_of
from holdfast.worker.claim_buffer import ClaimBuffer
from holdfast.worker.coroutines import CoroutineRunner, Suspended
from holdfast.worker.middleware import Execute
from holdfast.worker.pace import Pace
from holdfast.worker.run import Run, StopReason
from holdfast.worker.transactions import TransactionHost
from holdfast.worker.verdict import describe, judge, stopped, unknown

log = EventLog("holdfast.worker")

TURN = 0.0005
"""Seconds a slot may keep the loop with bodies that do not suspend.

Short, because what the store has answered waits as long, and the store for us: at 3 ms a drain was
a quarter slower than at 0.5 ms.
"""

LOOK_AGAIN = 0.1
"""Seconds between looks at a lock that a body of ours still uses."""


class Slots:
    """Runs what is in the buffer, `size` bodies at a time.

    `hot` runs coroutines without ceremony; `execute` runs everything, in whatever surrounds it.
    A claim that waited for `too_old` seconds starts only if `confirm` says that the lease holds:
    a process that was paused must not start what others may have started since. `unfit` says
    in how many seconds a task is offered again that the code of this worker is not fit for.
    `look` says what becomes of a claim that has to do with other tasks: it is run, or has ended.
    What `has_span`, if that is given, is run by `execute`.
    """

    def __init__(
        self,
        buffer: ClaimBuffer,
        registry: Registry,
        pace: Pace,
        *,
        hot: CoroutineRunner | None,
        execute: Execute,
        report: Callable[[Report], None],
        settle: Callable[[Claim, Outcome], object],
        too_old: float,
        confirm: Callable[[WorkerId], Awaitable[bool]],
        unfit: Callable[[Claim], Awaitable[float | None]],
        look: Callable[[Claim], Awaitable[Claim | Outcome]],
        announcer: Announcer,
        tally: Tally,
        stop_grace: float = 0.0,
        host: TransactionHost | None = None,
        step_host: StepHost | None = None,
        has_span: Callable[[Claim], bool] | None = None,
    ) -> None:
        self._buffer = buffer
        self._tally = tally
        self._registry = registry
        self._pace = pace
        self._hot = hot
        self._execute = execute
        self._report = report
        self._settle = settle
        self._too_old = too_old
        self._confirm = confirm
        self._unfit = unfit
        self._look = look
        self._announcer = announcer
        self._stop_grace = stop_grace
        self._host = host
        self._step_host = step_host
        self._has_span = has_span
        self._is_leaving = False
        self._running: dict[Run, asyncio.Task[None]] = {}
        self._stuck: dict[Run, float] = {}
        self._settled: set[Run] = set()
        self._lost: set[Run] = set()
        self._left: list[tuple[Claim, Outcome]] = []
        self._doubted: set[TaskId] = set()
        self._strangers: set[str] = set()
        self._slots: set[asyncio.Task[None]] = set()
        self._all_home = asyncio.Event()

    def open(self, count: int) -> None:
        """Open this many slots."""
        for _ in range(count):
            slot = asyncio.get_running_loop().create_task(self._work(), name="holdfast-slot")
            self._slots.add(slot)
            slot.add_done_callback(self._went_home)

    @property
    def running(self) -> list[Run]:
        """The runs that wait for something, or are elsewhere. Those that compute end unseen."""
        return list(self._running)

    @property
    def busy(self) -> int:
        """How many those are."""
        return len(self._running)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, and nothing was taken that may."""
        return not (self._running or self._doubted)

    def holds(self) -> set[TaskId]:
        """The tasks in the slots' hands: running, or taken and not begun."""
        running = self._running.keys() - self._settled
        return self._doubted.union(*(ids_of(run.claim) for run in running))

    def ages(self) -> list[float]:
        """How long each of them has been at it."""
        now = time.monotonic()
        return [now - run.started for run in self._running]

    def ask_to_stop(self) -> None:
        """The worker leaves: tell every body, though it still has time to end."""
        self._is_leaving = True
        for run in self.running:
            run.stopping.ask()

    def stop(self, reason: StopReason) -> None:
        """Tell every run to stop."""
        for run in self.running:
            run.stop(reason)

    def lose(self, worker_id: WorkerId) -> None:
        """That id holds no lease any more: end its bodies. Until one has ended, nothing else of its
        lock starts here.
        """
        for run in self.running:
            if run.claim.worker_id == worker_id:
                if run.claim.lock is not None:
                    self._lost.add(run)
                run.stop(StopReason.LOST)

    def still_runs(self, run: Run) -> None:
        """A body goes on although it was interrupted. It keeps its slot. The task itself moves on,
        unless it holds a lock: nobody else may begin before this body has ended.
        """
        if run not in self._running or run in self._stuck:
            return
        self._stuck[run] = time.monotonic()
        claim = run.claim
        log.warning(
            "task.body_still_runs",
            task_id=claim.task_id,
            task_name=claim.name,
            attempt=claim.attempt,
            lock=claim.lock,
            seconds=round(time.monotonic() - run.started, 3),
        )
        if claim.lock is None:
            self._conclude(run, stopped(run))
            self._settled.add(run)
            run.ended = True

    @property
    def all_stuck(self) -> bool:
        """Whether every body that is left goes on although it was interrupted."""
        return self._running.keys() <= self._stuck.keys()

    def all_stuck_for(self, seconds: float) -> int:
        """How many have gone on for so long."""
        now = time.monotonic()
        return sum(now - since >= seconds for since in self._stuck.values())

    def unsettled(self) -> list[Run]:
        """The runs whose end is not decided. From any thread, while the loop stands still."""
        return [run for run in self.running if run not in self._settled]

    def leave_behind(self) -> list[tuple[Claim, Outcome]]:
        """The worker leaves without the bodies that go on. Whose lock they hold is returned: these
        attempts have ended when this process has, and not before.
        """
        for run, slot in list(self._running.items()):
            del self._running[run]
            self._slots.discard(slot)
            run.ended = True
            if run.claim.lock is not None:
                self._left += ends_of(run, stopped(run))
            else:
                self._conclude(run, stopped(run))
        if not self._slots:
            self._all_home.set()
        return self._left

    async def all_home(self) -> None:
        """Wait until every slot has gone. Close the buffer first."""
        if self._slots:
            await self._all_home.wait()

    async def _work(self) -> None:
        slot = asyncio.current_task()
        assert slot is not None
        self._buffer.enter()
        try:
            await self._work_on(slot, time.monotonic)
        finally:
            self._buffer.leave()

    async def _work_on(  # noqa: C901 - see below
        self, slot: asyncio.Task[None], clock: Callable[[], float]
    ) -> None:
        # One long function on purpose: every call costs here, a hundred thousand times a second.
        buffer, hot = self._buffer, self._hot
        turn_over = clock() + TURN
        while True:
            claim = buffer.take()
            if claim is None:
                claim = await buffer.wait()
                if claim is None:
                    return
                turn_over = clock() + TURN
            started = clock()
            if self._lost and claim.lock is not None and not await self._is_free(claim):
                continue
            if started - buffer.filled_at > self._too_old and not await self._is_ours(claim):
                continue
            looked_at = None
            if IN_PAYLOAD in claim.payload or (claim.attempt > 1 and self._goes_on(claim)):
                looked_at = await self._looked_at(claim)
                turn_over = clock() + TURN
                if looked_at is None:
                    continue
                claim, started = looked_at, clock()
            run = self._prepare(claim, started)
            if run is None:
                continue
            if looked_at is not None and is_body_first(claim):
                run.follow_ups = []  # it brings its result along
            outcome: Outcome | Suspended | None
            is_async = run.definition.executor is Executor.ASYNC
            is_plain = self._has_span is None or not self._has_span(claim)
            if is_async and hot is not None and is_plain and not claim.crash_count:
                outcome = hot.begin(run)
                computed = now = clock()
                if isinstance(outcome, Suspended):
                    outcome = await self._follow(run, slot, hot.finish(run, outcome))
                    now = clock()
                    turn_over = now + TURN
                elif now > turn_over and run.is_late(now):
                    # It blocked the loop: nobody could tell it.
                    run.stop_reason = StopReason.TIMED_OUT
                    outcome = stopped(run)
            else:
                computed = run.started
                outcome = await self._follow(run, slot, self._execute(run))
                now = clock()
                turn_over = now + TURN
            if outcome is None:
                return
            if isinstance(outcome, Unfit):
                outcome = await self._offer_again(claim, outcome)
                turn_over = clock() + TURN
            elif isinstance(run, BatchRun):
                await self._offer_members_again(run, outcome)
                turn_over = clock() + TURN
            run.ended = True
            self._pace.ended(now - run.started, computed - run.started)
            self._tally.ended.append((claim.priority, type(outcome), now - run.started))
            self._conclude(run, outcome)
            if slot.cancelling():
                # Whatever was cancelled here, a fresh task is the only one that surely forgot it.
                self.open(1)
                return
            if now > turn_over:
                await asyncio.sleep(0)
                turn_over = clock() + TURN

    def _goes_on(self, claim: Claim) -> bool:
        """Whether its body may have returned before, and its children have ended since."""
        definition = self._registry.get(claim.name)
        return claim.cause in GOES_ON and (definition is None or definition.wants_context)

    async def _looked_at(self, claim: Claim) -> Claim | None:
        """The claim, or those of its batch that are left, as it is to be run; None if it has ended
        before.
        """
        self._doubted |= ids_of(claim)
        self._buffer.leave()
        to_run: list[Claim] = []
        try:
            for one in members_of(claim):
                looked_at = await self._look_at(one)
                if isinstance(looked_at, Claim):
                    to_run.append(looked_at)
                else:
                    self._settle(one, looked_at)
        finally:
            self._buffer.enter()
            self._doubted -= ids_of(claim)
        if not to_run:
            return None
        return BatchClaim.gathered(to_run) if isinstance(claim, BatchClaim) else to_run[0]

    async def _look_at(self, claim: Claim) -> Claim | Outcome:
        if IN_PAYLOAD not in claim.payload and not (claim.attempt > 1 and self._goes_on(claim)):
            return claim
        try:
            return await self._look(claim)
        except StoreUnavailable:
            return Released()
        except Exception as error:  # noqa: BLE001 - whatever it is, the attempt has to end
            log.error("task.not_looked_at", task_id=claim.task_id, exception=trace_of(error))
            return Failed(describe(error))

    async def _is_ours(self, claim: Claim) -> bool:
        """A claim that waited so long: was this process paused, and the lease lost meanwhile?"""
        self._doubted |= ids_of(claim)
        try:
            if await self._confirm(claim.worker_id):
                self._buffer.filled_at = time.monotonic()
                return True
            log.warning("task.lease_lost", task_id=claim.task_id, attempt=claim.attempt)
        except StoreUnavailable:
            for one in members_of(claim):
                self._settle(one, Released())
        finally:
            self._doubted -= ids_of(claim)
        return False

    async def _is_free(self, claim: Claim) -> bool:
        """Wait for our own body that has lost this lock and goes on. False: the worker leaves."""
        locks = locks_of(claim)
        self._doubted |= ids_of(claim)
        self._buffer.leave()
        try:
            while any(locks & locks_of(run.claim) for run in self._lost):
                if self._is_leaving:
                    self._left += [(one, Released()) for one in members_of(claim)]
                    return False
                await asyncio.sleep(LOOK_AGAIN)
        finally:
            self._buffer.enter()
            self._doubted -= ids_of(claim)
        return True

    def _prepare(self, claim: Claim, now: float) -> Run | None:
        definition = self._registry.get(claim.name)
        if definition is None:
            self._unknown(claim)
            return None
        if isinstance(claim, BatchClaim):
            return self._prepare_batch(claim, definition, now)
        if claim.cancel_requested:
            self._settle(claim, Stopped())
            return None
        if self._announcer.open:
            self._announcer.started(claim)
        timeout = definition.timeout_of(claim)
        deadline = None if timeout is None else now + timeout
        return Run(
            claim,
            definition,
            deadline,
            self._report,
            now,
            self._host,
            self._stop_grace,
            self._step_host,
        )

    def _prepare_batch(
        self, claim: BatchClaim, definition: AnyDefinition, now: float
    ) -> BatchRun | None:
        for one in claim.members:
            if one.cancel_requested:
                self._settle(one, Stopped())
            elif self._announcer.open:
                self._announcer.started(one)
        left = [one for one in claim.members if not one.cancel_requested]
        if not left:
            return None
        return BatchRun(BatchClaim.gathered(left), definition, self._report, now, self._stop_grace)

    def _unknown(self, claim: Claim) -> None:
        """Leave it to those who know it, and say so once."""
        if claim.name not in self._strangers:
            self._strangers.add(claim.name)
            log.warning("worker.unknown_task", task_name=claim.name, queue=claim.queue)
        self._settle(claim, unknown(claim.name, self._registry.suggest(claim.name)))

    async def _offer_again(self, claim: Claim, outcome: Unfit) -> Unfit:
        """Its arguments do not fit: how long has that been so?"""
        self._doubted.add(claim.task_id)
        try:
            return replace(outcome, again_in=await self._unfit(claim))
        except StoreUnavailable:
            return outcome
        finally:
            self._doubted.discard(claim.task_id)

    async def _offer_members_again(self, run: BatchRun, outcome: Outcome) -> None:
        """The same for those of a batch whose arguments do not fit."""
        ends = run.body.ends(outcome)
        if any(isinstance(end, Unfit) for end in ends):
            run.body.take_ends(
                [
                    await self._offer_again(one, end) if isinstance(end, Unfit) else end
                    for one, end in zip(run.claim.members, ends, strict=True)
                ]
            )

    async def _follow(
        self, run: Run, slot: asyncio.Task[None], rest: Awaitable[Outcome]
    ) -> Outcome | None:
        """Wait for a run that does not end at once; None if the slot was given up meanwhile."""
        self._running[run] = slot
        self._buffer.leave()
        if self._is_leaving:
            run.stopping.ask()
        try:
            outcome = await rest
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a runner that fails must not take the slot along
            outcome = self._runner_failed(run, slot, error)
        self._buffer.enter()
        self._stuck.pop(run, None)
        self._lost.discard(run)
        if run.left_because_asked():
            outcome = Released()
        return outcome if self._running.pop(run, None) is not None else None

    def _runner_failed(self, run: Run, slot: asyncio.Task[None], error: BaseException) -> Outcome:
        if isinstance(error, asyncio.CancelledError) and slot.cancelling():
            run.stop(StopReason.DRAINED)
            return Released()
        log.error("worker.runner_failed", task_id=run.claim.task_id, exception=trace_of(error))
        return judge(run.definition, run.claim.payload, error)

    def _conclude(self, run: Run, outcome: Outcome) -> None:
        if isinstance(run, BatchRun):
            run.close()
        elif run.follow_ups is not None:
            window = run.definition.home.settings.idempotency_window
            outcome = bringing(outcome, run.follow_ups, window)
        if isinstance(outcome, Succeeded) and outcome.also is not None:
            keep = run.definition.home.settings.dead_letter_retention
            outcome = after_its_body(run.claim, outcome, keep)
        if self._settled and run in self._settled:
            self._settled.discard(run)
            return
        if run.stop_reason is StopReason.LOST:
            log.warning("task.lease_lost", task_id=run.claim.task_id, attempt=run.claim.attempt)
        if run.completion is not None:
            run.completion.unless_committed(lambda: self._settle(run.claim, outcome))
            return
        # Also what was lost: if somebody else has the task now, its history must show the refusal.
        if isinstance(run, BatchRun):
            for claim, end in run.ends(outcome):
                self._settle(claim, end)
        else:
            self._settle(run.claim, outcome)

    def _went_home(self, slot: asyncio.Task[None]) -> None:
        self._slots.discard(slot)
        if not slot.cancelled() and (error := slot.exception()) is not None:
            log.error("worker.slot_failed", exception=trace_of(error))
            self.open(1)
        if not self._slots:
            self._all_home.set()
