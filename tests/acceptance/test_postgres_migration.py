"""The schema is migrated while workers are at work: the old ones go on, nothing is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.acceptance.conftest import MakeStage, on_postgres
from tests.acceptance.load import SETTINGS, Trial
from tests.acceptance.stage import Stage, until

import holdfast
from holdfast.errors import SchemaMismatch

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180), on_postgres]

MIGRATIONS = Path(holdfast.__file__).parent / "stores/postgres/migrations"
MIGRATION = """
ALTER TABLE holdfast.task ADD COLUMN colour text;
ALTER TABLE holdfast.ready ADD COLUMN colour text;
CREATE INDEX task_colour ON holdfast.task (colour) WHERE colour IS NOT NULL;
CREATE OR REPLACE FUNCTION holdfast.holder_of(wanted uuid) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT w.id FROM holdfast.run AS r JOIN holdfast.worker AS w ON w.number = r.worker
    WHERE r.id = wanted
$$;
SELECT pg_sleep(1); -- as a larger one would, with every lock above held
"""


@pytest.fixture
def next_release(tmp_path: Path) -> dict[str, str]:
    """The environment of a release with one migration more than this one."""
    packages = tmp_path / "next"
    shutil.copytree(Path(holdfast.__file__).parent, packages / "holdfast")
    migrations = packages / "holdfast/stores/postgres/migrations"
    number = 1 + _newest(migrations)
    (migrations / f"{number:04}_colour.sql").write_text(MIGRATION)
    return {"PYTHONPATH": str(packages)}


def _newest(migrations: Path) -> int:
    return max(int(file.name[:4]) for file in migrations.glob("*.sql"))


def test_a_migration_under_load_is_outlived_by_the_workers_of_the_last_release(
    make_stage: MakeStage, next_release: dict[str, str]
) -> None:
    stage = make_stage(**SETTINGS)
    with Trial(stage) as trial:
        old = stage.environment
        stage.environment = old | next_release

        refused = stage.command("migrate", "--check", check=False)
        assert refused.returncode == 1
        done = stage.command("migrate", "--json")
        assert json.loads(done.stdout)["applied"] == [1 + _newest(MIGRATIONS)]

        trial.progress(50)
        newcomer = stage.worker("-c", "4", ready=False)
        assert until(lambda: len(stage.app.workers()) == 3), newcomer.said()
        trial.end()

    stage.environment = old
    _refuses_to_start(stage)


def _refuses_to_start(stage: Stage) -> None:
    """A worker of the last release that starts only now is told to upgrade."""
    late = stage.worker(ready=False)
    assert late.wait() != 0
    assert "upgrade" in late.said()
    assert "Traceback" not in late.said()
    stage.app.close()
    with pytest.raises(SchemaMismatch, match="upgrade"):
        stage.shop.noop.submit(1)
