"""Runs attempts in processes: for CPU-bound work, and for whatever must be stoppable for sure.

The pool grows with demand up to its size, and shrinks when it has been idle. A process runs one
attempt at a time; if it dies, only that attempt is lost, and the next one gets a new process.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from holdfast.core.lifecycle import Failed, Outcome
from holdfast.core.task import TaskError
from holdfast.settings import Settings
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.processes.process import ChildProcess, Unstartable
from holdfast.worker.run import Run
from holdfast.worker.spec import absolute_spec
from holdfast.worker.verdict import stopped

KEEP = 2
IDLE_LIMIT = 30.0
"""Idle processes beyond `KEEP` end after this many seconds."""


class ProcessRunner:
    """A pool of processes that import the app named by `app_spec` and what `include` names."""

    def __init__(self, app_spec: str | None, settings: Settings, size: int) -> None:
        self._app_spec = None if app_spec is None else absolute_spec(app_spec)
        self._include = settings.include
        self._slots = asyncio.Semaphore(size)
        self._idle: list[ChildProcess] = []
        self._all: set[ChildProcess] = set()
        self._deadlines = Deadlines(asyncio.get_running_loop())
        self._reaper: asyncio.TimerHandle | None = None
        self._endings: set[asyncio.Task[None]] = set()

    async def run(self, run: Run) -> Outcome:
        """Run the attempt in a process; when this returns for a stop, the body is gone."""
        if self._app_spec is None:
            return Failed(_no_app_spec())
        try:
            child = await self._borrow(run, self._app_spec)
        except Unstartable as error:
            return Failed(_not_started(error.error))
        if child is None:
            return stopped(run)
        self._deadlines.watch(run)
        try:
            return await child.execute(run)
        finally:
            self._deadlines.forget(run)
            self._give_back(child)

    async def close(self) -> None:
        """End every process, those that still run something too."""
        if self._reaper is not None:
            self._reaper.cancel()
        self._deadlines.close()
        for child in self._all - set(self._idle):
            child.kill()
        self._idle.clear()
        await asyncio.gather(*(child.close() for child in self._all), *self._endings)
        self._all.clear()

    async def _borrow(self, run: Run, app_spec: str) -> ChildProcess | None:
        """A process to run this in. None: the run was stopped while it waited for one."""
        if self._idle and not self._slots.locked():
            return await self._obtain(app_spec)
        began = time.monotonic()
        obtaining = asyncio.ensure_future(self._obtain(app_spec))
        run.on_stop = lambda _reason: _give_up(obtaining)
        try:
            child = await obtaining
        except asyncio.CancelledError:
            if run.stop_reason is None:
                raise
            return None
        finally:
            run.on_stop = None
        if run.stop_reason is not None:
            self._give_back(child)
            return None
        if run.deadline is not None:
            # Importing the app is not the handler's doing.
            run.deadline += time.monotonic() - began
        return child

    async def _obtain(self, app_spec: str) -> ChildProcess:
        await self._slots.acquire()
        try:
            while self._idle:
                child = self._idle.pop()
                if child.usable:
                    return child
                self._discard(child)
            child = await ChildProcess.start(app_spec, self._include)
        except BaseException:
            self._slots.release()
            raise
        self._all.add(child)
        return child

    def _give_back(self, child: ChildProcess) -> None:
        self._slots.release()
        if child.usable and not child.is_bloated():
            child.idle_since = time.monotonic()
            self._idle.append(child)
            self._plan_reaping()
        else:
            self._discard(child)

    def _discard(self, child: ChildProcess) -> None:
        ending = asyncio.ensure_future(child.close())
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        ending.add_done_callback(lambda _: self._all.discard(child))

    def _plan_reaping(self) -> None:
        if len(self._idle) > KEEP and self._reaper is None:
            self._reaper = asyncio.get_running_loop().call_later(IDLE_LIMIT, self._reap)

    def _reap(self) -> None:
        # The one used last is taken first, so those that nobody needs gather at the front.
        self._reaper = None
        oldest = time.monotonic() - IDLE_LIMIT
        while len(self._idle) > KEEP and self._idle[0].idle_since <= oldest:
            self._discard(self._idle.pop(0))
        self._plan_reaping()


def _give_up(obtaining: asyncio.Future[ChildProcess]) -> None:
    obtaining.cancel()


def _no_app_spec() -> TaskError:
    return TaskError(
        type="ConfigError",
        message="this task runs in a process of its own, but the worker does not know where that "
        "process finds the app. Start it as `holdfast worker module:app`, or pass `app_spec=`.",
    )


def _not_started(error: TaskError) -> TaskError:
    return replace(error, message=f"no process could be started for the attempt: {error.message}")
