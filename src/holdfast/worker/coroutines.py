"""Runs `async def` handlers on the worker's loop, without a task and a timer for each.

A slot is a long-lived task that runs one body after another. Its first step is taken by hand: a
body that never suspends is done right there, having touched neither deadline nor bookkeeping. One
that does suspend is driven on inside the slot's task, each step in a contextvars context of its
own, so that nothing it sets is seen by the next body.

**Stopping.** The slot's task is cancelled, the driver hands the `CancelledError` to the body. A
body that swallows it is cancelled again, and in the end no longer driven at all: the driver closes
it and walks away. Only a body that waits for a task of its own which refuses to die keeps even the
driver from running; it keeps its slot until that task ends (`still_runs`). A body that never
suspends cannot be stopped from here: that needs the process executor.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context as Variables
from contextvars import copy_context
from types import coroutine
from typing import Any, NamedTuple

from holdfast.core.lifecycle import Outcome, Released
from holdfast.definitions.context import Context, enter_context
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.forks import end_if_fork, serve_here
from holdfast.worker.run import Run, StopReason
from holdfast.worker.verdict import accept, came_out, judge, stopped

PATIENCE = (0.5, 0.15, 0.15)
"""Seconds between the steps of stopping a body: cancel, cancel again, close it, let it run on.

Half a second is for an honest `finally`; all of them together keep a timeout less than 1 s late.
"""


class Suspended(NamedTuple):
    """A body that waits for something; `awaited` is what it gave the loop."""

    body: Coroutine[Any, Any, Any]
    variables: Variables
    awaited: Any


class Blocker(NamedTuple):
    """The run whose body keeps the loop. In its first step it has kept it since it began."""

    run: Run
    in_first_step: bool


def blocker_of(thread: int) -> Blocker | None:
    """Which body the loop in that thread is in right now, if any. From another thread."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code is _first_step.__code__:
            return Blocker(frame.f_locals["run"], in_first_step=True)
        if frame.f_code is _STEPS.__code__:
            return Blocker(frame.f_locals["stopping"].run, in_first_step=False)
        frame = frame.f_back
    return None


class CoroutineRunner:
    """Brings coroutines to an outcome: `begin` takes the first step, `finish` the rest if any."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deadlines: Deadlines,
        still_runs: Callable[[Run], None],
    ) -> None:
        serve_here()
        self._loop = loop
        self._deadlines = deadlines
        self._still_runs = still_runs
        self._variables = copy_context()

    def begin(self, run: Run) -> Outcome | Suspended:
        """Take the first step."""
        variables = self._variables.copy()
        definition = run.definition
        bodies: list[Coroutine[Any, Any, Any]] = []
        try:
            awaited = variables.run(_first_step, run, bodies)
        except StopIteration as end:
            return accept(definition, run.claim.payload, end.value)
        except BaseException as error:  # noqa: BLE001 - SystemExit in a handler is the handler's error
            return judge(definition, run.claim.payload, error)
        end_if_fork()
        return Suspended(bodies[0], variables, awaited)

    async def finish(self, run: Run, rest: Suspended) -> Outcome:
        """Drive the body to its end, or stop it."""
        task = asyncio.current_task()
        assert task is not None
        stopping = _Stopping(self._loop, run, task, self._still_runs)
        run.on_stop = stopping.begin
        run.line = task
        self._deadlines.watch(run)
        try:
            value = await _drive(rest, stopping)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - see `begin`
            is_ended = isinstance(error, asyncio.CancelledError) and task.cancelling()
            if is_ended and run.stop_reason is None:
                # Somebody ends the whole loop. That is no fault of the task: it is not charged.
                return Released()
            return came_out(run, error)
        finally:
            run.on_stop = None
            self._deadlines.forget(run)
        if run.is_late(time.monotonic()):  # it blocked the loop: nobody could tell it
            run.stop_reason = StopReason.TIMED_OUT
        if run.stop_reason is not None:
            return stopped(run)
        return accept(run.definition, run.claim.payload, value)

    async def run(self, run: Run) -> Outcome:
        """Both parts, as every runner has it."""
        outcome = self.begin(run)
        if isinstance(outcome, Suspended):
            return await self.finish(run, outcome)
        if run.is_late(time.monotonic()):  # it blocked the loop: nobody could tell it
            run.stop_reason = StopReason.TIMED_OUT
            return stopped(run)
        return outcome

    async def close(self) -> None:
        """Nothing is held: bodies live in their slots."""


class _Stopping:
    """The steps of stopping one body, each firmer than the last."""

    __slots__ = ("_loop", "_step", "_still_runs", "_task", "gave_up", "run")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        run: Run,
        task: asyncio.Task[Any],
        still_runs: Callable[[Run], None],
    ) -> None:
        self._loop = loop
        self.run = run
        self._task = task
        self._still_runs = still_runs
        self._step = 0
        self.gave_up = False

    def begin(self, _reason: StopReason) -> None:
        self._press()

    def _press(self) -> None:
        if self.run.ended:
            return
        if self._step == len(PATIENCE):
            self._still_runs(self.run)
            return
        self.gave_up = self._step == len(PATIENCE) - 1
        # The slot leaves this task behind after any cancellation, so none can hit the next body.
        self._task.cancel()
        self._loop.call_later(PATIENCE[self._step], self._press)
        self._step += 1


def _first_step(run: Run, bodies: list[Coroutine[Any, Any, Any]]) -> Any:
    context = Context(run.claim, run)
    enter_context(context)
    body = run.definition.start(context, run.claim.payload)
    bodies.append(body)
    return body.send(None)


def _steps(rest: Suspended, stopping: _Stopping) -> Generator[Any, Any, Any]:
    """What `await body` does, but inside the body's own variables, and able to walk away."""
    body, variables, awaited = rest
    step: Callable[[Any], Any]
    while True:
        try:
            sent = yield awaited
        except GeneratorExit:
            variables.run(body.close)
            raise
        except BaseException as error:
            if stopping.gave_up:
                with suppress(BaseException):
                    variables.run(body.close)
                raise
            step, sent = body.throw, error
        else:
            step = body.send
        try:
            awaited = variables.run(step, sent)
        except StopIteration as end:
            return end.value
        end_if_fork()


_STEPS = _steps
_drive = coroutine(_steps)
