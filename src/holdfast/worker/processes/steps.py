"""Durable steps of a handler in a process of its own: it asks its worker, and waits for the answer.

The worker records steps of all its attempts together, whatever runs them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, TypeVar

from holdfast.asyncio_tools.at_once import at_once
from holdfast.core.attempt import Claim
from holdfast.core.events import Came, Looked, NotYet, TooLate
from holdfast.core.record import Put
from holdfast.core.task import Json
from holdfast.definitions.steps import StepHost
from holdfast.errors import HoldfastError, LeaseLost
from holdfast.worker.processes.channel import Channel
from holdfast.worker.processes.wire import ANSWER, ASK, Frame, key_of

T = TypeVar("T")


class ChildSteps:
    """A `StepHost` at the other end of the line."""

    def __init__(self, channel: Channel, max_result: int) -> None:
        self.max_result = max_result
        self._channel = channel
        self._numbers = count(1)

    async def journal(self, claim: Claim) -> Mapping[str, bytes]:
        entries = await self._ask(claim, "journal")
        return {name: value.encode() for name, value in entries.items()}

    async def record(self, claim: Claim, name: str, value: bytes) -> None:
        await self._ask(claim, "record", name, body=value)

    async def now(self) -> datetime:
        return datetime.fromisoformat(await self._ask(None, "now"))

    async def look_for(self, claim: Claim, event: str, timeout: float | None) -> Looked:
        return _unpack_looked(await self._ask(claim, "look_for", event, timeout))

    async def wait_no_more(self, claim: Claim, event: str) -> None:
        await self._ask(claim, "wait_no_more", event)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return at_once(work)

    async def _ask(self, claim: Claim | None, verb: str, *args: Json, body: bytes = b"") -> Json:
        number = next(self._numbers)
        about = self._channel.about if claim is None else key_of(claim)
        ask = partial(self._channel.ask, Frame(ASK, [number, verb, *args], body, about), number)
        # Where a loop runs it must not be held up; a sync handler waits right here.
        in_loop = asyncio._get_running_loop() is not None
        answer = await asyncio.to_thread(ask) if in_loop else ask()
        _, went, said = answer.head
        if went == "lost" and claim is not None:
            raise LeaseLost(claim.task_id, claim.attempt, holder=said)
        if went != "ok":
            raise HoldfastError(str(said))
        return said


async def answer(host: StepHost, claim: Claim, asked: Frame) -> Frame:
    """What the worker says to that."""
    number, verb, *args = asked.head
    try:
        went, said = "ok", await _answer(host, claim, verb, args, asked.body)
    except LeaseLost as error:
        went, said = "lost", error.holder
    except Exception as error:  # noqa: BLE001 - the handler is told
        went, said = "failed", str(error)
    return Frame(ANSWER, [number, went, said], about=asked.about)


async def _answer(host: StepHost, claim: Claim, verb: str, args: list[Any], body: bytes) -> Json:
    match verb:
        case "journal":
            entries = await host.journal(claim)
            return {name: value.decode() for name, value in entries.items()}
        case "record":
            await host.record(claim, args[0], body)
        case "now":
            return (await host.now()).isoformat()
        case "look_for":
            return _pack_looked(await host.look_for(claim, args[0], args[1]))
        case "wait_no_more":
            await host.wait_no_more(claim, args[0])
        case _:
            raise HoldfastError(f"{verb!r} is no word for this")
    return None


def _pack_looked(looked: Looked) -> Json:
    return [type(looked).__name__, list(looked)]


def _unpack_looked(packed: Json) -> Looked:
    kind, fields = packed
    if kind == Came.__name__:
        return Came(*fields)
    if kind == TooLate.__name__:
        return TooLate()
    delay, put = fields
    return NotYet(delay, Put(*put))
