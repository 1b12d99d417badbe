"""The two workers over HTTP that ship as examples, against the real server, which is killed too."""

from __future__ import annotations

import runpy
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.examples.service import COMMANDS, EXAMPLES, SOON, Program, Service, until

from holdfast.core.fleet import WorkerStatus

both = pytest.mark.parametrize("kind", sorted(COMMANDS))


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from _serving(f"sqlite:///{tmp_path_factory.mktemp('service')}/tasks.db")


@pytest.fixture
def service(_shared: Service) -> Iterator[Service]:
    """For tests that leave the server running."""
    yield _shared
    _shared.clear()


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Service]:
    """A server to kill."""
    yield from _serving(f"sqlite:///{tmp_path}/tasks.db")


@pytest.fixture
def on_postgres(fresh_database: str) -> Iterator[Service]:
    yield from _serving(fresh_database)


def _serving(url: str) -> Iterator[Service]:
    service = Service(url)
    service.start()
    yield service
    service.close()


@both
def test_a_worker_runs_tasks_and_says_how_they_ended(service: Service, kind: str) -> None:
    worker = service.worker(kind)
    good = service.submit("words", {"text": "to be or not"})
    bad = service.submit("fail", {"message": "no use", "retriable": False})
    flaky = service.submit("fail", {}, max_retries=1)
    unknown = service.submit("no_such_task", {})

    task = service.reaches(good, "completed")
    assert task["result"] == {"words": 4, "attempt": 1, "pid": worker.process.pid}
    assert service.reaches(bad, "failed")["error"]["message"] == "no use"
    assert service.reaches(flaky, "dead_letter")["attempt"] == 2
    assert service.reaches(unknown, "failed")["error"]["retriable"] is False


@both
def test_a_worker_carries_on_when_the_server_was_killed_while_it_waited_and_while_it_worked(
    own_service: Service, kind: str
) -> None:
    service = own_service
    worker = service.worker(kind)
    first = service.submit("words", {"text": "one"})
    service.reaches(first, "completed")
    time.sleep(0.2)  # it polls again

    service.end(signal.SIGKILL)
    worker.hears("waiting")
    service.start()

    second = service.submit("words", {"text": "one two"})
    assert service.reaches(second, "completed")["result"]["words"] == 2

    third = service.submit("wait", {"seconds": 1.0})
    worker.hears("started", 3)
    waits = worker.count("waiting")

    service.end(signal.SIGKILL)
    worker.hears("waiting", waits + 1)
    service.start()

    task = service.reaches(third, "completed")
    assert (task["attempt"], task["result"]["waited"]) == (1, 1.0)
    assert worker.count("registered") == 1


@both
def test_the_tasks_of_a_killed_worker_run_elsewhere(service: Service, kind: str) -> None:
    doomed = service.worker(kind)
    task_id = service.submit("wait", {"seconds": 2.0})
    doomed.hears("started")
    other = service.worker(kind)

    doomed.end(signal.SIGKILL)

    task = service.reaches(task_id, "completed")
    assert (task["attempt"], task["result"]["pid"]) == (2, other.process.pid)
    assert service.info(doomed).status is WorkerStatus.DEAD


@both
def test_a_worker_that_was_given_up_registers_anew(service: Service, kind: str) -> None:
    worker = service.worker(kind)
    lost = service.submit("wait", {"seconds": 60})
    worker.hears("started")
    store = service.app.client.store

    service.app.wait_for(store.bury(service.info(worker).id, beats=None))

    worker.hears("registered", 2)
    task_id = service.submit("words", {"text": "a"})
    assert service.reaches(task_id, "completed")["result"]["pid"] == worker.process.pid
    until(lambda: service.task(lost)["attempt"] == 2, "the rescue")


@both
def test_a_cancelled_task_and_one_that_takes_too_long_are_stopped(
    service: Service, kind: str
) -> None:
    worker = service.worker(kind)
    cancelled = service.submit("wait", {"seconds": 60})
    worker.hears("started")

    service.http.post(f"/api/v1/tasks/{cancelled}/cancel")

    assert service.reaches(cancelled, "cancelled")["reason"] == "cancelled"
    task_id = service.submit("wait", {"seconds": 60}, timeout_seconds=0.5, max_retries=0)

    task = service.reaches(task_id, "dead_letter")

    assert task["reason"] == "timeout"
    until(lambda: task_id in worker.refused(), "the refusal")


@both
def test_sigterm_lets_a_worker_finish_and_leave(service: Service, kind: str) -> None:
    worker = service.worker(kind, capacity=1)
    running = service.submit("wait", {"seconds": 1.0})
    worker.hears("started")
    waiting = service.submit("words", {"text": "later"})

    assert worker.end(signal.SIGTERM) == 0

    assert service.task(running)["status"] == "completed"
    assert service.task(waiting)["status"] == "queued"
    assert service.info(worker).status is WorkerStatus.STOPPED


@both
def test_an_idle_worker_leaves_at_once(service: Service, kind: str) -> None:
    worker = service.worker(kind)
    time.sleep(0.3)  # it polls
    began = time.monotonic()

    assert worker.end(signal.SIGTERM) == 0

    assert time.monotonic() - began < 5.0
    assert service.info(worker).status is WorkerStatus.STOPPED


@both
def test_an_operator_can_send_a_worker_home(service: Service, kind: str) -> None:
    worker = service.worker(kind)

    service.http.post(f"/api/v1/workers/{service.info(worker).id}/drain")

    assert worker.process.wait(SOON) == 0
    assert service.info(worker).status is WorkerStatus.STOPPED


def test_a_stopping_server_does_not_wait_for_its_polls(own_service: Service) -> None:
    own_service.worker("python")
    time.sleep(0.3)  # it polls
    began = time.monotonic()

    assert own_service.end(signal.SIGTERM) == 0

    assert time.monotonic() - began < 5.0


@both
def test_a_worker_whose_token_was_revoked_ends_and_says_so(service: Service, kind: str) -> None:
    worker = service.worker(kind)

    service.revoke_worker_token()

    assert worker.process.wait(SOON) == 1


def test_nothing_is_lost_when_the_server_is_killed_again_and_again(own_service: Service) -> None:
    service = own_service
    workers = [service.worker(kind, capacity=4) for kind in sorted(COMMANDS)]
    tasks = [service.submit("wait", {"seconds": 0.02 * (n % 5)}) for n in range(120)]

    for kills in range(1, 3):
        until(partial(_have_reported, workers, 20 * kills), "some results")
        service.end(signal.SIGKILL)
        service.start()

    for task_id in tasks:
        service.reaches(task_id, "completed")
    for task_id in tasks:
        attempts = service.http.get(f"/api/v1/tasks/{task_id}/attempts").json()["attempts"]
        causes = [each["cause"] for each in attempts]
        assert causes[0] == "submitted"
        # On a slow machine a worker may be given up while the server is away.
        assert set(causes[1:]) <= {"released", "worker_lost"}
        assert attempts[-1]["ended"] == "completed"
    until(partial(_have_reported, workers, 120), "the last report")
    assert sorted(each["task"] for each in _reported(workers)) == sorted(tasks)
    assert service.app.doctor() == []


def _have_reported(workers: list[Program], number: int) -> bool:
    return len(_reported(workers)) >= number


def _reported(workers: list[Program]) -> list[dict[str, Any]]:
    return [each for worker in workers for each in worker.said if each["event"] == "reported"]


class HalfAnswers(BaseHTTPRequestHandler):
    """Dies in the middle of its first answer, as a server that is killed does."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        if len(self.asked) > 1:
            self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_half_an_answer_is_asked_for_again() -> None:
    with HTTPServer(("127.0.0.1", 0), HalfAnswers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        worker = runpy.run_path(str(EXAMPLES / "http_worker.py"))["Worker"]

        answer = worker(f"http://127.0.0.1:{server.server_port}", "token", {}).ask("w/result", {})
        server.shutdown()

    assert answer == {}
    assert HalfAnswers.asked == ["/internal/workers/w/result"] * 2


def test_python_and_http_workers_share_a_queue(on_postgres: Service) -> None:
    service = on_postgres
    over_http = [service.worker(kind, queue="mixed") for kind in sorted(COMMANDS)]
    in_python = service.python_worker("*")
    until(lambda: len(service.app.workers()) >= 3, "all workers")
    texts = ["word " * n for n in range(1, 101)]

    tasks = [service.submit("words", {"text": text}, queue="mixed") for text in texts]
    open_task = service.submit("wait", {"seconds": 0})

    results = [service.reaches(task_id, "completed")["result"] for task_id in tasks]
    assert [result["words"] for result in results] == list(range(1, 101))
    assert {worker.process.pid for worker in over_http} <= {result["pid"] for result in results}
    assert any(result.get("python") for result in results)
    assert service.task(open_task)["status"] == "queued"
    assert in_python.end(signal.SIGTERM) == 0
