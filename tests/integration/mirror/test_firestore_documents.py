"""Documents through Google's own client: against the emulator, and against servers that are away,
slow or lying.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from google.cloud.firestore_v1 import AsyncClient, AsyncDocumentReference
from tests.kit.servers.firestore import VARIABLE, FirestoreEmulator, NoEmulator
from tests.kit.servers.postgres import free_port

from holdfast import Holdfast
from holdfast.errors import Fatal, MirrorUnavailable
from holdfast.mirror import firestore
from holdfast.mirror.address import parse_firestore_url
from holdfast.mirror.firestore import FirestoreDocuments
from holdfast.ports.mirror import KEEP, Truth
from holdfast.testing.eventually import eventually

RUNS = "tasks/soon/executions"
NOON = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture(scope="module")
def emulator() -> Iterator[FirestoreEmulator]:
    server = FirestoreEmulator()
    try:
        server.start()
    except NoEmulator as problem:
        pytest.skip(str(problem))
    with server:
        yield server


@pytest.fixture
def url(emulator: FirestoreEmulator, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database."""
    monkeypatch.setenv(VARIABLE, emulator.host)
    return f"firestore://demo-{secrets.token_hex(4)}"


@pytest.fixture
async def documents(url: str) -> AsyncIterator[FirestoreDocuments]:
    documents = FirestoreDocuments(parse_firestore_url(url))
    yield documents
    await documents.close()


@pytest.fixture
async def client(url: str) -> AsyncIterator[AsyncClient]:
    """How an application's own client sees it."""
    client = AsyncClient(project=parse_firestore_url(url).project)
    yield client
    await client._firestore_api.transport.close()


class Says:
    """A truth that a test can change."""

    def __init__(self, *answers: Truth) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self) -> Truth:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def read(document: AsyncDocumentReference) -> Any:
    return (await document.get()).to_dict()


async def test_a_document_is_made_changed_and_deleted(
    documents: FirestoreDocuments, client: AsyncClient
) -> None:
    fields = {"at": NOON, "n": None, "list": ["a"], "map": {"done": 1}, "f": 2.0, "ok": True}
    shown = client.document("tasks/daily")

    assert await documents.write("daily", Says(fields)) is True
    assert await read(shown) == fields
    assert await documents.write("daily", Says(fields | {"n": 7})) is True
    assert await read(shown) == fields | {"n": 7}
    assert await documents.write("daily", Says(None)) is True
    assert await read(shown) is None


async def test_what_is_right_already_is_not_written(
    documents: FirestoreDocuments, client: AsyncClient
) -> None:
    await documents.write("daily", Says({"at": NOON, "f": 2.0}))
    before = await client.document("tasks/daily").get()

    assert await documents.write("daily", Says({"at": NOON, "f": 2.0})) is False
    assert await documents.write("daily", Says(KEEP)) is False
    assert await documents.write("weekly", Says(None)) is False

    assert (await client.document("tasks/daily").get()).update_time == before.update_time


async def test_fields_that_others_added_stay(
    documents: FirestoreDocuments, client: AsyncClient
) -> None:
    await documents.write("daily", Says({"title": "a"}))
    await client.document("tasks/daily").update({"isPinned": True})

    await documents.write("daily", Says({"title": "b"}))

    assert await read(client.document("tasks/daily")) == {"title": "b", "isPinned": True}


async def test_it_may_stand_below_a_document_of_another_database(url: str) -> None:
    address = parse_firestore_url(f"{url}/second?prefix=tenants/acme")
    documents = FirestoreDocuments(address)
    client = AsyncClient(project=address.project, database="second")

    await documents.write("daily", Says({"title": "a"}))

    assert await read(client.document("tenants/acme/tasks/daily")) == {"title": "a"}
    await documents.close()
    await client._firestore_api.transport.close()


@pytest.mark.parametrize("before", [None, {"v": 0}])
async def test_who_is_late_does_not_put_older_over_newer(
    documents: FirestoreDocuments, client: AsyncClient, before: Truth
) -> None:
    await documents.write("daily", Says(before))
    truth: Truth = {"v": 1}
    has_read, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> Truth:
        answer = truth
        if not has_read.is_set():
            has_read.set()
            await may_go_on.wait()
        return answer

    late = asyncio.create_task(documents.write("daily", slow))
    await has_read.wait()
    truth = {"v": 2}
    await documents.write("daily", Says({"v": 2}))
    may_go_on.set()
    await late

    assert await read(client.document("tasks/daily")) == {"v": 2}


async def test_who_is_late_does_not_bring_back_what_was_deleted(
    documents: FirestoreDocuments, client: AsyncClient
) -> None:
    truth: Truth = {"v": 1}
    has_read, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> Truth:
        answer = truth
        if not has_read.is_set():
            has_read.set()
            await may_go_on.wait()
        return answer

    late = asyncio.create_task(documents.write("daily", slow))
    await has_read.wait()
    await documents.write("daily", Says({"v": 1}))
    truth = None
    await documents.write("daily", Says(None))
    may_go_on.set()
    await late

    assert await read(client.document("tasks/daily")) is None


async def test_ten_writers_end_with_the_truth(
    documents: FirestoreDocuments, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firestore, "ROUNDS", 50)
    value = 0

    async def truth() -> Truth:
        return {"v": value}

    async def change() -> None:
        nonlocal value
        value += 1
        await documents.write("daily", truth)

    await asyncio.gather(*(change() for _ in range(10)))

    assert await read(client.document("tasks/daily")) == {"v": 10}


async def test_all_executions_go_page_by_page(
    documents: FirestoreDocuments, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firestore, "PAGE", 3)
    for n in range(7):
        await documents.write(f"daily/executions/{n}", Says({"id": str(n)}))
    await documents.write("weekly/executions/0", Says({"id": "0"}))

    assert await documents.clear("daily/executions") == 7

    assert await documents.clear("daily/executions") == 0
    assert await read(client.document("tasks/weekly/executions/0")) == {"id": "0"}


async def test_a_document_that_firestore_never_takes_is_given_up_at_once(
    documents: FirestoreDocuments,
) -> None:
    with pytest.raises(Fatal, match="takes no such document"):
        await documents.write("daily", Says({"text": "x" * 1_100_000}))


async def test_schedules_and_runs_of_an_app_arrive(
    url: str, client: AsyncClient, tmp_path: Path
) -> None:
    app = Holdfast(url=f"sqlite:///{tmp_path}/tasks.db", firestore_url=url)

    @app.task(name="report")
    async def report(user: int) -> dict[str, Any]:
        return {"content": f"for {user}", "usage": {"units": 2, "tokens_in": 5, "tokens_out": 6}}

    app.migrate()
    async with app:
        book = (await app.verbs()).schedules
        rule = datetime.now(UTC) + timedelta(seconds=2)
        await book.create(report.call(7), rule, name="soon", owner="ann", title="Soon")
        async with at_work(app):
            [execution] = await eventually(lambda: _completed(client), within=30)
            used = (execution["content"], execution["queries"], execution["tokens"])
            schedule = await read(client.document("tasks/soon"))
            assert used == ("for 7", 2, 11)
            assert (schedule["status"], schedule["isOneTimeExecution"]) == ("completed", True)
            assert schedule["currentCloudTaskId"] == execution["id"]
            assert schedule["currentPayload"] == '{"user":7}'

            await book.delete("soon")
            await eventually(lambda: _is_empty(client.collection("tasks")), within=30)
            await eventually(lambda: _is_empty(client.collection(RUNS)), within=30)


@asynccontextmanager
async def at_work(app: Holdfast) -> AsyncIterator[None]:
    """A worker of this app."""
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def _completed(client: AsyncClient) -> list[Any]:
    shown = [document.to_dict() async for document in client.collection(RUNS).stream()]
    return [each for each in shown if each and each["status"] == "completed"]


async def _is_empty(found: Any) -> bool:
    return not await found.get()


# Who may read it.


async def test_by_the_rules_of_the_page_a_client_reads_its_own_and_nothing_else(
    url: str, emulator: FirestoreEmulator, documents: FirestoreDocuments
) -> None:
    page = Path(__file__).parents[3] / "docs/how-to/mirror-to-firestore.md"
    [rules] = re.findall(r'title="firestore.rules"\n(.*?)```', page.read_text(), re.DOTALL)
    project = parse_firestore_url(url).project
    paths = ("daily", "daily/executions/1")
    for path in paths:
        await documents.write(path, Says({"createdByUserId": "ann"}))
    below = f"v1/projects/{project}/databases/(default)/documents/tasks"

    async with httpx.AsyncClient(base_url=f"http://{emulator.host}") as web:
        file = {"name": "firestore.rules", "content": rules}
        place = f"emulator/v1/projects/{project}:securityRules"
        installed = await web.put(place, json={"rules": {"files": [file]}})
        assert installed.status_code == 200, installed.text

        async def status(user: str | None, path: str, method: str = "GET") -> int:
            headers = {} if user is None else {"Authorization": f"Bearer {_token(user, project)}"}
            body: Any = None if method == "GET" else {"fields": {}}
            answer = await web.request(method, f"{below}/{path}", headers=headers, json=body)
            return answer.status_code

        for path in paths:
            assert await status("ann", path) == 200
            assert await status("bob", path) == 403
            assert await status(None, path) == 403
            assert await status("ann", path, "PATCH") == 403


def _token(user: str, project: str) -> str:
    """As Firebase Authentication makes them, but unsigned: the emulator does not mind."""
    issuer = f"https://securetoken.google.com/{project}"
    said = {"sub": user, "user_id": user, "aud": project, "iss": issuer, "iat": 0}
    parts = ({"alg": "none", "typ": "JWT"}, said)
    texts = [urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*texts, ""))


# What is no Firestore.


@contextmanager
def listening(answer: bytes) -> Iterator[str]:
    """A server that answers these bytes to everything, or nothing at all."""
    over = Event()

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(0.05)
            while not over.is_set():
                with suppress(TimeoutError):
                    try:
                        if not self.request.recv(65_536):
                            return
                        self.request.sendall(answer)
                    except ConnectionError:
                        return

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,), name="no firestore")
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        over.set()
        server.shutdown()
        thread.join()


async def refused(host: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a write there comes to, quickly."""
    monkeypatch.setenv(VARIABLE, host)
    monkeypatch.setattr(firestore, "PATIENCE", 0.5)
    documents = FirestoreDocuments(parse_firestore_url("firestore://demo-nobody"))
    truth = Says({"title": "a"})
    try:
        async with asyncio.timeout(10):
            with pytest.raises(MirrorUnavailable) as refused:
                await documents.write("daily", truth)
            with pytest.raises(MirrorUnavailable):
                await documents.clear("daily/executions")
    finally:
        await documents.close()
    assert truth.asked == 0
    return str(refused.value)


async def test_a_firestore_that_is_away_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "it is tried again" in await refused(f"127.0.0.1:{free_port()}", monkeypatch)


async def test_a_firestore_that_never_answers_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with listening(b"") as host:
        assert "it is tried again" in await refused(host, monkeypatch)


async def test_a_firestore_that_talks_nonsense_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with listening(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as host:
        assert "it is tried again" in await refused(host, monkeypatch)
