"""P1 over HTTP: a server that is killed again and again loses no task that it acknowledged."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from holdfast import Holdfast, HttpClient, StoreUnavailable
from holdfast.http.values import RemoteEvent

SUBMITTERS = 8
KILLS = 2
BETWEEN_KILLS = 50
PATIENCE = 60.0

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


class Server:
    """`holdfast server` at a fixed port, for tasks of any type on the queue `js`."""

    def __init__(self, url: str, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._url = url
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "holdfast.cli.main", "server", "--open-queue", "js"]
        command += ["--port", str(self.port), "--url", self._url]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, "the server ended by itself"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)

    def kill(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/healthz", timeout=1).is_success
        except httpx.TransportError:
            return False


class Submitter(threading.Thread):
    """Submits key after key, each until it is acknowledged."""

    def __init__(self, server: Server, token: str, number: int, stop: threading.Event) -> None:
        super().__init__(name=f"submitter {number}")
        self.acknowledged: dict[str, str] = {}
        self.lost_answers = 0
        self._server = server
        self._token = token
        self._number = number
        self._stop_asked = stop

    def run(self) -> None:
        with HttpClient(self._server.address, token=self._token, timeout="5s") as client:
            while not self._stop_asked.is_set():
                key = f"{self._number}-{len(self.acknowledged)}"
                try:
                    sent = client.submit("resize", {"n": key}, queue="js", idempotency_key=key)
                except StoreUnavailable:
                    self.lost_answers += 1
                    time.sleep(0.1)
                else:
                    self.acknowledged[key] = sent.task_id


def _until_acknowledged(submitters: list[Submitter], number: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while sum(len(each.acknowledged) for each in submitters) < number:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tasks.db"


def test_every_acknowledged_key_is_exactly_one_task(url: str, tmp_path: Path) -> None:
    server, stop = Server(url, tmp_path), threading.Event()
    with Holdfast(url=url) as app:
        _, token = app.wait_for(app.client.tokens.create("test", "submit"))
    server.start()
    submitters = [Submitter(server, token, number, stop) for number in range(SUBMITTERS)]
    for submitter in submitters:
        submitter.start()

    for kill in range(KILLS + 1):
        _until_acknowledged(submitters, (kill + 1) * BETWEEN_KILLS)
        if kill < KILLS:
            server.kill()
            server.start()
    stop.set()
    for submitter in submitters:
        submitter.join(PATIENCE)
    server.kill()

    acknowledged = {k: v for submitter in submitters for k, v in submitter.acknowledged.items()}
    stored: dict[str | None, list[str]] = {}
    with Holdfast(url=url) as app:
        after = None
        while True:
            page = app.list(limit=1000, after=after)
            for task in page.tasks:
                stored.setdefault(task.idempotency_key, []).append(task.id)
            if (after := page.next) is None:
                break
    wrong = {
        key: stored.get(key) for key, sent in acknowledged.items() if stored.get(key) != [sent]
    }
    assert wrong == {}
    assert all(len(ids) == 1 for ids in stored.values())


def test_a_listener_goes_on_with_the_next_server_and_hears_nothing_twice(
    url: str, tmp_path: Path
) -> None:
    server, heard = Server(url, tmp_path), list[RemoteEvent]()
    app = Holdfast(url=url)

    @app.task(name="f")
    def f() -> int:
        return 7

    with app:
        _, token = app.wait_for(app.client.tokens.create("test", "read"))
        task_id = f.options(delay="1h").submit().id
        server.start()

        def listen() -> None:
            with HttpClient(server.address, token=token) as client:
                while not heard or heard[-1].event != "end":
                    # On a busy machine a server takes longer to start than a client waits.
                    with suppress(StoreUnavailable):
                        heard.extend(client.events(task_id, after=heard[-1].id if heard else None))

        listening = threading.Thread(target=listen)
        listening.start()
        time.sleep(1.0)  # it listens by then, or tries to
        server.kill()
        server.start()
        app.cancel(task_id)
        listening.join(PATIENCE)
        server.kill()

    assert not listening.is_alive()
    kinds = [event.data.get("kind", event.event) for event in heard]
    assert kinds.count("submitted") == 1
    assert kinds[-2:] == ["state", "end"]
    assert heard[-1].data == {"status": "cancelled"}
