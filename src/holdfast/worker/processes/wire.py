"""What a worker and the processes of its pool say to each other, and how it looks on the wire.

A frame is a mark, two lengths, a checksum, a JSON head and raw bytes (arguments or a result, which
are JSON already and may one day be encrypted). No pickle: a frame can say something wrong, it
cannot do anything. It names the attempt that it is about, so one is never taken for another. Mark
and checksum tell a frame from whatever else a handler, or what it started, may write there.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import accumulate, pairwise
from typing import NamedTuple, assert_never

from holdfast.core.attempt import Claim, Report
from holdfast.core.gate import Gate, GateKind
from holdfast.core.lifecycle import (
    Deferred,
    Dropped,
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    Unfit,
    WorkerLost,
)
from holdfast.core.record import Changes, Put
from holdfast.core.task import Cause, Json, NewTask, Priority, Reason, TaskError
from holdfast.worker.batch_claim import BatchClaim, members_of

HELLO, READY, REFUSED = "hello", "ready", "refused"
RUN, OUTCOME = "run", "outcome"
PROGRESS, COST, LOG, EXTEND, LOOKED = "progress", "cost", "log", "extend", "looked"
MEMBER = "member"
HOLD, HELD, LET_GO, COMPLETED = "hold", "held", "let_go", "completed"
ASK, ANSWER = "ask", "answer"

_MARK = b"\xf7HF\x01"
_START = struct.Struct("!4sIII")

AttemptKey = tuple[str, int]
"""Task and attempt. A frame about no attempt has None."""


class Garbled(Exception):
    """What came over the line is no frame, or not one that could come now."""


class Frame(NamedTuple):
    """One message. `kind` is one of the words above."""

    kind: str
    head: Json
    body: bytes = b""
    about: AttemptKey | None = None

    def pack(self) -> bytes:
        head = json.dumps([self.kind, self.about, self.head]).encode()
        checksum = zlib.crc32(self.body, zlib.crc32(head))
        return _START.pack(_MARK, len(head), len(self.body), checksum) + head + self.body


class Unpacker:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add what arrived and take out what is complete. `Garbled` if it is no frame."""
        self._buffer += data
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        if not self._buffer.startswith(_MARK[: len(self._buffer)]):
            raise Garbled(f"bytes that are no frame: {bytes(self._buffer[:40])!r}")
        if len(self._buffer) < _START.size:
            return None
        _, head_size, body_size, checksum = _START.unpack_from(self._buffer)
        middle = _START.size + head_size
        end = middle + body_size
        if len(self._buffer) < end:
            return None
        head, body = bytes(self._buffer[_START.size : middle]), bytes(self._buffer[middle:end])
        if zlib.crc32(body, zlib.crc32(head)) != checksum:
            raise Garbled("a frame with other bytes in its midst")
        del self._buffer[:end]
        kind, about, said = json.loads(head)
        return Frame(kind, said, body, None if about is None else (about[0], about[1]))


def pack_claim(claim: Claim, memory_limit: int | None) -> Frame:
    """Ask for one attempt to be run, or for a batch of them."""
    members = members_of(claim)
    head = {
        "claims": [one._asdict() | {"payload": len(one.payload)} for one in members],
        "is_batch": isinstance(claim, BatchClaim),
        "memory_limit": memory_limit,
    }
    return Frame(RUN, head, b"".join(one.payload for one in members), key_of(claim))


def key_of(claim: Claim | Report) -> AttemptKey:
    """What frames call this attempt."""
    return claim.task_id, claim.attempt


def unpack_claim(frame: Frame) -> Claim:
    heads = frame.head["claims"]
    payloads = _cut(frame.body, [head["payload"] for head in heads])
    claims = [
        Claim(
            **head
            | {
                "payload": payload,
                "priority": Priority(head["priority"]),
                "cause": Cause(head["cause"]),
            }
        )
        for head, payload in zip(heads, payloads, strict=True)
    ]
    return BatchClaim.gathered(claims) if frame.head["is_batch"] else claims[0]


def pack_ends(ends: Sequence[Outcome], about: AttemptKey | None) -> Frame:
    """Say how the members of a batch ended."""
    frames = [pack_outcome(end, None) for end in ends]
    head = {"is": "batch", "members": [[one.head, len(one.body)] for one in frames]}
    return Frame(OUTCOME, head, b"".join(one.body for one in frames), about)


def unpack_ends(frame: Frame) -> list[Outcome] | None:
    """How the members of a batch ended; None if this says it of the whole run."""
    if frame.head["is"] != "batch":
        return None
    members = frame.head["members"]
    bodies = _cut(frame.body, [size for _, size in members])
    return [
        unpack_outcome(Frame(OUTCOME, head, body))
        for (head, _), body in zip(members, bodies, strict=True)
    ]


def _cut(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    ends = list(accumulate(sizes, initial=0))
    return [body[start:end] for start, end in pairwise(ends)]


def pack_outcome(outcome: Outcome, about: AttemptKey | None) -> Frame:
    """Say how the attempt ended. A child cannot say it was stopped or lost: it does not know."""
    head: Json
    match outcome:
        case Succeeded(result, also):
            return Frame(OUTCOME, {"is": "succeeded", "also": _pack_changes(also)}, result, about)
        case Failed(error, retry_after):
            head = {"is": "failed", "error": asdict(error), "retry_after": retry_after}
            return Frame(OUTCOME, head, about=about)
        case Released(delay):
            return Frame(OUTCOME, {"is": "released", "delay": delay}, about=about)
        case Unfit():
            return Frame(OUTCOME, {"is": "unfit"} | asdict(outcome), about=about)
        case Deferred(delay, None, also):
            head = {"is": "deferred", "delay": delay, "also": _pack_changes(also)}
            return Frame(OUTCOME, head, about=about)
        case TimedOut() | WorkerLost() | Stopped() | Deferred() | Dropped():
            raise ValueError(f"{outcome!r} is for the worker to say")
        case _:
            assert_never(outcome)


def unpack_outcome(frame: Frame) -> Succeeded | Failed | Released | Unfit | Deferred:
    head = frame.head
    match head["is"]:
        case "succeeded":
            return Succeeded(frame.body, _unpack_changes(head["also"]))
        case "failed":
            return Failed(TaskError(**head["error"]), head["retry_after"])
        case "unfit":
            error, reason = TaskError(**head["error"]), Reason(head["reason"])
            return Unfit(error, reason, head["again_in"], head["needs"])
        case "deferred":
            return Deferred(head["delay"], also=_unpack_changes(head["also"]))
        case _:
            return Released(head["delay"])


def _pack_changes(also: Changes | None) -> Json:
    if also is None:
        return None
    records = [list(change) for change in also.records if isinstance(change, Put)]
    return [also.id, also.idempotency_window, list(map(_pack_task, also.tasks)), records]


def _unpack_changes(packed: Json) -> Changes | None:
    if packed is None:
        return None
    commit, window, tasks, records = packed
    puts = tuple(Put(*fields) for fields in records)
    return Changes(commit, tuple(map(_unpack_task, tasks)), puts, window)


def _pack_task(new: NewTask) -> Json:
    return new._asdict() | {
        "payload": new.payload.decode("latin-1"),  # any bytes, as text
        "requires": sorted(new.requires),
        "run_at": None if new.run_at is None else new.run_at.isoformat(),
        "expires_at": None if new.expires_at is None else new.expires_at.isoformat(),
    }


def _unpack_task(packed: Json) -> NewTask:
    run_at, expires_at = packed["run_at"], packed["expires_at"]
    read = {
        "payload": packed["payload"].encode("latin-1"),
        "priority": Priority(packed["priority"]),
        "requires": frozenset(packed["requires"]),
        "tags": tuple(packed["tags"]),
        "gates": tuple(Gate(GateKind(kind), *rest) for kind, *rest in packed["gates"]),
        "counts": tuple(packed["counts"]),
        "run_at": None if run_at is None else datetime.fromisoformat(run_at),
        "expires_at": None if expires_at is None else datetime.fromisoformat(expires_at),
    }
    return NewTask(**packed | read)
