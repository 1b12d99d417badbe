"""`holdfast server` and `holdfast up` as real processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
from tests.integration.cli.conftest import Shell

from holdfast import HttpClient
from holdfast.core.task import State
from holdfast.webhooks.signing import is_signed

PATIENCE = 60.0


class Running:
    """A command that goes on until it is stopped; what it says is kept line by line."""

    def __init__(self, shell: Shell, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            shell.command(*arguments),
            env=shell.environment(PYTHONUNBUFFERED="1", **environment),
            cwd=shell.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    @property
    def said(self) -> str:
        return "\n".join(self.lines)

    def line_with(self, text: str) -> str:
        """The first line that has this text, as soon as it is there."""

        def found() -> str | None:
            return next((line for line in list(self.lines) if text in line), None)

        return str(until(found, self))

    def url(self) -> str:
        return self.line_with("Holdfast listens on ").split()[3]

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def until(probe: Callable[[], Any], running: Running | None = None) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := probe()):
        assert time.monotonic() < deadline, running.said if running else "in vain"
        time.sleep(0.02)
    return found


@contextmanager
def running(shell: Shell, *arguments: str, **environment: str) -> Iterator[Running]:
    command = Running(shell, *arguments, **environment)
    try:
        yield command
    finally:
        command.end(signal.SIGKILL)


def admin(shell: Shell) -> str:
    return str(shell.ok("token", "create", "--scope", "admin")["token"])


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    return [
        int(child)
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]


def test_a_server_without_an_app_takes_tasks_for_open_queues_and_stops_quietly(
    fresh: Shell,
) -> None:
    token = admin(fresh)
    with running(fresh, "server", "--port", "0", "--open-queue", "js") as server:
        with HttpClient(server.url(), token=token) as client:
            sent = client.submit("resize", {"w": 1}, queue="js")
            found = client.get(sent.task_id)
        code = server.end()

    assert found.name == "resize"
    assert code == 0
    assert "Traceback" not in server.said


def test_a_server_answers_until_it_is_told_to_stop_although_somebody_listens(fresh: Shell) -> None:
    token = admin(fresh)
    with running(fresh, "server", "shop:app", "--port", "0") as server:
        url, headers = server.url(), {"Authorization": f"Bearer {token}"}
        with HttpClient(url, token=token) as client:
            task_id = client.submit("shop.send_mail", {"to": "ann"}).task_id
        seen = fresh.ok("task", "get", task_id)
        with (
            httpx.Client(base_url=url, headers=headers) as web,
            web.stream("GET", f"/api/v1/tasks/{task_id}/events", timeout=PATIENCE) as stream,
        ):
            lines = stream.iter_lines()
            next(lines)
            started = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            rest = list(lines)
        code = server.end()

    assert (code, time.monotonic() - started < 8) == (0, True)
    assert "event: end" not in rest
    assert seen["status"] == "queued"


def test_a_server_refuses_an_open_address_while_there_is_no_token(fresh: Shell) -> None:
    refused = fresh.run("server", "--host", "0.0.0.0", "--port", "0", "--json")

    assert refused.code == 2
    assert refused.error["code"] == "config_error"
    assert "holdfast token create --scope admin" in refused.error["message"]


def test_a_server_listens_on_an_open_address_once_there_is_a_token_and_says_where_as_json(
    fresh: Shell,
) -> None:
    admin(fresh)

    with running(fresh, "server", "--host", "0.0.0.0", "--port", "0", "--json") as server:
        said = json.loads(server.line_with('"url"'))

    assert said["url"].startswith("http://0.0.0.0:")
    assert said["store"].startswith("sqlite:///")


def test_a_server_refuses_a_store_that_nobody_could_share(fresh: Shell) -> None:
    refused = fresh.run("server", "--url", "memory://", "--port", "0")

    assert refused.code == 2
    assert "sqlite:///" in refused.err


def test_who_is_refused_does_not_fill_the_log(fresh: Shell) -> None:
    with running(fresh, "server", "--port", "0") as server:
        url = server.url()
        for _ in range(20):
            assert httpx.get(f"{url}/api/v1/tasks").status_code == 401
        server.end()

    assert "401" not in server.said.replace(url, "")  # a port may be 40157
    assert server.said.count("\n") <= 3


def test_a_port_that_is_taken_is_said_in_one_sentence(fresh: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = fresh.run("server", "--port", str(taken.getsockname()[1]))

    assert refused.code == 2
    assert "choose another port with --port" in refused.err
    assert "Traceback" not in refused.err


def test_a_server_rescues_the_tasks_of_a_dead_worker(fresh: Shell) -> None:
    """Nobody else is there to do it."""
    times = {"HOLDFAST_LEASE": "2s", "HOLDFAST_HEARTBEAT": "0.3s", "HOLDFAST_SWEEP": "0.3s"}
    task_id = fresh.submit("steps", {"seconds": 600})
    worker = fresh.start("worker", "shop:app", "-q", "steps", stdout=subprocess.DEVNULL, **times)
    until(lambda: fresh.ok("task", "get", task_id)["status"] == "running")
    for pid in children(worker.pid):
        os.kill(pid, signal.SIGSTOP)  # awake, it may see the line close, and hand its task back
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait(PATIENCE)

    with running(fresh, "server", "shop:app", "--port", "0", **times) as server:
        until(lambda: fresh.ok("task", "get", task_id)["status"] != "running", server)

    history = fresh.ok("task", "history", task_id)
    assert history["attempts"][0]["ended"] == "worker_lost"


def test_up_runs_tasks_that_come_over_http_and_one_signal_stops_all(fresh: Shell) -> None:
    token = admin(fresh)
    with running(fresh, "up", "shop:app", "--port", "0") as up:
        with HttpClient(up.url(), token=token) as client:
            sent = client.submit("shop.send_mail", {"to": "ann"})
            result = client.result(sent.task_id, timeout="20s")
        parts = children(up.process.pid)
        code = up.end(signal.SIGINT)

    assert result == "1 to ann"
    assert len(parts) == 2
    assert code == 0, up.said
    assert not any(Path(f"/proc/{pid}").exists() for pid in parts)
    assert "Traceback" not in up.said


def test_up_knows_what_is_included_in_all_its_parts(fresh: Shell) -> None:
    (fresh.folder / "queue_of_up.py").write_text(
        "from holdfast import Holdfast\napp = Holdfast()\n"
    )
    (fresh.folder / "tasks_of_up.py").write_text(
        "from queue_of_up import app\n@app.task\ndef double(n: int) -> int: return 2 * n\n"
    )
    token = admin(fresh)
    with (
        running(fresh, "up", "queue_of_up", "-I", "tasks_of_up", "--port", "0") as up,
        HttpClient(up.url(), token=token) as client,
    ):
        sent = client.submit("tasks_of_up.double", {"n": 4})

        assert client.result(sent.task_id, timeout=PATIENCE) == 8


def test_up_needs_no_task_where_there_are_open_queues(fresh: Shell) -> None:
    (fresh.folder / "empty.py").write_text("from holdfast import Holdfast\napp = Holdfast()\n")
    with running(fresh, "up", "empty:app", "--port", "0", "--open-queue", "js") as up:
        up.line_with("worker.started")
        up.url()
        code = up.end()

    assert code == 0, up.said


class Hook(BaseHTTPRequestHandler):
    """Keeps what it is told in `Hook.got`."""

    got: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.headers["Holdfast-Signature"], body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


def test_up_calls_back_when_a_task_has_ended(fresh: Shell) -> None:
    token, secret = admin(fresh), "a secret of some length"
    settings = {"HOLDFAST_CALLBACK_SECRET": secret, "HOLDFAST_CALLBACK_HOSTS": "127.0.0.1"}
    with (
        HTTPServer(("127.0.0.1", 0), Hook) as hook,
        running(fresh, "up", "shop:app", "--port", "0", **settings) as up,
        HttpClient(up.url(), token=token) as client,
    ):
        threading.Thread(target=hook.serve_forever, args=(0.05,), daemon=True).start()
        url = f"http://127.0.0.1:{hook.server_port}/done"
        sent = client.submit("shop.send_mail", {"to": "ann"}, callback=url)
        signature, body = until(lambda: Hook.got, up)[0]
        hook.shutdown()

    assert json.loads(body)["task_id"] == sent.task_id
    assert is_signed(secret, body, signature, now=time.time())


def test_up_starts_a_part_again_that_was_killed(fresh: Shell) -> None:
    token = admin(fresh)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with running(fresh, "up", "shop:app", "--port", port) as up:
        url = up.url()
        for pid in children(up.process.pid):
            os.kill(pid, signal.SIGKILL)
        until(lambda: up.said.count("part.died") == 2, up)
        until(lambda: up.said.count("Holdfast listens on ") == 2, up)
        with HttpClient(url, token=token) as client:
            sent = client.submit("shop.send_mail", {"to": "ann"}, idempotency_key="k")
            assert client.result(sent.task_id, timeout="20s") == "1 to ann"
        code = up.end()

    assert code == 0, up.said


def test_up_does_not_bring_back_a_worker_that_was_asked_to_drain(fresh: Shell) -> None:
    token = admin(fresh)
    with running(fresh, "up", "shop:app", "--port", "0") as up:
        with HttpClient(up.url(), token=token) as client:
            worker = until(client.workers, up)[0]
            client.drain(worker.id)
            up.line_with("part.left part=worker")
            assert [each.status for each in client.workers()] == ["stopped"]
        code = up.end()

    assert code == 0, up.said


def test_up_leaves_nothing_behind_when_it_is_killed(fresh: Shell) -> None:
    with running(fresh, "up", "shop:app", "--port", "0") as up:
        up.url()
        until(lambda: "worker.started" in up.said, up)
        family = [up.process.pid, *children(up.process.pid)]
        family += [pid for parent in family[1:] for pid in children(parent)]
        up.end(signal.SIGKILL)

    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family))


def test_up_ends_with_the_reason_if_a_part_cannot_work(fresh: Shell) -> None:
    with running(fresh, "up", "shop:ap", "--port", "0") as no_app:
        code = no_app.process.wait(PATIENCE)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        running(fresh, "up", "shop:app", "--port", str(taken.getsockname()[1])) as no_port,
    ):
        port_code = no_port.process.wait(PATIENCE)

    assert (code, port_code) == (2, 2)
    assert "Did you mean 'shop:app'?" in no_app.said
    assert "choose another port" in no_port.said
    assert "part.given_up part=server" in no_port.said


def test_the_demo_flows_and_leaves_nothing_behind(fresh: Shell) -> None:
    temporary = fresh.folder / "tmp"
    temporary.mkdir()
    with running(fresh, "up", "--demo", "--port", "0", TMPDIR=str(temporary)) as up:
        token = up.line_with("token ").split()[1]
        login = up.line_with("/login#token=")
        page = httpx.get(f"{up.url()}/login")
        with HttpClient(up.url(), token=token) as client:
            until(lambda: client.stats().states[State.COMPLETED] >= 3, up)
        code = up.end(signal.SIGINT)

    assert code == 0, up.said
    assert login.endswith(f"/login#token={token}")
    assert "Log in" in page.text
    assert "Traceback" not in up.said
    assert list(temporary.iterdir()) == []


def test_up_wants_an_app_or_the_demo(fresh: Shell) -> None:
    neither, both = fresh.run("up"), fresh.run("up", "shop:app", "--demo")

    assert (neither.code, both.code) == (2, 2)
    assert "module:app, or --demo" in neither.err
