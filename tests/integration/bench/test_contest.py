"""One product goes through the bench: Holdfast itself, on SQLite, which needs no server."""

from __future__ import annotations

from dataclasses import replace

from bench.peers import contest
from bench.peers.match import Arena
from bench.peers.roster import HOLDFAST_SQLITE

PEER = replace(HOLDFAST_SQLITE, drained=2_000, submitted=100)


def test_a_drain_tells_its_speed_and_what_a_task_cost() -> None:
    drained = contest.drain(PEER, Arena(), PEER.one)

    assert drained.per_second > 100
    assert drained.worker_cpu_us > 0
    assert drained.wal_bytes is None
