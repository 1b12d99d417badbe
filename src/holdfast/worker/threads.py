"""Runs sync handlers in threads of our own.

Not `concurrent.futures`: its exit handler joins every thread, so one stuck body would keep the
process from ending. These are daemons, and a thread whose body does not end in time is left behind
and replaced: the slot is free, the late result is dropped.

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
from contextlib import suppress
from contextvars import Context as Variables
from contextvars import copy_context
from itertools import count

import structlog

from holdfast.core.lifecycle import Outcome, Released
from holdfast.definitions.context import Context, enter_context
from holdfast.errors import AttemptTimeout
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.run import Run, StopReason
from holdfast.worker.verdict import accept, judge, stopped

log = structlog.get_logger("holdfast.worker")

PATIENCE = (0.3, 0.3, 0.2)
"""Seconds to wait after each planted exception, before the thread is left behind."""

_numbers = count(1)


class _Job:
    """One run in one thread, and the slot's future for it."""

    __slots__ = ("done", "run", "thread", "variables")

    def __init__(
        self, run: Run, thread: _Thread, variables: Variables, done: asyncio.Future[Outcome]
    ) -> None:
        self.run = run
        self.thread = thread
        self.variables = variables
        self.done = done


class _Thread:
    """A daemon that runs one job after another. Once interrupted it takes no other."""

    def __init__(self, pool: ThreadRunner) -> None:
        self._pool = pool
        self._inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._current: _Job | None = None
        self.interrupted = False
        self._thread = threading.Thread(
            target=self._work, name=f"holdfast-thread-{next(_numbers)}", daemon=True
        )
        self._thread.start()

    def give(self, job: _Job | None) -> None:
        """Do this next; None means end."""
        self._inbox.put(job)

    def interrupt(self, job: _Job, error: type[BaseException]) -> None:
        """Plant an exception, if the thread is still at this job."""
        with self._guard:
            if self._current is job:
                self.interrupted = True
                ident = ctypes.c_ulong(self._thread.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(error))

    def _work(self) -> None:
        while not self.interrupted:
            job = self._inbox.get()
            if job is None:
                return
            with suppress(BaseException):
                self._do(job)

    def _do(self, job: _Job) -> None:
        outcome: Outcome = Released()
        try:
            with self._guard:
                self._current = job
            outcome = job.variables.run(_body, job.run)
        except BaseException as error:  # noqa: BLE001 - SystemExit in a handler is the handler's error
            outcome = _came_out(job.run, error)
        finally:
            # A planted exception may strike as late as here. Then nothing is delivered, the slot
            # gives this thread up as it would a stuck one, and no later job is harmed.
            with self._guard:
                self._current = None
            self._pool.deliver(job, outcome)


class ThreadRunner:
    """Hands runs to idle threads and makes new ones; as many as there are slots at most."""

    def __init__(self, loop: asyncio.AbstractEventLoop, deadlines: Deadlines) -> None:
        self._loop = loop
        self._deadlines = deadlines
        self._variables = copy_context()
        self._idle: list[_Thread] = []
        self._closed = False

    async def run(self, run: Run) -> Outcome:
        """Run the body in a thread; come back when it ended, or soon after it was told to stop."""
        thread = self._idle.pop() if self._idle else _Thread(self)
        job = _Job(run, thread, self._variables.copy(), self._loop.create_future())
        run.on_stop = lambda _reason: self._press(job, 0)
        self._deadlines.watch(run)
        thread.give(job)
        try:
            return await job.done
        finally:
            run.on_stop = None
            self._deadlines.forget(run)

    async def close(self) -> None:
        """Let idle threads end. Those left behind are daemons and end with the process."""
        self._closed = True
        while self._idle:
            self._idle.pop().give(None)

    def deliver(self, job: _Job, outcome: Outcome) -> None:
        """From the thread: this is how it ended."""
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._collect, job, outcome)

    def _collect(self, job: _Job, outcome: Outcome) -> None:
        if not job.done.done():
            job.done.set_result(outcome)
        if self._closed:
            job.thread.give(None)
        elif not job.thread.interrupted:
            self._idle.append(job.thread)

    def _press(self, job: _Job, step: int) -> None:
        run = job.run
        if job.done.done():
            return
        if step == len(PATIENCE):
            log.warning("task.thread_left_behind", task=run.claim.task_id, name=run.claim.name)
            job.thread.interrupted = True
            job.done.set_result(stopped(run))
            return
        timed_out = run.stop_reason is StopReason.TIMED_OUT
        job.thread.interrupt(job, AttemptTimeout if timed_out else asyncio.CancelledError)
        self._loop.call_later(PATIENCE[step], self._press, job, step + 1)


def _body(run: Run) -> Outcome:
    definition = run.definition
    context = Context(run.claim, run)
    enter_context(context)
    args, kwargs = definition.load(run.claim.payload)
    if definition.wants_context:
        value = definition.handler(context, *args, **kwargs)
    else:
        value = definition.handler(*args, **kwargs)
    if definition.is_async:
        value = asyncio.run(value)
    return accept(definition, value) if run.stop_reason is None else stopped(run)


def _came_out(run: Run, error: BaseException) -> Outcome:
    return judge(run.definition, error) if run.stop_reason is None else stopped(run, error)
