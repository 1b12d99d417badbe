"""Two versions of the schema: refused, with the command to run."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.acceptance.stage import Stage

import holdfast
from holdfast.errors import SchemaMismatch, StoreError

pytestmark = pytest.mark.acceptance


def set_version(stage: Stage, version: int) -> None:
    with sqlite3.connect(stage.folder / "shop.db") as db:
        db.execute(f"PRAGMA user_version = {version}")


@pytest.fixture
def newer(stage: Stage) -> Stage:
    """A database that a newer Holdfast has migrated."""
    stage.shop.noop.submit(1)
    stage.app.close()
    set_version(stage, 99)
    return stage


def test_a_newer_schema_is_refused_and_the_file_is_left_alone(newer: Stage) -> None:
    with pytest.raises(SchemaMismatch, match=r"version 99.*upgrade this installation"):
        newer.shop.noop.submit(2)

    worker = newer.worker(ready=False)
    assert worker.wait() != 0
    assert "schema version 99" in worker.said()
    assert "upgrade" in worker.said()
    assert "Traceback" not in worker.said()
    migrate = newer.command("migrate", check=False)
    assert migrate.returncode == 1
    assert "99" in migrate.stderr + migrate.stdout
    with sqlite3.connect(newer.folder / "shop.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (99,)


def test_a_running_worker_meets_a_newer_schema_and_says_so(stage: Stage) -> None:
    worker = stage.worker("-c", "1")
    assert stage.shop.noop.submit(1).result(timeout=10) == 1
    stage.app.close()

    set_version(stage, 99)
    restarted = stage.worker(ready=False)

    assert restarted.wait() != 0
    assert "schema version 99" in restarted.said()
    assert worker.is_running or "schema version 99" in worker.said()


@pytest.fixture
def next_release(stage: Stage) -> dict[str, str]:
    """The environment of a release with one migration more than this one."""
    packages = stage.folder / "next"
    shutil.copytree(Path(holdfast.__file__).parent, packages / "holdfast")
    migrations = packages / "holdfast/stores/sqlite/migrations"
    number = len(list(migrations.glob("*.sql"))) + 1
    (migrations / f"{number:04}_colour.sql").write_text(
        f"ALTER TABLE task ADD COLUMN colour TEXT;\nPRAGMA user_version = {number};\n"
    )
    return {"PYTHONPATH": str(packages)}


def test_an_older_schema_is_refused_until_migrated_and_nothing_is_lost(
    stage: Stage, next_release: dict[str, str]
) -> None:
    handle = stage.shop.noop.submit(7)
    stage.app.close()

    stage.environment |= next_release

    refused = stage.command("task", "get", handle.id, check=False)
    assert refused.returncode == 1
    assert "holdfast migrate" in refused.stderr + refused.stdout
    assert "Traceback" not in refused.stderr
    worker = stage.worker(ready=False)
    assert worker.wait() != 0
    assert "holdfast migrate" in worker.said()
    assert "colour" not in columns(stage)

    stage.command("migrate")

    assert "colour" in columns(stage)
    assert stage.worker("--burst", ready=False).wait() == 0
    task = json.loads(stage.command("task", "get", handle.id, "--json").stdout)
    assert task["status"] == "completed"


def columns(stage: Stage) -> list[str]:
    with sqlite3.connect(stage.folder / "shop.db") as db:
        return [row[1] for row in db.execute("PRAGMA table_info(task)")]


def test_a_file_of_something_else_is_refused_until_migrated(stage: Stage) -> None:
    with sqlite3.connect(stage.folder / "shop.db") as db:
        db.execute("CREATE TABLE customers (name TEXT)")

    with pytest.raises(StoreError, match="holdfast migrate"):
        stage.shop.noop.submit(1)
    done = stage.command("migrate")

    assert done.returncode == 0
    handle = stage.shop.noop.submit(1)
    stage.worker("-c", "1")
    assert handle.result(timeout=10) == 1
    with sqlite3.connect(stage.folder / "shop.db") as db:
        assert db.execute("SELECT count(*) FROM customers").fetchone() == (0,)


def test_migrate_tells_what_it_did_and_may_be_repeated(stage: Stage) -> None:
    first = stage.command("migrate", "--json")
    second = stage.command("migrate", "--json")

    assert first.returncode == second.returncode == 0
    assert first.stdout != second.stdout
    assert Path(stage.folder / "shop.db").exists()
