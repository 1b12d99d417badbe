"""Thousands of seeded histories keep every promise. A red one says how to repeat it.

They are the same at every run, and each way to break the engine is found within 600 of them
(`test_broken_variants`). `SIM_HISTORIES=20000` tries more; `make soak` does.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from tests.kit.simulation import run_history

from holdfast.core.gate import GateKind
from holdfast.core.lifecycle import MOVES
from holdfast.core.task import AttemptEnd, Cause, State, SubmitOutcome

CHUNKS = 4
PER_CHUNK = int(os.environ.get("SIM_HISTORIES", "2400")) // CHUNKS

COALESCED = {SubmitOutcome.DEBOUNCED, SubmitOutcome.THROTTLED}
"""What no store answers: it is decided above them."""

EVENTS = (
    *(f"attempt {end}" for end in AttemptEnd),
    *(f"start by {cause}" for cause in Cause),
    *(f"submit {outcome}" for outcome in SubmitOutcome if outcome not in COALESCED),
    # What settlements say. That a task handed back is blocked is the lock's doing, not theirs.
    *(f"task {state}" for state in MOVES[State.RUNNING] if state is not State.BLOCKED),
    "cancel",
    "idempotency conflict",
    "settlement refused",
    "settlement repeated",
    "settlement clashed",
    "commit",
    "commit clashed",
    "commit repeated",
    "worker buried",
    *(f"blocked by {kind}" for kind in GateKind),
    "told of",
)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_promise_holds_in_every_history_and_none_is_empty(chunk: int) -> None:
    seen: Counter[str] = Counter()

    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        verdict = run_history(seed)
        assert not verdict.broken, str(verdict)
        seen.update(verdict.seen)

    rare = {event: seen[event] for event in EVENTS if seen[event] < 10}
    assert not rare


def test_the_history_of_the_seed_in_the_environment_holds() -> None:
    seed = int(os.environ.get("SIM_SEED", "4711"))

    verdict = run_history(seed)

    assert not verdict.broken, str(verdict)


def test_a_seed_tells_the_same_history_every_time() -> None:
    assert run_history(7) == run_history(7)


def test_another_seed_tells_another_history() -> None:
    assert len({run_history(seed).steps for seed in range(20)}) > 10
