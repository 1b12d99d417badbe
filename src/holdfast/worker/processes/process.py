"""The worker's end of one process of the pool: start it, give it an attempt, end it.

A process that was interrupted, or went over its memory limit, is never used again: nobody knows in
what state an exception out of nowhere left its modules. It is killed with its whole group, so that
what the handler started goes too.

The same goes for one that says what it could not say: bytes that are no frame, a word out of turn,
or about another attempt. It was a fork, or whatever the handler started, that wrote there. If the
process had run others before, it may have been theirs, so the attempt is handed back uncharged.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self, TypeVar

from holdfast import logs
from holdfast.core.lifecycle import Failed, Outcome, Released, Succeeded, TimedOut, WorkerLost
from holdfast.core.task import Cause, Cost, Json, Progress, TaskError
from holdfast.logs import EventLog
from holdfast.worker.batch import BatchRun
from holdfast.worker.exits import when_exited
from holdfast.worker.groups import GROUPS
from holdfast.worker.liveness import Liveness, describe_exit, liveness, resident
from holdfast.worker.processes import steps, wire
from holdfast.worker.processes.interruption import ASK, OUT_OF_TIME, STOP
from holdfast.worker.processes.memory import LOOK_EVERY, over_limit
from holdfast.worker.processes.wire import Frame, Garbled, Unpacker, key_of
from holdfast.worker.run import Run, StopReason
from holdfast.worker.verdict import stopped

log = EventLog("holdfast.worker")

T = TypeVar("T")

START_LIMIT = 60.0
"""Seconds within which a new process must have imported the app."""

PATIENCE = 0.5
"""Seconds between the soft signal and SIGKILL: time for an honest `finally`."""

LAST_WORDS = 0.1
"""Seconds to wait for what a dead process still had on the line."""

BLOATED = 128 * 1024 * 1024
"""Bytes by which a process may have grown for good before it is replaced."""


class Unstartable(Exception):
    """The process ended before it could run anything."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


class ChildProcess(asyncio.Protocol):
    """One process. Loop-thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, process: subprocess.Popen[bytes]) -> None:
        self._loop = loop
        self._process = process
        self._unpacker = Unpacker()
        self._transport: asyncio.Transport | None = None
        self._line_closed = False
        self._first_size = 0
        self._run: Run | None = None
        self._outcome: asyncio.Future[Outcome] | None = None
        self._over_limit: TaskError | None = None
        self._garbled: Exception | None = None
        self._attempts = 0
        self._answering: set[asyncio.Future[None]] = set()
        self._ready: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[int] = loop.create_future()
        self.spent = False
        self.idle_since = 0.0
        GROUPS.add(process.pid)
        when_exited(process.pid, loop, self._on_exit)

    @classmethod
    async def start(cls, app_spec: str, include: Sequence[str] = ()) -> Self:
        """Start a process and wait until it has imported the app. `Unstartable` if it cannot."""
        loop = asyncio.get_running_loop()
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                child = cls(loop, _spawn(app_spec, theirs.fileno()))
        except OSError as error:
            raise Unstartable(_no_room(error)) from None
        try:
            async with asyncio.timeout(START_LIMIT):
                await loop.create_unix_connection(lambda: child, sock=ours)
                child._send(Frame(wire.HELLO, {"sys_path": sys.path, "include": list(include)}))
                await child._ready
        except BaseException as error:
            child.kill()
            await child.exited
            if isinstance(error, TimeoutError):
                raise Unstartable(_too_slow(app_spec)) from None
            raise
        child._first_size = resident(child.pid)
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def usable(self) -> bool:
        """Whether it may run another attempt. The kernel is asked too: the loop hears of a death
        only at its next turn, and an attempt given to a dead process would be charged as a crash.
        """
        if self.spent or self._line_closed or self.exited.done():
            return False
        return liveness(self.pid) is not Liveness.GONE

    def is_bloated(self) -> bool:
        return resident(self.pid) > self._first_size + BLOATED

    async def execute(self, run: Run) -> Outcome:
        """Run one attempt. If it was stopped or killed, the process is gone when this returns."""
        self._attempts += 1
        self._run, self._outcome = run, self._loop.create_future()
        run.on_stop = self._on_stop
        run.stopping.then(lambda: self._ask(run))
        limit = run.definition.memory_limit
        try:
            self._send(wire.pack_claim(run.claim, limit))
            if limit is not None:
                self._watch_memory(run, resident(self.pid), limit)
            if run.stop_reason is not None:
                self._on_stop(run.stop_reason)
            outcome = await self._outcome
        except asyncio.CancelledError:
            self.kill()
            raise
        finally:
            self._run = run.on_stop = None
        if self.spent:
            self.kill()
            await self.exited
        return outcome if run.stop_reason is None else _stopped(run, outcome)

    async def close(self) -> None:
        """Let the process end by itself, and see to it that it does."""
        if self._transport is not None:
            self._transport.close()
        timer = self._loop.call_later(PATIENCE, self.kill)
        await self.exited
        timer.cancel()

    def kill(self) -> None:
        """End the process and all that it started."""
        self.spent = True
        if not self.exited.done():
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def _ask(self, run: Run) -> None:
        if self._run is run and run.stopping.has_looked and not self.spent:
            with suppress(ProcessLookupError):
                self._process.send_signal(ASK)

    def _looked(self, run: Run, has_seen: bool) -> None:
        run.stopping.has_looked = True
        run.stopping.has_seen = has_seen
        if run.stopping.is_asked and not has_seen:
            self._ask(run)

    def _on_stop(self, reason: StopReason) -> None:
        self.spent = True
        number = OUT_OF_TIME if reason is StopReason.TIMED_OUT else STOP
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        self._loop.call_later(PATIENCE, self.kill)

    def _watch_memory(self, run: Run, before: int, limit: int) -> None:
        if self._run is not run or self.spent:
            return
        used = resident(self.pid) - before
        if used > limit:
            self._over_limit = over_limit(limit, used)
            self.kill()
        else:
            self._loop.call_later(LOOK_EVERY, self._watch_memory, run, before, limit)

    def _send(self, frame: Frame) -> None:
        if self._transport is not None and not self._line_closed:
            self._transport.write(frame.pack())

    # What the line brings.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._garbled is not None:
            return
        try:
            for frame in self._unpacker.feed(data):
                self._take(frame)
        except Exception as error:  # noqa: BLE001 - nothing that is said here may harm the worker
            self._garbled = error
            run = self._run and self._run.claim.task_id
            log.error("process.line_garbled", pid=self.pid, task_id=run, error=str(error))
            self.kill()

    def connection_lost(self, _error: Exception | None) -> None:
        self._line_closed = True
        if self.exited.done():
            self._gone()
        elif self._run is not None:
            # It closed its line but lives: nobody would ever hear of this attempt again.
            self.kill()

    def _take(self, frame: Frame) -> None:
        if not self._ready.done():
            self._answer_hello(frame)
            return
        run, outcome = self._run, self._outcome
        if run is None or outcome is None or outcome.done() or frame.about != key_of(run.claim):
            raise Garbled(f"{frame.kind!r} about {frame.about}, out of turn")
        match frame.kind:
            case wire.OUTCOME:
                ends = wire.unpack_ends(frame)
                if ends is not None and isinstance(run, BatchRun):
                    run.body.take_ends(ends)
                    outcome.set_result(Succeeded(b"null"))
                else:
                    outcome.set_result(wire.unpack_outcome(frame))
            case wire.HOLD:
                self._answer(self._hold(run))
            case wire.ASK:
                self._answer(self._step(run, frame))
            case wire.LOOKED:
                self._looked(run, frame.head)
            case kind:
                _pass_on(kind, frame.head, run)

    def _answer_hello(self, frame: Frame) -> None:
        match frame.kind:
            case wire.READY:
                self._ready.set_result(None)
            case wire.REFUSED if isinstance(refusal := wire.unpack_outcome(frame), Failed):
                self._ready.set_exception(Unstartable(refusal.error))
            case _:
                raise Garbled(f"{frame.kind!r} before it was ready")

    def _answer(self, work: Coroutine[Any, Any, None]) -> None:
        answering = asyncio.ensure_future(work)
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)

    async def _step(self, run: Run, asked: Frame) -> None:
        said = await steps.answer(run.step_host, run.claim, asked)
        if self._run is run:
            self._send(said)

    async def _hold(self, run: Run) -> None:
        await run.hold_reports()
        self._send(Frame(wire.HELD, None, about=key_of(run.claim)))

    # What the operating system says.

    def _on_exit(self) -> None:
        # The group first: once the process is reaped, its number may be given to another.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        GROUPS.remove(self.pid)
        _resolve(self.exited, self._process.wait())
        if self._line_closed:
            self._gone()
        else:
            # Its last words may still be on the line, which a grandchild may hold open.
            self._loop.call_later(LAST_WORDS, self._gone)

    def _gone(self) -> None:
        self.spent = True
        if self._transport is not None:
            self._transport.close()
        if not self._ready.done():
            self._ready.set_exception(Unstartable(self._death()))
        if self._outcome is not None:
            _resolve(self._outcome, self._lost())

    def _lost(self) -> Outcome:
        if self._over_limit is not None:
            return Failed(self._over_limit)
        handed_back = self._run is not None and self._run.claim.cause is Cause.RELEASED
        if self._garbled is not None and self._attempts > 1 and not handed_back:
            return Released()
        return WorkerLost(self._death())

    def _death(self) -> TaskError:
        end = describe_exit(self.exited.result())
        if self._garbled is not None:
            end = f"was killed: what it sent could not be understood ({self._garbled})"
        return TaskError(
            type="WorkerLost",
            message=f"the process that ran the attempt {end}. "
            "Only this attempt is lost; the worker goes on.",
        )


def _stopped(run: Run, outcome: Outcome) -> Outcome:
    ending = stopped(run)
    if isinstance(ending, TimedOut) and isinstance(outcome, Failed):
        # Where the handler was when the time was up.
        ending = TimedOut(replace(ending.error, traceback=outcome.error.traceback))
    return ending


def _spawn(app_spec: str, line: int) -> subprocess.Popen[bytes]:
    module = "holdfast.worker.processes.child"
    return subprocess.Popen(
        [sys.executable, "-m", module, app_spec, str(line), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        env=logs.environment(),
        pass_fds=[line],
        # A session of its own: Ctrl-C in a terminal is the worker's to handle, and killing the
        # group kills all that the handler started.
        start_new_session=True,
    )


def _pass_on(kind: str, head: Json, run: Run) -> None:
    match kind:
        case wire.PROGRESS:
            run.report(progress=Progress(**head))
        case wire.COST:
            run.report(cost=Cost(**head))
        case wire.LOG:
            run.report(log=head)
        case wire.EXTEND:
            run.extend(head)
        case wire.MEMBER if isinstance(run, BatchRun):
            number, said, what = head
            _pass_on(said, what, run.members[number])
        case wire.LET_GO:
            run.let_go_of_reports()
        case wire.COMPLETED:
            run.was_completed()
        case _:
            raise Garbled(f"{kind!r}, which is no word for this")


def _too_slow(app_spec: str) -> TaskError:
    return TaskError(
        type=TimeoutError.__name__,
        message=f"importing {app_spec!r} in a new process took longer than {START_LIMIT:g} s",
    )


def _no_room(error: OSError) -> TaskError:
    return TaskError(type=type(error).__name__, message=str(error))


def _resolve(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)
