"""What goes over the line between a worker and a process comes out as it went in."""

from __future__ import annotations

from types import ModuleType

import pytest

from holdfast.core.lifecycle import Failed, Outcome, Released, Stopped, Succeeded
from holdfast.core.task import TaskError
from holdfast.worker.processes.wire import (
    Frame,
    Unpacker,
    pack_claim,
    pack_outcome,
    unpack_claim,
    unpack_outcome,
)

from .conftest import attempt

ERROR = TaskError(type="ValueError", message="ä\udc80\nz", traceback="…", retriable=False)


def test_frames_are_cut_right_however_the_bytes_arrive() -> None:
    frames = [
        Frame("a", {"n": 1}, b"\x00" * 70_000),
        Frame("b", None),
        Frame("c", "ü", b"x", ("a", 7)),
    ]
    stream = b"".join(frame.pack() for frame in frames)

    for size in (1, 7, 4096, len(stream)):
        unpacker = Unpacker()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [frame for piece in pieces for frame in unpacker.feed(piece)] == frames


@pytest.mark.parametrize(
    "outcome",
    [Succeeded(b'{"a":1}'), Failed(ERROR), Failed(ERROR, retry_after=2.5), Released(delay=3.0)],
)
def test_an_outcome_is_the_same_on_the_other_side(outcome: Outcome) -> None:
    assert unpack_outcome(_over_the_line(pack_outcome(outcome, ("a", 1)))) == outcome


def test_a_process_cannot_say_that_it_was_stopped() -> None:
    with pytest.raises(ValueError, match="for the worker to say"):
        pack_outcome(Stopped(), ("a", 1))


def test_a_claim_is_the_same_on_the_other_side(bodies: ModuleType) -> None:
    claim = attempt(bodies.add, a=1).claim._replace(payload=b"\xff\x00encrypted", fence=7)

    there = unpack_claim(_over_the_line(pack_claim(claim, None)))

    assert there == claim
    assert type(there.priority) is type(claim.priority)


def _over_the_line(frame: Frame) -> Frame:
    (arrived,) = Unpacker().feed(frame.pack())
    return arrived
