"""Two versions of the schema: refused, with the command to run.

What `migrate` says is in `integration/cli/test_upkeep.py`, other files in
`integration/sqlite/test_trouble.py`.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.acceptance.stage import Stage

import holdfast
from holdfast.errors import SchemaMismatch

pytestmark = pytest.mark.acceptance


def set_version(stage: Stage, version: int) -> None:
    with sqlite3.connect(stage.folder / "shop.db") as db:
        db.execute(f"PRAGMA user_version = {version}")


def test_a_newer_schema_is_refused_and_the_file_is_left_alone(stage: Stage) -> None:
    worker = stage.worker("-c", "1")
    assert stage.shop.noop.submit(1).result(timeout=60) == 1
    stage.app.close()
    set_version(stage, 99)

    with pytest.raises(SchemaMismatch, match=r"version 99.*upgrade this installation"):
        stage.shop.noop.submit(2)
    late = stage.worker(ready=False)
    migrate = stage.command("migrate", check=False)

    assert late.wait() != 0
    assert "schema version 99" in late.said()
    assert "upgrade" in late.said()
    assert "Traceback" not in late.said()
    assert migrate.returncode == 1
    assert "99" in migrate.stderr + migrate.stdout
    assert worker.is_running or "schema version 99" in worker.said()
    with sqlite3.connect(stage.folder / "shop.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (99,)


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
