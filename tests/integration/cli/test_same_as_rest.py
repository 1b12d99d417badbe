"""`--json` prints exactly what REST answers to the same question."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.integration.cli.conftest import Shell, Zygote
from tests.integration.server.live import LiveServer, serve

from holdfast import Holdfast
from holdfast.core.attempt import Report
from holdfast.core.record import Changes
from holdfast.core.task import Cost, Json, Priority, Progress, State
from holdfast.ports.store import Store
from holdfast.schedules.book import Book
from holdfast.testing.factories import WINDOW, failure, new_task, success, worker_info

LATER = 10 * 86_400.0
WORKER = worker_info(capabilities=frozenset({"gpu"}), queues=("default", "mail"))


class Both:
    """A store, asked by command and over HTTP."""

    def __init__(self, shell: Shell, server: LiveServer) -> None:
        self._shell = shell
        self.server = server
        tasks = server.admin.get("/api/v1/tasks").json()["tasks"]
        self.ids = {task["task_type"]: task["task_id"] for task in tasks}

    def cli(self, *command: str) -> Json:
        ran = self._shell.run(*command, "--json", HOLDFAST_OPEN_QUEUES="js", HOLDFAST_LEASE="1h")
        assert ran.code == 0, ran.err
        return ran.json

    def get(self, path: str) -> Json:
        return self.server.admin.get(f"/api/v1/{path}").raise_for_status().json()

    def post(self, path: str, body: Json = None) -> Json:
        sent = {} if body is None else {"json": body}
        return self.server.admin.post(f"/api/v1/{path}", **sent).raise_for_status().json()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    shell = Shell(folder, f"sqlite:///{folder / 'both.db'}", zygote)
    app = Holdfast(url=shell.url, open_queues="js", lease="1h")
    with serve(app) as server:
        app.wait_for(tasks_in_every_state(app.client.store))
        app.cancel(app.list(name="cancelled").tasks[0].id)
        app.wait_for(a_schedule_with_runs(app.client.schedules))
        yield Both(shell, server)


async def tasks_in_every_state(store: Store) -> None:
    """One task of each state, named after it, with as much to tell as there is."""
    await store.register(WORKER)
    started = [
        new_task(name="completed", priority=Priority.HIGH),
        new_task(name="failed", tags=("a", "b"), owner="ann"),
        new_task(name="retrying", callback="https://example.org/"),
        new_task(name="dead_letter", max_retries=0, trace=f"00-{'a' * 32}-{'b' * 16}-01"),
        new_task(name="running", lock="only", timeout=30.0, queue="mail"),
    ]
    await store.add(started, idempotency_window=WINDOW)
    claimed = await store.claim(WORKER.id, queues=None, capabilities=frozenset(), limit=5)
    claims = {claim.name: claim for claim in claimed.claims}
    running = claims["running"]
    report = Report(running.task_id, running.attempt, running.worker_id, logs=("on my way",))
    report = report._replace(progress=Progress(done=1, total=4), cost=Cost(units=2.5, tokens_in=3))
    assert not await store.report([report])
    assert not await store.save([
        success(claims["completed"], b'{"sent": [1, 2.5]}'),
        failure(claims["failed"], retriable=False),
        failure(claims["retrying"], backoff=LATER),
        failure(claims["dead_letter"]),
    ])  # fmt: skip
    waiting = [
        new_task(name="blocked", lock="only"),
        new_task(name="queued", requires=frozenset({"gpu"}), priority=Priority.LOW),
        new_task(name="scheduled", delay=LATER, expires_in=2 * LATER, idempotency_key="i"),
        new_task(name="cancelled", unique_key="u", payload=b'{"to": "x", "$secret": [["to"]]}'),
    ]
    await store.add(waiting, idempotency_window=WINDOW)


async def a_schedule_with_runs(book: Book) -> None:
    template, now = new_task(name="resize", queue="night", owner="ann"), await book.store.now()
    words = {"title": "Nightly", "jitter": "1m", "catch_up": "all"}
    series = book.made(template, "0 2 * * *", tz="Asia/Tokyo", name="night", now=now, words=words)
    await book.store.commit(Changes("night", records=[series.put(0)]))
    await book.trigger("night")
    await book.backfill("night", now - timedelta(days=3), now)


def timeless(answer: Json) -> Json:
    """Without the numbers that grow or fade while one looks."""
    if isinstance(answer, dict):
        return {
            name: None if re.match("oldest_|last_minute$|throughput$", name) else timeless(item)
            for name, item in answer.items()
        }
    return [timeless(each) for each in answer] if isinstance(answer, list) else answer


LOOKS = (
    (("task", "list"), "tasks?traceback=true"),
    (
        ("task", "list", "--by-end", "--limit", "2"),
        "tasks?traceback=true&sort=-finished_at&limit=2",
    ),
    (("dead", "list"), "dead-letters?traceback=true"),
    (("task", "get", "{dead_letter}"), "tasks/{dead_letter}?traceback=true"),
    (("task", "history", "{dead_letter}"), "tasks/{dead_letter}/attempts?traceback=true"),
    (("task", "history", "{running}", "--no-traceback"), "tasks/{running}/attempts"),
    (("task", "tree", "{dead_letter}"), "tasks/{dead_letter}/tree"),
    (("stats",), "queue/stats"),
    (("queue", "list"), "queues"),
    (("workers", "--all"), "workers"),
    (("token", "list", "--all"), "tokens"),
    (("task", "list", "--schedule", "night"), "tasks?schedule=night&traceback=true"),
    (("schedule", "list"), "schedules"),
    (("schedule", "show", "night"), "schedules/night"),
    (("schedule", "runs", "night", "--limit", "3"), "schedules/night/runs?limit=3"),
    (
        ("schedule", "preview", "night", "--after", "2026-01-01T00:00Z", "--in", "Europe/Berlin"),
        "schedules/night/preview?n=5&after=2026-01-01T00:00:00Z&tz=Europe/Berlin",
    ),
    (("executions", "--schedule", "night"), "executions?schedule=night&limit=20"),
    (("executions", "{resize}"), "executions/{resize}"),
    (("usage", "--by", "schedule"), "usage?by=schedule"),
    (("budget", "list"), "budgets"),
    *(
        (("task", "why", f"{{{name}}}"), f"tasks/{{{name}}}/why")
        for name in (*(state.value for state in State), "scheduled")
    ),
)


@pytest.mark.parametrize(("command", "path"), LOOKS, ids=str)
def test_a_look_is_the_same_by_command_and_over_http(
    both: Both, command: tuple[str, ...], path: str
) -> None:
    printed = both.cli(*(word.format(**both.ids) for word in command))
    answered = both.get(path.format(**both.ids))

    assert timeless(printed) == timeless(answered)


def test_the_store_that_is_looked_at_has_a_task_in_every_state(both: Both) -> None:
    assert all(both.get("queue/stats")["statuses"].values())


def without_ids(answer: dict[str, Any]) -> Json:
    own = {"task_id", "trace_id", "token_id", "token", "created_at", "created_by", "last_used_at"}
    return {name: None if name in own else item for name, item in answer.items()}


def test_what_is_done_is_answered_alike_by_command_and_over_http(both: Both) -> None:
    running = both.ids["running"]
    js = {"task_type": "resize", "queue": "js"}
    which = {"task_type": "queued"}
    dry = {"action": "cancel", "filter": which, "dry_run": True}
    drain = f"workers/{WORKER.id}/drain"

    assert both.cli("task", "cancel", running)["tasks"] == [both.post(f"tasks/{running}/cancel")]
    assert both.cli("task", "cancel", "--name", "queued", "--dry-run") == both.post(
        "tasks/actions", dry
    )
    assert both.cli("dead", "replay", "--all", "--dry-run") == both.post(
        "dead-letters/replay", {"dry_run": True}
    )
    assert both.cli("dead", "discard", "--name", "none", "--yes") == both.post(
        "dead-letters/discard", {"filter": {"task_type": "none"}}
    )
    for verb in ("pause", "resume"):
        assert both.cli("queue", verb, "js") == both.post(f"queues/js/{verb}") | {"changed": True}
    assert both.cli("drain", WORKER.id) == both.post(drain)
    submitted = both.cli("submit", "shop:app", "send_mail", '{"to": "ann"}', "-q", "letters")
    assert without_ids(submitted) == without_ids(both.post("tasks", js))
    made = both.cli("token", "create", "-n", "ci", "-s", "read", "--queue", "mail", "--rate", "5/m")
    new = {"name": "ci", "scopes": ["read"], "queues": ["mail"], "rate": "5/m"}
    assert without_ids(made) == without_ids(both.post("tokens", new))
