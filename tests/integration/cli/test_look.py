"""Commands that only look: their JSON, their text, their exit codes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from tests.integration.cli.conftest import Shell, World

from holdfast.wiring import open_store

UNKNOWN = "0197f3c2-8a51-7cc0-9d4e-1b2c3d4e5f60"


def test_task_list_prints_one_json_page_with_stable_keys(world: World) -> None:
    page = world.shell.ok("task", "list")

    assert set(page) == {"tasks", "next"}
    assert set(world.all) <= {task["task_id"] for task in page["tasks"]}
    assert set(page["tasks"][0]) == {
        "task_id", "task_type", "parameters", "status", "reason", "queue", "priority",
        "effective_priority", "attempt", "cause", "charged", "crash_count", "retry_count",
        "max_retries", "assigned_worker_id", "last_worker_id", "created_at", "run_at", "started_at",
        "last_started_at", "finished_at", "completed_at", "expires_at", "timeout_seconds",
        "progress", "result", "error", "cancel_requested", "trace_id", "traceparent", "tags",
        "owner", "parent_id", "lock", "fence", "unique_key", "idempotency_key",
        "required_capabilities", "callback_url", "cost", "schedule",
    }  # fmt: skip


def test_task_list_filters_by_every_word(world: World) -> None:
    def ids(*options: str) -> list[str]:
        return [task["task_id"] for task in world.shell.ok("task", "list", *options)["tasks"]]

    assert ids("--state", "dead_letter", "--name", "shop.bill", "--tag", "bills") == [world.dead]
    assert ids("--queue", "attic", "--owner", "eve") == [world.unserved]
    assert ids("--priority", "high", "--state", "completed", "--newer", "1h") == [world.completed]
    assert ids("--older", "1h") == []
    assert ids("--error", "ValueError", "-s", "dead") == [world.dead]


def test_task_list_goes_on_where_the_page_before_ended(world: World) -> None:
    first = world.shell.ok("task", "list", "--limit", "1")
    second = world.shell.ok("task", "list", "--limit", "1", "--after", first["next"])

    assert first["tasks"][0]["task_id"] > second["tasks"][0]["task_id"]


def test_task_list_for_people_is_plain_aligned_columns(world: World) -> None:
    ran = world.shell.run("task", "list", "--state", "dead_letter")

    heading, row = ran.out.splitlines()[:2]
    assert heading.split()[:3] == ["ID", "NAME", "STATE"]
    assert row.startswith(world.dead)
    assert heading.index("STATE") == row.index("dead_letter")
    assert "ValueError: no customer 'ghost'" in row
    assert " ago  " in row
    assert "\x1b" not in ran.out


def test_task_list_says_so_when_nothing_matches(world: World) -> None:
    ran = world.shell.run("task", "list", "--name", "nothing.like.it")

    assert (ran.code, ran.out) == (0, "No task matches.\n")


@pytest.mark.parametrize("command", ["task", "dead"])
def test_a_name_without_its_module_is_answered_with_the_whole_form(
    world: World, command: str
) -> None:
    ran = world.shell.run(command, "list", "--name", "bill")

    assert "'bill' has no module in it: names are whole here, such as shop.bill" in ran.out


def test_task_get_shows_arguments_result_and_progress(world: World) -> None:
    data = world.shell.ok("task", "get", world.walked)
    text = world.shell.run("task", "get", world.walked.upper()).out

    assert data["parameters"] == {"seconds": 0.02}
    assert data["result"] == "there"
    assert data["progress"] == {"done": 4.0, "total": 4.0, "message": "walking"}
    assert "████████████████████ 100% walking" in text


def test_task_history_is_one_timeline(world: World) -> None:
    lines = world.shell.run("task", "history", world.walked).out.splitlines()

    words = [line.split("  ", 1)[1] for line in lines]
    assert words[0] == "submitted"
    assert words[1].startswith("attempt 1 started on worker ")
    assert words[2] == "attempt 1 log: on my way"
    assert words[-1].endswith(": completed")


def test_task_history_has_cause_worker_duration_and_error_of_each_attempt(world: World) -> None:
    data = world.shell.ok("task", "history", world.dead)

    (attempt,) = data["attempts"]
    assert (attempt["attempt"], attempt["cause"], attempt["ended"]) == (1, "submitted", "error")
    assert attempt["worker_id"]
    assert attempt["seconds"] >= 0
    assert attempt["error"]["type"] == "ValueError"
    assert "raise ValueError" in attempt["error"]["traceback"]
    assert [event["kind"] for event in data["events"]] == ["submitted"]


def test_task_history_shows_tracebacks_unless_told_not_to(world: World) -> None:
    without = world.shell.run("task", "history", world.dead, "--no-traceback").out
    with_them = world.shell.run("task", "history", world.dead).out

    assert "Traceback" not in without
    assert "Traceback of attempt 1:" in with_them
    assert "raise ValueError" in with_them


def test_task_why_names_the_future_start_and_the_missing_worker(world: World) -> None:
    data = world.shell.ok("task", "why", world.scheduled)
    text = world.shell.run("task", "why", world.scheduled).out

    assert [reason["code"] for reason in data["reasons"]] == ["future_run_at", "no_worker"]
    assert data["status"] == "queued"
    assert "It may start at" in text
    assert "[future_run_at]" in text


def test_task_why_gives_the_position_in_line(world: World) -> None:
    data = world.shell.ok("task", "why", world.unserved)
    text = world.shell.run("task", "why", world.unserved).out

    assert data["position"] == 1
    assert "Position in line: 1." in text


def test_an_unknown_task_is_exit_code_1_with_a_code(world: World) -> None:
    ran = world.shell.run("task", "get", UNKNOWN, "--json")

    assert (ran.code, ran.out) == (1, "")
    assert ran.error["code"] == "task_not_found"
    assert UNKNOWN in ran.error["message"]


def test_stats_count_states_and_queues(world: World) -> None:
    data = world.shell.ok("stats")
    text = world.shell.run("stats").out

    assert data["statuses"]["failed"] >= 1
    assert "attic" in {queue["queue"] for queue in data["named_queues"]}
    assert "dead_letter" in text


def test_workers_hides_those_that_left_unless_asked(world: World) -> None:
    gone = world.shell.ok("workers", "--all")["workers"]

    assert world.shell.ok("workers") == {"workers": []}
    assert gone[0]["status"] == "stopped"
    assert gone[0]["queues"] == ["default", "steps"]
    said = world.shell.run("workers").out
    assert said.startswith("No worker is alive.")  # and not that none has ever come
    assert "Start one: holdfast worker" in said


def test_output_that_nobody_reads_to_the_end_is_no_error(world: World) -> None:
    import subprocess

    command = " ".join(world.shell.command("task", "list"))
    done = subprocess.run(
        f"{command} | head -1",
        shell=True,
        env=world.shell.environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.startswith("ID")
    assert done.stderr == ""


LOOKING = (
    ("stats",),
    ("workers",),
    ("task", "list"),
    ("task", "get", UNKNOWN),
    ("task", "why", UNKNOWN),
    ("task", "history", UNKNOWN),
    ("task", "cancel", UNKNOWN),
    ("dead", "list"),
    ("queue", "list"),
    ("queue", "pause", "default"),
    ("drain", "nobody"),
    ("token", "list"),
    ("doctor",),
    ("migrate", "--check"),
)
"""Commands that work on what is there."""


@pytest.mark.parametrize("kind", ["no file", "empty file", "fresh_schema", "fresh_mongo"])
async def test_whoever_looks_never_makes_a_store(
    kind: str, fresh: Shell, request: pytest.FixtureRequest
) -> None:
    url = fresh.url
    if kind == "empty file":
        (fresh.folder / "fresh.db").touch()
    elif kind.startswith("fresh"):
        url = request.getfixturevalue(kind)

    # Which commands look is no matter of the store; where there is none, each is tried once.
    commands = LOOKING if kind == "no file" else LOOKING[-4:]

    ran = [fresh.run(*command, HOLDFAST_URL=url) for command in commands]

    assert [one.code for one in ran] == [1] * len(commands)
    assert all("there is no store at" in one.err for one in ran[:-2])
    assert all("--url" in one.err for one in ran[:-2])
    assert "there is no store at" in ran[-2].out
    assert "run `holdfast migrate`" in ran[-1].out
    assert await open_store(url).schema_version() == 0
    files = {"fresh.db": 0} if kind == "empty file" else {}
    assert {file.name: file.stat().st_size for file in fresh.folder.iterdir()} == files


def test_whoever_looks_at_an_older_store_is_told_to_migrate_it(fresh: Shell) -> None:
    fresh.ok("migrate")
    with closing(sqlite3.connect(fresh.folder / "fresh.db")) as db:
        db.execute("PRAGMA user_version = 1")

    told = [fresh.run(*command) for command in (("stats",), ("task", "list"))]

    assert [one.code for one in told] == [1, 1]
    assert all("holdfast migrate" in one.err for one in told)


def test_version_is_printed(shell: Shell) -> None:
    assert set(shell.ok("version")) == {"version"}
    assert shell.run("version").out.strip() == shell.ok("version")["version"]


def test_a_task_cannot_steer_the_terminal_and_json_is_one_document(fresh: Shell) -> None:
    task_id = fresh.submit("send_mail", {"to": "Ωmega"}, "--owner", "a\x1b[2Jb")

    text = fresh.run("task", "get", task_id).out
    out = fresh.run("task", "get", task_id, "--json").out

    assert "\x1b" not in text
    assert r"a\x1b[2Jb" in text
    assert out.count("\n") == 1
    assert json.loads(out)["parameters"]["to"] == "Ωmega"
