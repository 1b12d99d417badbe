"""One attempt inside a child: load the arguments, run the handler, say how it ended."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import suppress
from contextvars import copy_context
from dataclasses import asdict
from typing import Any

from holdfast.core.attempt import Claim, Report
from holdfast.core.lifecycle import Failed, Outcome
from holdfast.core.task import Cost, Json, Progress
from holdfast.definitions.context import Context, enter_context
from holdfast.definitions.definition import Definition
from holdfast.definitions.stopping import Stopping
from holdfast.engine.judging import bringing
from holdfast.worker.batch import BatchBody
from holdfast.worker.batch_claim import BatchClaim
from holdfast.worker.forks import end_fork
from holdfast.worker.processes.channel import Channel
from holdfast.worker.processes.interruption import Interruption
from holdfast.worker.processes.memory import capped, over_limit
from holdfast.worker.processes.steps import ChildSteps
from holdfast.worker.processes.transactions import ChildTransactionHost
from holdfast.worker.processes.wire import (
    COST,
    EXTEND,
    LOG,
    LOOKED,
    MEMBER,
    PROGRESS,
    Frame,
    key_of,
)
from holdfast.worker.transactions import Transacting
from holdfast.worker.verdict import accept, describe, judge


class _Looks(Stopping):
    """Tells the worker that the handler looks, and when it has seen the request."""

    def __init__(self, claim: Claim, channel: Channel) -> None:
        super().__init__()
        self._claim = claim
        self._channel = channel

    def look(self) -> bool:
        before = self.has_looked, self.has_seen
        seen = super().look()
        if before != (True, seen):
            self._channel.send(Frame(LOOKED, seen, about=key_of(self._claim)))
        return seen


class ChildSink(Transacting):
    """Carries what a handler says about itself to the worker."""

    def __init__(
        self,
        claim: Claim,
        definition: Definition[..., Any, Any],
        channel: Channel,
        interruption: Interruption,
        host: ChildTransactionHost,
        step_host: ChildSteps,
    ) -> None:
        self.claim = claim
        self.definition = definition
        self._channel = channel
        self._interruption = interruption
        self._reports = host
        self._host = host
        self._transaction = None
        self._step_host = step_host
        self._steps = None
        self.line = threading.get_ident()
        self.completion = None
        self.ended = False
        self.follow_ups = None
        self.stopping: Stopping = _Looks(claim, channel)

    def report(
        self, *, progress: Progress | None = None, cost: Cost | None = None, log: str | None = None
    ) -> None:
        claim, logs = self.claim, () if log is None else (log,)
        self._reports.put(
            Report(claim.task_id, claim.attempt, claim.worker_id, progress, cost, logs)
        )

    def extend(self, seconds: float) -> None:
        self._channel.send(Frame(EXTEND, seconds, about=key_of(self.claim)))

    def refuse_if_stopped(self) -> None:
        if self._interruption.came:
            raise asyncio.CancelledError("the attempt was stopped inside its transaction")


class MemberSink(ChildSink):
    """The same for one member of a batch, whose frames are about the whole batch."""

    def __init__(self, number: int, batch: BatchClaim, *parts: Any) -> None:
        """`parts` are those of every sink."""
        super().__init__(batch.members[number], *parts)
        self.stopping = Stopping()
        self._number = number
        self._about = key_of(batch)

    def report(
        self, *, progress: Progress | None = None, cost: Cost | None = None, log: str | None = None
    ) -> None:
        said: list[tuple[str, Json]] = [
            (PROGRESS, None if progress is None else asdict(progress)),
            (COST, None if cost is None else asdict(cost)),
            (LOG, log),
        ]
        for kind, what in said:
            if what is not None:
                self._channel.send(Frame(MEMBER, [self._number, kind, what], about=self._about))


class Body:
    """Runs handlers in this process's main thread, one at a time."""

    def __init__(
        self,
        channel: Channel,
        interruption: Interruption,
        host: ChildTransactionHost,
        step_host: ChildSteps,
    ) -> None:
        self._channel = channel
        self._interruption = interruption
        self._host = host
        self._step_host = step_host
        self._pid = os.getpid()

    def run(
        self, claim: Claim, definition: Definition[..., Any, Any], memory_limit: int | None
    ) -> Outcome:
        """Bring the attempt to an outcome, whatever the handler raises."""
        try:
            # Variables that a handler sets are not seen by the next one.
            outcome = copy_context().run(self._attempt, claim, definition, memory_limit)
        except BaseException as error:  # noqa: BLE001 - SystemExit in a handler is the handler's error
            self._end_unless_original(error)
            outcome = _came_out(definition, claim.payload, error, memory_limit)
        self._end_unless_original()
        _flush()
        return outcome

    def run_batch(
        self, claim: BatchClaim, definition: Definition[..., Any, Any], memory_limit: int | None
    ) -> list[Outcome]:
        """Bring a batch to the outcomes of its members."""
        parts = definition, self._channel, self._interruption, self._host, self._step_host
        members = [MemberSink(number, claim, *parts) for number in range(len(claim.members))]
        batch = BatchBody(definition, members)
        return batch.ends(self.run(claim, batch, memory_limit))

    def _attempt(
        self, claim: Claim, definition: Definition[..., Any, Any], memory_limit: int | None
    ) -> Outcome:
        sink = ChildSink(
            claim, definition, self._channel, self._interruption, self._host, self._step_host
        )
        self._interruption.stopping = sink.stopping
        context = Context(claim, sink)
        enter_context(context)
        with capped(memory_limit), self._interruption.inside():
            value = definition.start(context, claim.payload)
            if definition.is_async:
                value = asyncio.run(self._await(sink, value))
        sink.ended = True
        outcome = accept(definition, claim.payload, value)
        if sink.follow_ups is None:
            return outcome
        return bringing(outcome, sink.follow_ups, definition.home.settings.idempotency_window)

    def _end_unless_original(self, error: BaseException | None = None) -> None:
        # Asked of the kernel: a fork that C code made has run none of Python's hooks.
        if os.getpid() != self._pid:
            end_fork(error)

    async def _await(self, sink: ChildSink, coroutine: Any) -> object:
        task = asyncio.current_task()
        assert task is not None
        sink.line = task
        with self._interruption.cancelling(task):
            result: object = await coroutine
            return result


def _came_out(
    definition: Definition[..., Any, Any],
    payload: bytes,
    error: BaseException,
    memory_limit: int | None,
) -> Outcome:
    if isinstance(error, MemoryError) and memory_limit is not None:
        said = describe(error, definition.secrets_in(payload))
        return Failed(over_limit(memory_limit, None, said.traceback))
    return judge(definition, payload, error)


def _flush() -> None:
    # A child may be killed at any time later; what its handlers printed should be seen.
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
