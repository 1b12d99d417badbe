"""Callbacks of a real server's worker to a real receiver."""

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
from tests.integration.server.live import serve
from tests.integration.server.shop import make_app

from holdfast import Holdfast
from holdfast.builtin import callbacks
from holdfast.builtin.worker import built_in_worker, built_ins
from holdfast.core import callback as notices
from holdfast.core.callback import notice_id
from holdfast.core.retry import exponential
from holdfast.core.task import State, TaskId
from holdfast.testing.eventually import eventually
from holdfast.webhooks import posting
from holdfast.webhooks.signing import is_signed

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
    async with make_app(
        sqlite_url, callback_hosts=("127.0.0.1", "127.0.0.2"), callback_secret=SECRET
    ) as app:
        yield app


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "RETRY", exponential(0.01, 1))


@pytest.fixture
async def delivered(app: Holdfast) -> AsyncIterator[None]:
    """While inside, notices are delivered, as a server does it."""
    worker = await built_in_worker(app, await built_ins(app, is_server=True))
    running = asyncio.ensure_future(worker.run())
    yield
    worker.stop()
    worker.stop()  # do not wait for those that never answer
    await running


async def ended(app: Holdfast, name: str, url: str, **parameters: Any) -> str:
    handle = await app.submit_by_name_async(name, parameters, callback=url)
    await app.run_worker(burst=True)
    return handle.id


async def told(receiver: Receiver, number: int) -> None:
    await eventually(lambda: len(receiver.got) >= number)


async def settled(app: Holdfast, task_id: str, number: int = 1) -> list[tuple[str, str | None]]:
    """What the task's history says of so many callbacks, once it does."""
    found: list[tuple[str, str | None]] = []

    async def look() -> bool:
        history = await app.history_async(task_id)
        found[:] = [(e.kind, e.detail) for e in history.events if e.kind.startswith("callback")]
        return len(found) >= number

    await eventually(look)
    return found


@pytest.mark.usefixtures("delivered")
async def test_an_ended_task_is_told_and_signed(app: Holdfast, receiver: Receiver) -> None:
    task_id = await ended(app, "shop.add", receiver.url, a=1)

    await told(receiver, 1)

    path, headers, body = receiver.got[0]
    assert path == "/hook?a=b"
    assert headers["Host"] == f"127.0.0.1:{receiver.server_port}"
    assert is_signed(SECRET, body, headers["Holdfast-Signature"], now=time.time())
    said = json.loads(body)
    assert (said["task_id"], said["status"], said["attempt"]) == (task_id, "completed", 1)
    task = await app.get_async(task_id)
    assert (headers["traceparent"], said["trace_id"]) == (task.traceparent, task.trace_id)
    assert "result" not in said
    assert await settled(app, task_id) == [("callback_delivered", None)]


@pytest.mark.usefixtures("delivered")
async def test_a_receiver_that_fails_is_tried_again(app: Holdfast, receiver: Receiver) -> None:
    receiver.statuses = [500, 503, 302]
    task_id = await ended(app, "shop.fail", receiver.url)

    await told(receiver, 4)

    assert len({headers["Holdfast-Delivery"] for _, headers, _ in receiver.got}) == 1
    assert json.loads(receiver.got[0][2])["error"]["type"] == "RuntimeError"
    assert await settled(app, task_id) == [("callback_delivered", None)]


@pytest.mark.usefixtures("delivered")
async def test_a_receiver_that_is_gone_is_not_asked_again(
    app: Holdfast, receiver: Receiver
) -> None:
    receiver.statuses = [410]
    task_id = await ended(app, "shop.add", receiver.url, a=1)

    assert await settled(app, task_id) == [
        ("callback_failed", "the receiver answered with status 410")
    ]
    assert len(receiver.got) == 1


@pytest.mark.usefixtures("delivered")
async def test_a_notice_that_is_given_up_is_a_dead_letter_that_can_be_replayed(
    app: Holdfast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "RETRIES", 2)
    receiver.statuses = [500] * 3
    task_id = await ended(app, "shop.add", receiver.url, a=1)

    assert await settled(app, task_id) == [
        ("callback_failed", "the receiver answered with status 500")
    ]
    notice = await app.get_async(notice_id(TaskId(task_id)))
    assert (notice.state, notice.parent_id) == (State.DEAD_LETTER, task_id)
    await app.client.replay(name=notice.name)
    await told(receiver, 4)
    assert await settled(app, task_id) == [("callback_delivered", None)]


@pytest.mark.usefixtures("delivered")
async def test_a_cancelled_task_is_told_too(app: Holdfast, receiver: Receiver) -> None:
    handle = await app.submit_by_name_async("shop.add", {"a": 1}, callback=receiver.url)
    await handle.cancel_async()

    await told(receiver, 1)

    assert json.loads(receiver.got[0][2])["status"] == "cancelled"


@pytest.mark.usefixtures("delivered")
async def test_a_task_that_is_started_again_is_told_again(
    app: Holdfast, receiver: Receiver
) -> None:
    task_id = await ended(app, "shop.add", receiver.url, a=1)
    await settled(app, task_id)

    await app.client.retry(task_id)
    await app.run_worker(burst=True)
    await told(receiver, 2)

    first, second = [json.loads(body) for _, _, body in receiver.got]
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert await settled(app, task_id, 2) == [("callback_delivered", None)] * 2


@pytest.mark.usefixtures("delivered")
async def test_a_repeated_submit_is_told_of_once(app: Holdfast, receiver: Receiver) -> None:
    first, again = [
        await app.submit_by_name_async(
            "shop.add", {"a": 1}, callback=receiver.url, idempotency_key="order 7"
        )
        for _ in range(2)
    ]
    await app.run_worker(burst=True)
    await told(receiver, 1)
    await eventually(lambda: _is_over(app, State.COMPLETED))

    assert first.id == again.id
    assert len(receiver.got) == 1


async def _is_over(app: Holdfast, state: State) -> bool:
    """Whether all tasks have ended so."""
    return await app.client.count() == await app.client.count(state=state)


async def test_while_the_secret_is_changed_the_old_one_still_opens_it(
    sqlite_url: str, receiver: Receiver
) -> None:
    old, new = "the old secret of last year", "the new secret of this year"
    async with make_app(
        sqlite_url,
        callback_hosts=f"127.0.0.1:{receiver.server_port}",
        callback_secret=new,
        callback_previous_secret=old,
    ) as app:
        worker = await built_in_worker(app, await built_ins(app, is_server=True))
        running = asyncio.ensure_future(worker.run())
        await ended(app, "shop.add", receiver.url, a=1)
        await told(receiver, 1)
        worker.stop()
        await running

    _, headers, body = receiver.got[0]
    given = headers["Holdfast-Signature"]
    checked = [is_signed(secret, body, given, now=time.time()) for secret in (old, new, "other")]
    assert checked == [True, True, False]


@pytest.mark.usefixtures("delivered")
async def test_callbacks_of_a_token_s_tasks_are_signed_with_its_own_secret_too(
    app: Holdfast, sqlite_url: str, receiver: Receiver
) -> None:
    there = make_app(sqlite_url, callback_hosts="127.0.0.1", callback_secret=SECRET)
    with serve(there) as server:
        made, other = [
            server.admin.post("/api/v1/tokens", json={"name": name, "scopes": ["submit"]}).json()
            for name in ("ci", "other")
        ]
        body = {"task_type": "shop.add", "parameters": {"a": 1}, "callback_url": receiver.url}
        head = {"Authorization": f"Bearer {made['token']}"}
        assert server.client().post("/api/v1/tasks", json=body, headers=head).is_success
        await app.run_worker(burst=True)
        await told(receiver, 1)

    _, headers, sent = receiver.got[0]
    given, now = headers["Holdfast-Signature"], time.time()
    secrets = [SECRET, made["callback_secret"], other["callback_secret"]]
    assert [is_signed(secret, sent, given, now=now) for secret in secrets] == [True, True, False]


@pytest.mark.usefixtures("delivered")
async def test_receivers_that_never_answer_delay_nobody_else(
    app: Holdfast, receiver: Receiver
) -> None:
    """Forty-eight of them once delayed another by half a minute."""
    calls = list[asyncio.StreamWriter]()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(writer)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(never_answer, "127.0.0.2", 0) as tarpit:
        port = tarpit.sockets[0].getsockname()[1]
        for _ in range(48):
            await app.submit_by_name_async(
                "shop.add", {"a": 1}, callback=f"http://127.0.0.2:{port}/"
            )
        await app.run_worker(burst=True)
        await eventually(lambda: calls)
        began = time.monotonic()

        await ended(app, "shop.add", receiver.url, a=1)
        await told(receiver, 1)

        assert time.monotonic() - began < posting.TIME_LIMIT
        assert len(calls) <= notices.PER_HOST


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
        await posting.post("http://rebind.example/", b"{}", {})

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
