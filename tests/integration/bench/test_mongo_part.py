"""MongoDB goes through the bench, and the page says what was behind the address."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest
from bench import mongo
from bench.environments import Unavailable
from bench.machine import Watch
from bench.peers import contest
from bench.peers.match import Arena
from bench.run import Run
from bench.samples import ONE, Samples
from bench.servers import Mongo
from bench.size import QUICK

from holdfast.testing.servers.mongo import MongoServer


@pytest.fixture
def server(own_mongo: MongoServer) -> Mongo:
    return Mongo(own_mongo.url(), own_mongo.pid)


def test_submits_and_a_drain_tell_their_speed(server: Mongo) -> None:
    arena, peer = Arena(mongo=server), replace(mongo.SLOW, drained=200, submitted=8)

    assert contest.submit_rate(peer, arena, callers=2) > 1
    drained = contest.drain(peer, arena, peer.one)

    assert drained.per_second > 1
    assert drained.server_cpu_us > 0


def test_a_test_server_is_named_as_what_it_is(server: Mongo) -> None:
    samples = Samples(Watch())
    samples.rate(mongo.SLOW.title, ONE, lambda: 100.0)

    said = mongo.text(samples, server)

    assert f"Measured on {server.version()}, a test server; no statement about MongoDB." in said
    assert server.version().startswith("SecantusDB")
    assert "| Holdfast, MongoDB | 100 |" in said


def test_an_address_where_nothing_answers_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_URL", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100")

    with ExitStack() as stack, pytest.raises(Unavailable, match="MongoDB: "):
        Run(chosen=frozenset(), size=QUICK, long=False, stack=stack).mongo()
