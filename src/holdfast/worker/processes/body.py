"""One attempt inside a child: load the arguments, run the handler, say how it ended."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from contextvars import copy_context
from dataclasses import asdict
from typing import Any, NoReturn

from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import Failed, Outcome
from holdfast.core.task import Cost, Progress
from holdfast.definitions.context import Context, enter_context
from holdfast.definitions.definition import Definition
from holdfast.errors import Unsupported
from holdfast.worker.processes.channel import Channel
from holdfast.worker.processes.interruption import Interruption
from holdfast.worker.processes.memory import capped, over_limit
from holdfast.worker.processes.wire import COST, EXTEND, LOG, PROGRESS, Frame
from holdfast.worker.verdict import accept, describe, judge


class LineSink:
    """Carries what a handler says about itself to the worker."""

    def __init__(self, channel: Channel, interruption: Interruption) -> None:
        self._channel = channel
        self._interruption = interruption

    def report(
        self, *, progress: Progress | None = None, cost: Cost | None = None, log: str | None = None
    ) -> None:
        if progress is not None:
            self._channel.send(Frame(PROGRESS, asdict(progress)))
        if cost is not None:
            self._channel.send(Frame(COST, asdict(cost)))
        if log is not None:
            self._channel.send(Frame(LOG, log))

    def extend(self, seconds: float) -> None:
        self._channel.send(Frame(EXTEND, seconds))

    def stop_requested(self) -> bool:
        return self._interruption.came

    def transaction(self) -> NoReturn:
        raise Unsupported(
            "ctx.transaction() does not work in the process executor; use executor='thread' or an "
            "async handler for this task."
        )

    def open_transaction(self) -> None:
        return None


class Body:
    """Runs handlers in this process's main thread, one at a time."""

    def __init__(self, channel: Channel, interruption: Interruption) -> None:
        self._sink = LineSink(channel, interruption)
        self._interruption = interruption

    def run(
        self, claim: Claim, definition: Definition[..., Any, Any], memory_limit: int | None
    ) -> Outcome:
        """Bring the attempt to an outcome, whatever the handler raises."""
        try:
            # Variables that a handler sets are not seen by the next one.
            outcome = copy_context().run(self._attempt, claim, definition, memory_limit)
        except BaseException as error:  # noqa: BLE001 - SystemExit in a handler is the handler's error
            outcome = _came_out(definition, error, memory_limit)
        _flush()
        return outcome

    def _attempt(
        self, claim: Claim, definition: Definition[..., Any, Any], memory_limit: int | None
    ) -> Outcome:
        context = Context(claim, self._sink)
        enter_context(context)
        with capped(memory_limit), self._interruption.inside():
            args, kwargs = definition.load(claim.payload)
            if definition.wants_context:
                args = (context, *args)
            value = definition.handler(*args, **kwargs)
            if definition.is_async:
                value = asyncio.run(self._await(value))
        return accept(definition, value)

    async def _await(self, coroutine: Any) -> object:
        task = asyncio.current_task()
        assert task is not None
        with self._interruption.cancelling(task):
            result: object = await coroutine
            return result


def _came_out(
    definition: Definition[..., Any, Any], error: BaseException, memory_limit: int | None
) -> Outcome:
    if isinstance(error, MemoryError) and memory_limit is not None:
        return Failed(over_limit(memory_limit, None, describe(error).traceback))
    return judge(definition, error)


def _flush() -> None:
    # A child may be killed at any time later; what its handlers printed should be seen.
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
