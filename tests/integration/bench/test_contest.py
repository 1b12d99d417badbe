"""One product goes through the bench: Holdfast itself, on SQLite, which needs no server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench.environments import Unavailable
from bench.peers import contest
from bench.peers.match import Arena, match
from bench.peers.roster import HOLDFAST_SQLITE, PGQUEUER

PEER = replace(HOLDFAST_SQLITE, drained=2_000, submitted=100)


def test_a_drain_tells_its_speed_and_what_a_task_cost() -> None:
    drained = contest.drain(PEER, Arena(), PEER.one)

    assert drained.per_second > 100
    assert drained.worker_cpu_us > 0
    assert drained.wal_bytes is None


def test_a_submit_and_a_bulk_submit_tell_their_speed() -> None:
    assert contest.submit_rate(PEER, Arena(), callers=4) > 10
    assert contest.bulk_rate(PEER, Arena()) > 100


def test_a_live_worker_tells_its_latency_and_its_idle_cost() -> None:
    live = contest.live(PEER, Arena(), 5, 0.5)

    assert 0 < live.p50_ms <= live.p99_ms
    assert live.tasks == 5
    assert live.rss_mib > live.pss_mib > 0


def test_a_worker_that_ends_is_reported_with_its_last_words() -> None:
    broken = (("python", "-c", "raise SystemExit('no such broker')"),)

    with pytest.raises(Unavailable, match="its worker ended: no such broker"):
        contest.drain(PEER, Arena(), broken)


def test_a_driver_that_fails_says_which_request_failed_and_why() -> None:
    with match(PEER, Arena()) as one, pytest.raises(Unavailable, match="nonsense: KeyError"):
        one.call("nonsense")


def test_a_peer_without_its_server_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.peers.match.environment", lambda _: None)

    with pytest.raises(Unavailable, match="there is no PostgreSQL here"):
        contest.submit_rate(PGQUEUER, Arena())
