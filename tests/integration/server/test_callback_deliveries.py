"""Callbacks of a real courier to a real receiver."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import trustme
from tests.integration.server.shop import make_app

from holdfast import Holdfast
from holdfast.server.callbacks import courier as couriers
from holdfast.server.callbacks import posting
from holdfast.server.callbacks.courier import Courier
from holdfast.server.callbacks.signing import is_signed

SECRET = "s3cret of some length"


class Receiver(HTTPServer):
    """A web server that answers with the statuses it was given, 200 after that."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.url = f"http://127.0.0.1:{self.server_port}/hook?a=b"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers.items()), body))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://169.254.169.254/")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Holdfast]:
    async with make_app(sqlite_url, callback_hosts="127.0.0.1", callback_secret=SECRET) as app:
        yield app


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(couriers, "FIRST_PAUSE", 0.01)


async def ended(app: Holdfast, name: str, url: str, **parameters: Any) -> str:
    handle = await app.submit_by_name_async(name, parameters, callback=url)
    await app.run_worker(burst=True)
    return handle.id


async def deliver(app: Holdfast, *, until: int, receiver: Receiver) -> None:
    courier = Courier(app.client)
    async with asyncio.timeout(20):
        while len(receiver.got) < until:
            await courier.tick()
            await asyncio.sleep(0.01)


async def events_of(app: Holdfast, task_id: str) -> list[tuple[str, str | None]]:
    history = await app.history_async(task_id)
    return [(e.kind, e.detail) for e in history.events if e.kind.startswith("callback")]


async def test_an_ended_task_is_told_and_signed(app: Holdfast, receiver: Receiver) -> None:
    task_id = await ended(app, "shop.add", receiver.url, a=1)

    await deliver(app, until=1, receiver=receiver)

    path, headers, body = receiver.got[0]
    assert path == "/hook?a=b"
    assert headers["Host"] == f"127.0.0.1:{receiver.server_port}"
    assert is_signed(SECRET, body, headers["Holdfast-Signature"], now=time.time())
    told = json.loads(body)
    assert (told["task_id"], told["status"], told["attempt"]) == (task_id, "completed", 1)
    task = await app.get_async(task_id)
    assert (headers["traceparent"], told["trace_id"]) == (task.traceparent, task.trace_id)
    assert "result" not in told
    assert await events_of(app, task_id) == [("callback_delivered", None)]
    assert not await app.client.due_callbacks(limit=9, lease=1)


async def test_a_receiver_that_fails_is_tried_again(app: Holdfast, receiver: Receiver) -> None:
    receiver.statuses = [500, 503, 302]
    task_id = await ended(app, "shop.fail", receiver.url)

    await deliver(app, until=4, receiver=receiver)

    assert len(receiver.got) == 4
    assert len({headers["Holdfast-Delivery"] for _, headers, _ in receiver.got}) == 1
    assert json.loads(receiver.got[0][2])["error"]["type"] == "RuntimeError"
    assert await events_of(app, task_id) == [("callback_delivered", None)]


async def test_a_receiver_that_is_gone_is_not_asked_again(
    app: Holdfast, receiver: Receiver
) -> None:
    receiver.statuses = [410]
    task_id = await ended(app, "shop.add", receiver.url, a=1)

    await deliver(app, until=1, receiver=receiver)
    await Courier(app.client).tick()

    assert await events_of(app, task_id) == [
        ("callback_failed", "the receiver answered with status 410")
    ]
    assert len(receiver.got) == 1


async def test_after_the_last_try_the_history_says_why(
    app: Holdfast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(couriers, "MOST_TRIES", 3)
    receiver.statuses = [500] * 9
    task_id = await ended(app, "shop.add", receiver.url, a=1)

    await deliver(app, until=3, receiver=receiver)
    await Courier(app.client).tick()

    assert len(receiver.got) == 3
    assert await events_of(app, task_id) == [
        ("callback_failed", "the receiver answered with status 500")
    ]


async def test_a_cancelled_task_is_told_too(app: Holdfast, receiver: Receiver) -> None:
    handle = await app.submit_by_name_async("shop.add", {"a": 1}, callback=receiver.url)
    await handle.cancel_async()

    await deliver(app, until=1, receiver=receiver)

    assert json.loads(receiver.got[0][2])["status"] == "cancelled"


def resolve(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name lead to these addresses."""

    async def found(host: str, port: int, **_: Any) -> Any:
        return [(2, 1, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)


async def test_a_name_that_leads_into_our_own_network_is_not_called(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(monkeypatch, "8.8.8.8", "127.0.0.1")

    with pytest.raises(posting.NotCalled, match=r"leads to 127\.0\.0\.1"):
        await posting.post(f"http://rebind.example:{receiver.server_port}/", b"{}", {})

    assert receiver.got == []


async def test_the_address_that_was_looked_up_is_the_one_that_is_called(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(monkeypatch, "127.0.0.1")
    url = f"http://nowhere.example:{receiver.server_port}/"

    status = await posting.post(url, b"{}", {}, allowed_hosts={"nowhere.example"})

    assert status == 200
    assert receiver.got[0][1]["Host"] == f"nowhere.example:{receiver.server_port}"


async def test_tls_is_for_the_name_though_the_address_was_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("secure.example").configure_cert(context)
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        resolve(monkeypatch, "127.0.0.1")
        hosts = {"secure.example", "other.example"}

        with pytest.raises(posting.CallFailed, match="certificate"):
            await posting.post(f"https://secure.example:{port}/", b"", {}, allowed_hosts=hosts)
        monkeypatch.setattr(ssl, "create_default_context", lambda: trusting)
        status = await posting.post(f"https://secure.example:{port}/", b"", {}, allowed_hosts=hosts)
        with pytest.raises(posting.CallFailed, match="certificate"):
            await posting.post(f"https://other.example:{port}/", b"", {}, allowed_hosts=hosts)

    assert status == 204
    assert names == ["secure.example", "secure.example", "other.example"]


async def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TIME_LIMIT", 0.2)

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nx: ")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(posting.CallFailed, match=r"within 0\.2 s"):
            await posting.post(f"http://127.0.0.1:{port}/", b"", {}, allowed_hosts={"127.0.0.1"})


async def test_an_answer_with_an_endless_head_is_given_up() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 10_000)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(posting.CallFailed, match="LimitOverrun"):
            await posting.post(f"http://127.0.0.1:{port}/", b"", {}, allowed_hosts={"127.0.0.1"})
