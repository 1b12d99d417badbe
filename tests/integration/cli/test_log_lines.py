"""What workers and servers write to standard error, read as an operator's program does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from tests.integration.cli.conftest import Shell
from tests.integration.cli.test_serving import until

ABOUT = ("task_id", "task_name", "attempt", "trace_id")
EXECUTORS = ("on_the_loop", "in_a_thread", "in_a_process")


def submit(shell: Shell, name: str, **arguments: object) -> dict[str, Any]:
    added: dict[str, Any] = shell.ok("submit", "chatty:app", name, json.dumps(arguments))
    return added


def lines_of(text: str) -> list[dict[str, Any]]:
    """Every line, read as JSON: one that is not fails the test."""
    return [json.loads(line) for line in text.splitlines()]


def work(shell: Shell, *options: str, app: str = "chatty:app") -> list[dict[str, Any]]:
    ran = shell.run("worker", app, "--burst", "--json", *options)
    assert (ran.code, ran.out) == (0, ""), ran.err
    return lines_of(ran.err)


def test_a_tasks_lines_name_it_in_every_executor_and_so_do_its_handlers(fresh: Shell) -> None:
    tasks = {name: submit(fresh, name, word="on") for name in EXECUTORS}

    lines = work(fresh)

    assert lines[0]["event"] == "worker.started"
    assert lines[0]["worker_id"].startswith(f"{socket.gethostname()}-")
    for name, task in tasks.items():
        about = [line for line in lines if line.get("task_id") == task["task_id"]]
        for line in about:
            expected = (task["task_id"], name, 1, task["trace_id"])
            assert tuple(line[field] for field in ABOUT) == expected
            assert line["level"] == "info"
        mine = [line for line in about if line["logger"].startswith("shop.")]
        assert [line["event"].split()[-1] for line in mine] == ["on", "mailed"]
        assert mine[1]["size"] == 3
        told = [line["event"] for line in about if line not in mine]
        assert told == ["task.started", "task.completed"]


def test_a_failure_is_logged_with_its_traceback_and_so_is_what_the_handler_caught(
    fresh: Shell,
) -> None:
    task = submit(fresh, "fails")

    lines = work(fresh)

    assert [line["event"] for line in lines if line["logger"] != "shop.orders"] == [
        "worker.started",
        "task.started",
        "task.dead_lettered",
        "worker.stopped",
    ]
    (dead,) = [line for line in lines if line["event"] == "task.dead_lettered"]
    assert (dead["level"], dead["error"]) == ("warning", "ValueError: outer")
    assert dead["exception"].startswith("Traceback (most recent call last):")
    assert dead["exception"].rstrip().endswith("ValueError: outer")
    (caught,) = [line for line in lines if line["logger"] == "shop.orders"]
    assert (caught["event"], caught["task_id"]) == ("could not\nfinish", task["task_id"])
    assert "KeyError: 'inner'" in caught["exception"]
    got = fresh.run("task", "get", task["task_id"]).out
    assert "ValueError: outer" in got.partition("Traceback:")[2]


def test_a_line_about_another_task_is_no_fault_and_loses_neither(fresh: Shell) -> None:
    task = submit(fresh, "about_another")

    lines = work(fresh)

    own = next(line for line in lines if line["event"] == "looked at it")
    assert (own["task_id"], own["task_id_"]) == (task["task_id"], 99)
    assert (own["attempt"], own["attempt_"]) == (1, "first")
    other = fresh.ok("task", "get", task["task_id"])["result"]
    submitted = next(line for line in lines if line["event"] == "task.submitted")
    assert submitted["task_id"] == other
    assert fresh.ok("task", "get", task["task_id"])["status"] == "completed"


def test_the_level_is_chosen_by_option_and_by_environment(fresh: Shell) -> None:
    submit(fresh, "whispers")
    quiet = work(fresh, "--log-level", "warning", "-c", "1")
    submit(fresh, "whispers")
    ran = fresh.run("worker", "chatty:app", "--burst", "--json", HOLDFAST_LOG_LEVEL="debug")

    assert quiet == []
    assert "psst" in [line["event"] for line in lines_of(ran.err)]


def test_a_level_that_does_not_exist_is_refused_with_those_that_do(fresh: Shell) -> None:
    ran = fresh.run("worker", "chatty:app", "--log-level", "loud")

    assert ran.code == 2
    assert "expected one of debug, info, warning, error, got 'loud'" in ran.err


def test_logging_that_the_program_has_set_up_stays_as_it_is(fresh: Shell) -> None:
    task = fresh.ok("submit", "configured:app", "speaks")

    ran = fresh.run("worker", "configured:app", "--burst")

    assert f"MINE shop {task['task_id']} hello" in ran.err.splitlines()
    assert (
        f"MINE holdfast.worker {task['task_id']} task.started task_id={task['task_id']}" in ran.err
    )
    rest = [line for line in ran.err.splitlines() if not line.startswith("MINE ")]
    assert rest == []


def test_json_that_was_asked_for_is_given_to_handlers_of_the_programs_own(fresh: Shell) -> None:
    task = fresh.ok("submit", "configured:app", "speaks")

    lines = work(fresh, app="configured:app")

    (hello,) = [line for line in lines if line["event"] == "hello"]
    assert (hello["logger"], hello["task_id"]) == ("shop", task["task_id"])


def test_a_worker_that_cannot_start_says_so_in_json(fresh: Shell) -> None:
    (fresh.folder / "broken.py").write_text("import warnings\nwarnings.warn('old')\n1 / 0\n")

    ran = fresh.run("worker", "broken.py:app", "--json")

    *_, refused = lines_of(ran.err)
    assert (ran.code, refused["event"]) == (2, "worker.refused")
    assert "ZeroDivisionError" in refused["exception"]


@contextmanager
def serving(shell: Shell, *command: str, **environment: str) -> Iterator[Any]:
    log = shell.folder / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            shell.command(*command),
            env=shell.environment(**environment),
            cwd=shell.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        yield lambda: lines_of(log.read_text())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def events(lines: list[dict[str, Any]]) -> list[str]:
    return [line["event"] for line in lines]


def test_all_parts_of_up_speak_json_and_a_server_logs_submits(fresh: Shell) -> None:
    with serving(fresh, "up", "chatty:app", "--port", "0", "--json") as said:
        until(lambda: {"server.started", "worker.started"} <= set(events(said())))
        (url,) = [line["url"] for line in said() if line["event"] == "server.started"]
        token = fresh.ok("token", "create", "--scope", "submit")["token"]
        answer = httpx.post(
            f"{url}/api/v1/tasks",
            json={"task_type": "in_a_thread", "parameters": {"word": "rest"}},
            headers={"Authorization": f"Bearer {token}"},
        )
        until(lambda: "task.completed" in events(said()))
        (worker,) = [line for line in said() if line["event"] == "worker.started"]
        os.kill(int(worker["worker_id"].rsplit("-", 2)[1]), signal.SIGKILL)
        until(lambda: events(said()).count("worker.started") == 2)

    submitted = [line for line in said() if line["event"] == "task.submitted"]
    assert [line["task_id"] for line in submitted] == [answer.json()["task_id"]]
    assert {"worker.died", "server.stopped", "supervisor.stopping"} <= set(events(said()))


def test_every_change_of_a_tasks_state_is_logged_by_whoever_makes_it(fresh: Shell) -> None:
    with serving(fresh, "server", "chatty:app", "--port", "0", "--json") as said:
        until(lambda: "server.started" in events(said()))
        (url,) = [line["url"] for line in said() if line["event"] == "server.started"]
        token = fresh.ok("token", "create", "--scope", "admin")["token"]
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}) as http:
            body = {"task_type": "whispers", "delay_seconds": 600}
            task_id = http.post("/api/v1/tasks", json=body).json()["task_id"]
            http.post(f"/api/v1/tasks/{task_id}/cancel").raise_for_status()
            http.post(f"/api/v1/tasks/{task_id}/retry").raise_for_status()
            http.post("/api/v1/queues/default/pause").raise_for_status()

    about = [line["event"] for line in said() if line.get("task_id") == task_id]
    assert about == ["task.submitted", "task.cancelled", "task.requeued"]
    assert "queue.paused" in events(said())
