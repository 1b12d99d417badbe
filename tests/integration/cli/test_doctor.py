"""`holdfast doctor` on deployments that are really broken, each in one way."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
from tests.integration.cli.conftest import Shell
from tests.kit.servers.postgres import PostgresServer

from holdfast.core.fleet import knows, runs_on_python
from holdfast.stores.sqlite.store import SQLiteStore
from holdfast.testing.factories import WINDOW, new_task, worker_info


def told(shell: Shell, code: str, **environment: str) -> Mapping[str, Any]:
    """The one finding with this code."""
    ran = shell.run("doctor", "--json", **environment)
    found = [each for each in ran.json["findings"] if each["code"] == code]
    assert len(found) == 1, ran.json["findings"]
    return dict(found[0])


def codes(shell: Shell, **environment: str) -> set[str]:
    """What is not well, by code."""
    findings = shell.run("doctor", "--json", **environment).json["findings"]
    assert all(each["fix"] for each in findings if each["level"] != "ok")
    return {each["code"] for each in findings if each["level"] != "ok"}


def database(shell: Shell) -> Path:
    return Path(shell.url.removeprefix("sqlite:///"))


def store(shell: Shell) -> SQLiteStore:
    return SQLiteStore(database(shell))


def test_a_store_in_good_order_is_measured_and_nothing_stays_behind(fresh: Shell) -> None:
    fresh.ok("migrate")

    clock, latency = told(fresh, "clock"), told(fresh, "latency")

    assert (clock["level"], latency["level"]) == ("ok", "ok")
    assert "a durable write" in latency["message"]
    with sqlite3.connect(database(fresh)) as db:
        assert db.execute("SELECT count(*) FROM record").fetchone() == (0,)
    db.close()


async def test_a_store_that_cannot_be_written_is_told(fresh: Shell, fresh_database: str) -> None:
    fresh = replace(fresh, url=fresh_database)
    fresh.ok("migrate")
    name = fresh_database.rpartition("/")[2]
    db = await asyncpg.connect(fresh_database)
    await db.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await db.close()

    found = told(fresh, "store_write")

    assert found["level"] == "problem"
    assert "read-only" in found["message"]


def test_a_clock_that_is_off_is_told_with_what_that_means(
    fresh: Shell, fresh_database: str, tmp_path: Path
) -> None:
    fresh = replace(fresh, url=fresh_database)
    fresh.ok("migrate")
    script = tmp_path / "ahead.py"
    script.write_text(
        "import sys, datetime as d\n"
        "import holdfast.cli.probing as probing\n"
        "class Ahead(d.datetime):\n"
        "    @classmethod\n"
        "    def now(cls, tz=None):\n"
        "        return super().now(tz) + d.timedelta(seconds=float(sys.argv[1]))\n"
        "probing.datetime = Ahead\n"
        "from holdfast.cli.main import main\n"
        "sys.exit(main(['doctor']))\n"
    )

    little, much = (fresh.cold(seconds, program=str(script)).out for seconds in ("3", "-900"))

    assert "warning  This host's clock is 3.0 s ahead of the store's." in little
    assert "receivers refuse callbacks" not in little
    assert "warning  This host's clock is 15 min behind the store's." in much
    assert "receivers refuse callbacks" in much


def test_settings_that_somebody_will_be_sorry_for_are_told(fresh: Shell) -> None:
    fresh.ok("migrate")

    risky = codes(
        fresh,
        HOLDFAST_LEASE="10s",
        HOLDFAST_HEARTBEAT="6s",
        HOLDFAST_POLL="1m",
        HOLDFAST_SWEEP="20s",
        HOLDFAST_RETENTION="1h",
    )

    assert risky == {
        "no_worker",
        "setting_heartbeat",
        "setting_idempotency_window",
        "setting_poll",
        "setting_sweep",
    }
    assert codes(fresh) == {"no_worker"}


async def test_workers_of_several_releases_and_pythons_are_told(fresh: Shell) -> None:
    fresh.ok("migrate")
    async with store(fresh) as opened:
        for version, python in (("0.1.0", "3.11.7"), ("0.0.9", "3.12.1")):
            await opened.register(
                worker_info(version=version, capabilities=frozenset({runs_on_python(python)})),
            )

    found = told(fresh, "versions")

    assert found["level"] == "warning"
    assert "0.0.9 (1), 0.1.0 (1)" in found["message"]
    assert "3.11.7 (1), 3.12.1 (1)" in told(fresh, "pythons")["message"]


async def test_a_worker_says_which_python_it_runs_on(fresh: Shell) -> None:
    fresh.work()

    async with store(fresh) as opened:
        (worker,) = await opened.workers()

    assert runs_on_python(".".join(map(str, sys.version_info[:3]))) in worker.capabilities
    assert "python:" not in fresh.run("workers", "--all").out


async def test_tasks_that_nobody_here_can_take_are_told_each_with_its_reason(fresh: Shell) -> None:
    fresh.ok("migrate")
    known = knows("known")
    async with store(fresh) as opened:
        await opened.register(worker_info(queues=("mail",), capabilities=frozenset({known})))
        await opened.register(worker_info(queues=("gpu",), capabilities=frozenset({"gpu", known})))
        await opened.add(
            [
                new_task(name="known", queue="attic"),
                new_task(name="known", queue="mail", requires=frozenset({"tpu"})),
                new_task(name="known", queue="mail", requires=frozenset({"tpu"})),
                new_task(name="known", queue="mail", requires=frozenset({"gpu"})),
                new_task(name="strange", queue="mail"),
                new_task(name="x", queue="mail", requires=frozenset({"channel:email"})),
                new_task(name="x", queue="mail", requires=frozenset({"callbacks"})),
                new_task(name="x", queue="mail", requires=frozenset({"http"})),
            ],
            idempotency_window=WINDOW,
        )

    assert codes(fresh) >= {
        "queue_unserved", "missing_capability", "capability_elsewhere", "unknown_task",
        "missing_channel", "no_server", "no_http_worker",
    }  # fmt: skip
    assert "2 tasks wait for a worker with tpu" in told(fresh, "missing_capability")["message"]
    elsewhere = told(fresh, "capability_elsewhere")
    assert "At least 1 task in queue 'mail' wait for a worker with gpu" in elsewhere["message"]
    assert elsewhere["fix"] == "holdfast worker module:app -q mail --capability gpu"
    assert "At least 1 task 'strange'" in told(fresh, "unknown_task")["message"]
    assert "deliver by 'email'" in told(fresh, "missing_channel")["message"]


def test_a_dropped_index_of_a_file_is_told_with_the_statement_that_brings_it_back(
    fresh: Shell,
) -> None:
    fresh.ok("migrate")
    db = sqlite3.connect(database(fresh))
    db.execute("DROP INDEX task_ready")

    found = told(fresh, "missing_index")
    db.execute(found["fix"])
    db.commit()
    db.close()

    assert found["level"] == "problem"
    assert "task_ready is missing" in found["message"]
    assert codes(fresh) == {"no_worker"}


async def test_a_postgresql_server_that_is_ailing_is_told_each_with_its_cure(
    fresh: Shell, fresh_database: str
) -> None:
    fresh = replace(fresh, url=fresh_database)
    fresh.ok("migrate")
    db = await asyncpg.connect(fresh_database)
    await db.execute("DROP INDEX holdfast.task_parent")
    await db.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'holdfast.waiting_due'::regclass"
    )

    missing, invalid = told(fresh, "missing_index"), told(fresh, "invalid_index")
    for fix in (missing["fix"], invalid["fix"]):
        await db.execute(fix)
    await db.close()

    assert "task_parent is missing" in missing["message"]
    assert "waiting_due is not valid" in invalid["message"]
    assert codes(fresh) == {"no_worker"}
    unsafe = replace(fresh, url=f"{fresh_database}?synchronous_commit=off")
    assert told(unsafe, "synchronous_commit")["level"] == "problem"


def test_a_server_without_durability_is_told(fresh: Shell) -> None:
    with PostgresServer(settings={"fsync": "off"}) as server:
        fresh = replace(fresh, url=server.create_database("shop"))
        fresh.ok("migrate")

        assert "fsync is off" in told(fresh, "fsync")["message"]


async def test_the_doctor_is_quick_to_say_that_the_store_is_away(fresh: Shell) -> None:
    fresh = replace(fresh, url="postgresql://nobody@127.0.0.1:9/none")

    async with asyncio.timeout(30):
        ran = await asyncio.to_thread(fresh.run, "doctor", "--json")

    assert ran.code == 1
    assert [each["code"] for each in ran.json["findings"]] == ["store"]
