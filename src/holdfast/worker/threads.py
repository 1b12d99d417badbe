"""Runs sync handlers in threads of our own.

Not `concurrent.futures`: its exit handler joins every thread, so one stuck body would keep the
process from ending. These are daemons. A body that does not end though it was told to keeps its
thread and its slot, however long it takes (`still_runs`).

**Stopping.** Python can only ask a thread to stop: an exception is planted, to be raised when the
thread next runs Python code (`AttemptTimeout`, or `CancelledError` for a cancel or a deploy). A C
call that never returns, or a body that catches everything, is out of reach. What must be stoppable
runs in the process executor.
"""

from __future__ import annotations

import asyncio
import ctypes
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context as Variables
from contextvars import copy_context
from itertools import count

from holdfast.core.lifecycle import Outcome
from holdfast.definitions.context import Context, enter_context
from holdfast.errors import AttemptTimeout
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.forks import serve_here
from holdfast.worker.run import Run, StopReason
from holdfast.worker.verdict import accept, came_out, judge, stopped

PATIENCE = (0.3, 0.3, 0.2)
"""Seconds to wait after each planted exception, before the body counts as one that goes on."""

RELIEF = 0.001
"""Seconds that runs wait for a busy thread before another one is made."""

_numbers = count(1)


class _Job:
    """One run, the slot's future for it, and the thread that has taken it."""

    __slots__ = ("done", "run", "thread", "variables")

    def __init__(self, run: Run, variables: Variables, done: asyncio.Future[Outcome]) -> None:
        self.run = run
        self.variables = variables
        self.done = done
        self.thread: _Thread | None = None


class _Thread:
    """A daemon that runs one job after another."""

    def __init__(self, pool: ThreadRunner) -> None:
        self._pool = pool
        self._guard = threading.Lock()
        self._current: _Job | None = None
        self._is_armed = False
        self._thread = threading.Thread(
            target=self._work, name=f"holdfast-thread-{next(_numbers)}", daemon=True
        )
        self._thread.start()

    def interrupt(self, job: _Job, error: type[BaseException]) -> None:
        """Plant an exception, if the thread is still at this job."""
        with self._guard:
            if self._current is job:
                self._is_armed = True
                ident = ctypes.c_ulong(self._thread.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(error))

    def is_at(self, job: _Job) -> bool:
        """Whether its body runs."""
        return self._current is job

    def _work(self) -> None:
        while (job := self._pool.inbox.get()) is not None:
            if self._pool.may_start(job, self):
                try:
                    self._do(job)
                except BaseException:  # noqa: BLE001 - planted where nothing should be
                    self._current = None
                    self._pool.deliver(job, stopped(job.run))

    def _do(self, job: _Job) -> None:
        outcome: Outcome | None = None
        try:
            with self._guard:
                self._current = job
            outcome = _attempt(job)
        except BaseException as error:  # noqa: BLE001 - a second one, while the first was described
            # Where it was is not told: that would take time, in which a third one may strike.
            run = job.run
            is_stopped = run.stop_reason is not None
            outcome = (
                stopped(run) if is_stopped else judge(run.definition, run.claim.payload, error)
            )
        # No `suppress` here: it is a call, and a planted exception may strike as it is made.
        while self._current is not None:
            try:  # noqa: SIM105 - see above
                self._let_go()
            except BaseException:  # noqa: BLE001, S110 - the planted one
                pass
        if self._is_armed:
            try:  # noqa: SIM105 - see above
                _be_struck()
            except BaseException:  # noqa: BLE001, S110 - the planted one
                pass
            self._is_armed = False
        self._pool.deliver(job, outcome)

    def _let_go(self) -> None:
        """Nothing can be planted for this job any more."""
        with self._guard:
            self._current = None


def _be_struck() -> None:
    """Where a planted exception strikes that has not struck yet: it must hit neither us nor the
    next body.

    It cannot be taken back. `PyThreadState_SetAsyncExc(…, NULL)` leaves Python 3.11 with a request
    to interrupt that nothing ever answers, and under a trace or profile hook the thread then spins
    for ever.
    """
    for _ in range(2):
        pass


class ThreadRunner:
    """Hands runs to threads; makes more of them, up to one per slot, when runs have to wait.

    Short bodies are served by a few threads, however many slots there are: the fewer threads want
    the interpreter at once, the less time goes into passing it around.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deadlines: Deadlines,
        size: int,
        still_runs: Callable[[Run], None],
    ) -> None:
        serve_here()
        self._loop = loop
        self._deadlines = deadlines
        self._size = size
        self._still_runs = still_runs
        self._variables = copy_context()
        self.inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._delivered: list[tuple[_Job, Outcome]] = []
        self._threads = 0
        self._underway = 0
        self._relief: asyncio.TimerHandle | None = None

    async def run(self, run: Run) -> Outcome:
        """Run the body in a thread; come back when it has ended."""
        job = _Job(run, self._variables.copy(), self._loop.create_future())
        run.on_stop = lambda _reason: self._press(job, 0)
        self._deadlines.watch(run)
        self._underway += 1
        self.inbox.put(job)
        if self._underway > self._threads:
            self._plan_relief()
        try:
            return await job.done
        finally:
            self._underway -= 1
            run.on_stop = None
            self._deadlines.forget(run)

    async def close(self) -> None:
        """Let the threads end. Those whose bodies go on are daemons and end with the process."""
        if self._relief is not None:
            self._relief.cancel()
        for _ in range(self._threads):
            self.inbox.put(None)

    def may_start(self, job: _Job, thread: _Thread) -> bool:
        """From the thread: it has taken this job. False if that was told to stop meanwhile."""
        with self._guard:
            if job.run.stop_reason is None:
                job.thread = thread
        return job.thread is not None

    def deliver(self, job: _Job, outcome: Outcome) -> None:
        """From the thread: this is how it ended."""
        with self._guard:
            self._delivered.append((job, outcome))
            is_first = len(self._delivered) == 1
        if is_first:
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        with self._guard:
            delivered, self._delivered = self._delivered, []
        for job, outcome in delivered:
            if not job.done.done():
                job.done.set_result(outcome)

    def _plan_relief(self) -> None:
        if self._threads == 0:
            self._open_thread()
        elif self._relief is None and self._threads < self._size:
            self._relief = self._loop.call_later(RELIEF, self._relieve)

    def _relieve(self) -> None:
        """Runs are still waiting for a thread: all that there are must be held up."""
        self._relief = None
        for _ in range(min(self.inbox.qsize(), self._size - self._threads)):
            self._open_thread()

    def _open_thread(self) -> None:
        self._threads += 1
        _Thread(self)

    def _press(self, job: _Job, step: int) -> None:
        with self._guard:
            thread = job.thread
        if job.done.done():
            return
        if thread is None:
            job.done.set_result(stopped(job.run))  # no thread will take it now
        elif not thread.is_at(job):
            return  # it has just ended
        elif step == len(PATIENCE):
            self._still_runs(job.run)
        else:
            timed_out = job.run.stop_reason is StopReason.TIMED_OUT
            thread.interrupt(job, AttemptTimeout if timed_out else asyncio.CancelledError)
            self._loop.call_later(PATIENCE[step], self._press, job, step + 1)


def _attempt(job: _Job) -> Outcome:
    run = job.run
    try:
        return job.variables.run(_body, run)
    except BaseException as error:  # noqa: BLE001 - SystemExit in a handler is the handler's error
        return came_out(run, error)


def _body(run: Run) -> Outcome:
    definition = run.definition
    context = Context(run.claim, run)
    enter_context(context)
    run.line = threading.get_ident()
    value = definition.start(context, run.claim.payload)
    if definition.is_async:
        value = asyncio.run(value)
    return accept(definition, run.claim.payload, value) if run.stop_reason is None else stopped(run)
