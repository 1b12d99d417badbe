"""What a worker and the processes of its pool say to each other, and how it looks on the wire.

A frame is two lengths, a JSON head and raw bytes (arguments or a result, which are JSON already and
may one day be encrypted). No pickle: a frame can say something wrong, it cannot do anything.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict
from typing import NamedTuple, assert_never

from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import (
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    WorkerLost,
)
from holdfast.core.task import Cause, Json, Priority, TaskError

HELLO, READY, REFUSED = "hello", "ready", "refused"
RUN, OUTCOME = "run", "outcome"
PROGRESS, COST, LOG, EXTEND = "progress", "cost", "log", "extend"
HOLD, HELD, LET_GO, COMPLETED = "hold", "held", "let_go", "completed"

_LENGTHS = struct.Struct("!II")


class Frame(NamedTuple):
    """One message. `kind` is one of the words above."""

    kind: str
    head: Json
    body: bytes = b""

    def pack(self) -> bytes:
        head = json.dumps([self.kind, self.head]).encode()
        return _LENGTHS.pack(len(head), len(self.body)) + head + self.body


class Unpacker:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add what arrived and take out what is complete."""
        self._buffer += data
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        if len(self._buffer) < _LENGTHS.size:
            return None
        head_size, body_size = _LENGTHS.unpack_from(self._buffer)
        middle = _LENGTHS.size + head_size
        end = middle + body_size
        if len(self._buffer) < end:
            return None
        kind, head = json.loads(self._buffer[_LENGTHS.size : middle])
        body = bytes(self._buffer[middle:end])
        del self._buffer[:end]
        return Frame(kind, head, body)


def pack_claim(claim: Claim, memory_limit: int | None) -> Frame:
    """Ask for one attempt to be run."""
    fields = claim._asdict()
    payload = fields.pop("payload")
    return Frame(RUN, {"claim": fields, "memory_limit": memory_limit}, payload)


def unpack_claim(frame: Frame) -> Claim:
    fields = frame.head["claim"] | {"payload": frame.body}
    fields["priority"] = Priority(fields["priority"])
    fields["cause"] = Cause(fields["cause"])
    return Claim(**fields)


def pack_outcome(outcome: Outcome) -> Frame:
    """Say how the attempt ended. A child cannot say it was stopped or lost: it does not know."""
    match outcome:
        case Succeeded(result):
            return Frame(OUTCOME, {"is": "succeeded"}, result)
        case Failed(error, retry_after):
            return Frame(
                OUTCOME, {"is": "failed", "error": asdict(error), "retry_after": retry_after}
            )
        case Released(delay):
            return Frame(OUTCOME, {"is": "released", "delay": delay})
        case TimedOut() | WorkerLost() | Stopped():
            raise ValueError(f"{outcome!r} is for the worker to say")
        case _:
            assert_never(outcome)


def unpack_outcome(frame: Frame) -> Succeeded | Failed | Released:
    head = frame.head
    match head["is"]:
        case "succeeded":
            return Succeeded(frame.body)
        case "failed":
            return Failed(TaskError(**head["error"]), head["retry_after"])
        case _:
            return Released(head["delay"])
