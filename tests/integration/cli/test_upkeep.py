"""`migrate`, `doctor`, `demo` and `bench`, and every command once from a cold start."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Shell, World

from holdfast.testing.eventually import eventually


@pytest.mark.parametrize(
    "arguments",
    [
        ["task", "list"],
        ["dead", "list"],
        ["queue", "list"],
        ["workers"],
        ["stats"],
        ["doctor"],
        ["migrate"],
        ["version"],
    ],
    ids=" ".join,
)
def test_a_command_works_from_a_cold_start(arguments: list[str], world: World) -> None:
    text = world.shell.cold(*arguments)

    assert text.code == (1 if arguments == ["doctor"] else 0)
    assert text.out
    assert text.err == ""


def test_migrate_makes_a_store_once(fresh: Shell) -> None:
    missing = fresh.run("migrate", "--check")
    first, second = fresh.ok("migrate"), fresh.ok("migrate")

    assert missing.code == 1
    assert first["applied"]
    assert second == {"applied": []}
    check = fresh.ok("migrate", "--check")
    assert (check["pending"], check["found"]) == (False, first["applied"][-1])


def database(shell: Shell) -> Path:
    return Path(shell.url.removeprefix("sqlite:///"))


def test_a_store_of_a_newer_release_is_refused_with_what_to_do(fresh: Shell) -> None:
    fresh.ok("migrate")
    with sqlite3.connect(database(fresh)) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()

    ran = fresh.run("stats", "--json")
    examined = fresh.run("doctor", "--json")

    assert ran.code == 1
    assert ran.error["code"] == "schema_mismatch"
    assert "upgrade this installation" in ran.error["message"]
    assert examined.code == 1
    assert examined.json["findings"][0]["level"] == "problem"


def test_doctor_finds_the_queue_that_nobody_serves(world: World) -> None:
    ran = world.shell.run("doctor", "--json")

    found = {(finding["level"], finding["code"]) for finding in ran.json["findings"]}
    assert ran.code == 1
    assert ran.json["ok"] is False
    assert {("ok", "store"), ("ok", "store_check"), ("problem", "queue_unserved")} <= found
    assert all(f["fix"] for f in ran.json["findings"] if f["code"] == "queue_unserved")


def test_doctor_warns_of_a_file_that_others_may_read(fresh: Shell) -> None:
    fresh.ok("migrate")
    private = fresh.ok("doctor")
    database(fresh).chmod(0o644)

    told = fresh.ok("doctor")

    assert "file_rights" not in {finding["code"] for finding in private["findings"]}
    (finding,) = (each for each in told["findings"] if each["code"] == "file_rights")
    assert finding["level"] == "warning"
    assert f"chmod 600 {database(fresh)}" in finding["fix"]


def test_doctor_tells_where_each_setting_came_from(fresh: Shell) -> None:
    fresh.ok("migrate")
    (fresh.folder / "pyproject.toml").write_text("[tool.holdfast]\nconcurrency = 7\n")

    ran = fresh.run("doctor", "--json", HOLDFAST_LEASE="6s")

    settings = ran.json["settings"]
    assert ran.code == 0
    assert settings["url"]["source"] == "HOLDFAST_URL"
    assert settings["lease"] == {"value": 6.0, "source": "HOLDFAST_LEASE"}
    assert settings["heartbeat"] == {"value": 2.0, "source": "follows lease"}
    assert settings["concurrency"] == {"value": 7, "source": "pyproject.toml"}
    assert settings["poll"] == {"value": 1.0, "source": "default"}


def test_doctor_does_not_say_that_all_is_well_after_a_warning(fresh: Shell) -> None:
    fresh.ok("migrate")

    ran = fresh.run("doctor")

    assert ran.code == 0
    assert "warning  No worker is alive." in ran.out
    assert ran.out.endswith("No problem, 1 warning.\n")


async def test_doctor_is_content_with_a_store_in_good_order(fresh: Shell) -> None:
    fresh.ok("migrate")
    worker = fresh.start("worker", "shop:app")
    try:
        await eventually(lambda: fresh.ok("workers")["workers"], within=30.0)

        ran = fresh.run("doctor")
    finally:
        worker.terminate()
        worker.wait(20)

    assert ran.code == 0
    assert ran.out.endswith("All is well.\n")


def test_doctor_says_when_there_is_no_store(fresh: Shell) -> None:
    ran = fresh.run("doctor", "--json")

    assert ran.code == 1
    assert "there is no store" in ran.json["findings"][0]["message"]


def test_doctor_reports_a_file_that_is_no_database(fresh: Shell) -> None:
    database(fresh).write_bytes(b"this is no database, but long enough to be looked at" * 100)

    ran = fresh.run("doctor", "--json")

    assert ran.code == 1
    assert ran.json["findings"][0]["code"] == "store"


@pytest.mark.acceptance
def test_the_demo_keeps_every_promise_and_says_so(fresh: Shell) -> None:
    ran = fresh.run("demo", "--tasks", "60", "--seed", "7", "--json")

    data = ran.json
    assert ran.code == 0, data["broken_promises"]
    assert data["ok"] is True
    assert (data["submitted"], data["lost"], data["recorded_twice"]) == (60, 0, 0)
    assert data["completed"] + data["dead_lettered"] == 60
    assert data["dead_lettered"] > 0
    assert data["second_starts"]["worker_lost"] >= 1
    assert data["bodies_started"] == 60 + sum(data["second_starts"].values())
    assert data["worker_exit_codes"] == [0, 0]
    assert data["killed_pid"] > 0


def test_the_demo_refuses_a_store_with_tasks_in_it(world: World) -> None:
    ran = world.shell.run("demo", "--tasks", "20", "--url", world.shell.url, "--json")

    assert ran.code == 1
    assert ran.error["code"] == "store_not_empty"


def test_bench_refuses_a_store_that_it_cannot_copy(fresh: Shell) -> None:
    ran = fresh.run("bench", "--url", "memory://", "--json")

    assert ran.code == 1
    assert ran.error["code"] == "store_not_supported"


@pytest.mark.acceptance
async def test_a_demo_that_is_stopped_takes_its_workers_and_its_folder_along(fresh: Shell) -> None:
    demo = fresh.start("demo", "--tasks", "500", stdout=subprocess.PIPE, TMPDIR=str(fresh.folder))
    assert demo.stdout is not None
    ready = next(line for line in demo.stdout if b"workers are ready" in line)
    pids = [int(word) for word in ready.split() if word.isdigit()]

    demo.terminate()
    demo.stdout.close()

    assert demo.wait(30) == 143
    assert len(pids) == 2
    await eventually(lambda: not any(is_alive(pid) for pid in pids))
    assert list(fresh.folder.iterdir()) == []


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
