"""The Redis that tests get."""

from __future__ import annotations

import time

import pytest

from holdfast.testing.servers.account import ServerError
from holdfast.testing.servers.redis import RedisServer


def test_a_killed_server_comes_back_empty_at_the_same_address(own_redis: RedisServer) -> None:
    own_redis.command("SET", "a", "1")
    before = own_redis.port

    own_redis.kill9()
    assert not own_redis.is_running
    own_redis.start()

    assert (own_redis.port, own_redis.keys()) == (before, [])


def test_a_paused_server_answers_when_it_is_resumed(own_redis: RedisServer) -> None:
    own_redis.pause()
    began = time.monotonic()

    with pytest.raises(TimeoutError):
        own_redis.command("PING", patience=0.2)
    own_redis.resume()

    assert own_redis.command("PING") == "PONG"
    assert time.monotonic() - began >= 0.2


def test_answers_of_every_kind_are_understood(own_redis: RedisServer) -> None:
    own_redis.command("RPUSH", "list", "a", "b")

    assert own_redis.command("LRANGE", "list", 0, -1) == ["a", "b"]
    assert own_redis.command("LLEN", "list") == 2
    assert own_redis.command("GET", "nothing") is None
    with pytest.raises(ServerError, match="WRONGTYPE"):
        own_redis.command("GET", "list")


def test_a_session_shares_one(redis_server: RedisServer, redis_url: str) -> None:
    assert redis_server.is_running
    assert redis_url
