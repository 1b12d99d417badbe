"""The server as `holdfast server` runs it: its door, its patience, and how it leaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import httpx
import pytest
from tests.integration.server.shop import make_app

from holdfast import ConfigError, Holdfast
from holdfast.server import connections
from holdfast.server.running import is_loopback, serve

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass
class Door:
    """A server that runs: where it is, and how to stop it."""

    app: Holdfast
    url: str
    stopping: asyncio.Event
    serving: asyncio.Task[None]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", int(self.url.rpartition(":")[2]))

    async def client(self, *scopes: str) -> httpx.AsyncClient:
        _, token = await self.app.client.tokens.create("test", scopes)
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=40)


@asynccontextmanager
async def running(url: str) -> AsyncIterator[Door]:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    app, stopping = make_app(url, open_queues="js"), asyncio.Event()
    serving = asyncio.create_task(serve(app, port=0, announce=ready.set_result, stopping=stopping))
    try:
        yield Door(app, await asyncio.wait_for(ready, 20), stopping, serving)
    finally:
        stopping.set()
        await asyncio.wait_for(serving, 20)


async def until_cut_off(reader: asyncio.StreamReader) -> bytes:
    """What comes before the server hangs up."""
    async with asyncio.timeout(10):
        with suppress(ConnectionResetError):
            return await reader.read()
    return b""


async def test_who_says_nothing_is_cut_off(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    async with running(sqlite_url) as door:
        reader, writer = await door.connect()

        assert await until_cut_off(reader) == b""
        writer.close()


async def test_who_drips_is_cut_off_on_a_connection_that_was_good_before_too(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    async with running(sqlite_url) as door:
        reader, writer = await door.connect()
        writer.write(HEALTH)
        first = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(first.lower().split(b"content-length: ")[1].split(b"\r")[0]))

        writer.write(b"GET /healthz HTTP/1.1\r\n")
        started = time.monotonic()
        with suppress(ConnectionResetError, BrokenPipeError):
            while not reader.at_eof() and time.monotonic() - started < 10:
                writer.write(b"x: y\r\n")
                await asyncio.sleep(0.05)

        assert first.startswith(b"HTTP/1.1 200")
        assert 0.2 < time.monotonic() - started < 5
        writer.close()


async def test_a_head_without_end_is_refused(sqlite_url: str) -> None:
    async with running(sqlite_url) as door:
        reader, writer = await door.connect()
        writer.write(b"GET /healthz HTTP/1.1\r\nx: ")
        with suppress(ConnectionResetError, BrokenPipeError):
            for _ in range(20):
                writer.write(b"y" * 10_000)
                await writer.drain()

        assert (await until_cut_off(reader))[:12] in {b"HTTP/1.1 431", b""}
        writer.close()


async def test_a_large_body_is_no_large_head(sqlite_url: str) -> None:
    async with running(sqlite_url) as door, await door.client("submit") as client:
        body = {"task_type": "shop.anything", "parameters": {"value": "x" * 200_000}}

        answer = await client.post("/api/v1/tasks", json=body)

        assert answer.status_code == 201


async def test_sixty_slow_sockets_do_not_stop_a_healthy_client(sqlite_url: str) -> None:
    async with running(sqlite_url) as door, await door.client("submit") as client:
        slow = [await door.connect() for _ in range(60)]
        for _, writer in slow:
            writer.write(b"POST /api/v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Le")

        started = time.monotonic()
        for n in range(20):
            answer = await client.post(
                "/api/v1/tasks", json={"task_type": "shop.add", "parameters": {"a": n}}
            )
            assert answer.status_code == 201

        assert time.monotonic() - started < 10
        for _, writer in slow:
            writer.close()


async def test_a_long_poll_ends_when_the_server_leaves(sqlite_url: str) -> None:
    async with running(sqlite_url) as door:
        client = await door.client("worker")
        registered = await client.post(
            "/internal/workers/register",
            json={"capabilities": [], "capacity": 1, "queues": ["js"], "version": "1"},
        )
        worker_id = registered.json()["worker_id"]
        poll = asyncio.create_task(
            client.post(f"/internal/workers/{worker_id}/poll", json={"available_capacity": 1})
        )
        await asyncio.sleep(0.3)
        assert not poll.done()

        started = time.monotonic()
        door.stopping.set()
        answer = await poll
        await door.serving
        await client.aclose()

        assert (answer.status_code, answer.json()["tasks"]) == (200, [])
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.1.5", False),
        ("::ffff:10.0.0.1", False),
    ],
)
def test_only_this_machine_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


async def test_an_address_of_another_machine_is_refused(sqlite_url: str) -> None:
    app = make_app(sqlite_url)
    async with app:
        await app.client.tokens.create("t", "read")

    with pytest.raises(ConfigError, match="cannot listen on 192"):
        await serve(app, host="192.0.2.7", port=0)
