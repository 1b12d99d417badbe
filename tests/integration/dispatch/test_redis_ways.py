"""Other ways to a Redis: TLS, a unix socket, from a forked process."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from tests.integration.dispatch.redis_kit import BACK, Dispatch, call, dispatchers, fast_asleep
from tests.kit.servers.redis import RedisServer
from tests.kit.servers.slow import SlowWay

from holdfast.dispatch.redis.dispatcher import RedisDispatcher


@pytest.fixture
async def dispatch() -> AsyncIterator[Dispatch]:
    async with dispatchers() as make:
        yield make


async def test_with_tls_calls_go_both_ways(
    own_redis: RedisServer, dispatch: Dispatch, tmp_path: Path
) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with SlowWay(own_redis.port, tls=context) as way:
        url = f"rediss://localhost:{way.port}?ssl_ca_certs={tmp_path / 'ca.pem'}"
        here, there = dispatch(url), dispatch(url)

        assert await here.mode() == "redis"
        await call(here, there, own_redis)


async def test_a_certificate_of_strangers_is_refused(
    own_redis: RedisServer, dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    with SlowWay(own_redis.port, tls=context) as way:
        assert await dispatch(f"rediss://localhost:{way.port}").mode() == "poll"

    assert "certificate verify failed" in caplog.text


async def test_through_a_unix_socket(dispatch: Dispatch) -> None:
    with RedisServer(None, "--unixsocket", "redis.sock", "--unixsocketperm", "777") as server:
        url = f"unix://{server.directory / 'redis.sock'}"
        here, there = dispatch(url), dispatch(url)

        assert await here.mode() == "redis"
        await call(here, there, server)


async def test_a_forked_process_has_a_connection_of_its_own(
    own_redis: RedisServer, dispatch: Dispatch
) -> None:
    here = dispatch(own_redis.url)
    assert await here.mode() == "redis"
    async with dispatch(own_redis.url).listen(["mail"]) as listener:
        sleeper = await fast_asleep(listener, own_redis)

        child = os.fork()
        if child == 0:
            here.wake({"mail": 1})
            end_of_child(here)
        ended = await asyncio.to_thread(os.waitpid, child, 0)

        assert os.waitstatus_to_exitcode(ended[1]) == 0
        assert await asyncio.wait_for(sleeper, BACK)
    assert await here.mode() == "redis"


def end_of_child(dispatcher: RedisDispatcher) -> None:
    code = 1
    try:
        asyncio._set_running_loop(None)
        asyncio.run(dispatcher.close())
        code = 0
    finally:
        os._exit(code)
