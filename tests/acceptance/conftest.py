"""Stages for the tests of this folder, on a file unless a test asks for other stores.

@on_every_store                          # once on SQLite, once on PostgreSQL
def test_it(stage: Stage) -> None: ...
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.acceptance.stage import Stage

MakeStage = Callable[..., Stage]
MakeUrl = Callable[[], str | None]

on_every_store = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
on_every_version = pytest.mark.parametrize(
    "store", ["sqlite", "postgres", "postgres16"], indirect=True
)
on_postgres = pytest.mark.parametrize("store", ["postgres"], indirect=True)
on_own_postgres = pytest.mark.parametrize("store", ["own_postgres"], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[MakeUrl]:
    """Makes the URL of a fresh store; None for a file in the stage's folder."""
    name: str = getattr(request, "param", os.environ.get("HOLDFAST_TEST_STORE", "sqlite"))
    if name == "sqlite":
        yield lambda: None
        return
    server = request.getfixturevalue(name)
    made: list[str] = []

    def make() -> str:
        made.append(f"shop_{secrets.token_hex(4)}")
        url: str = server.create_database(made[-1])
        return url

    yield make
    for database in made:
        server.start().drop_database(database)


@pytest.fixture
def make_stage(tmp_path: Path, store: MakeUrl) -> Iterator[MakeStage]:
    """Stages with settings of their own; whatever they started dies with the test."""
    stages: list[Stage] = []

    def make(**settings: str) -> Stage:
        folder = tmp_path / str(len(stages))
        folder.mkdir()
        stages.append(Stage(folder, url=store(), **settings))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """A stage with short times, so that death is noticed soon."""
    return make_stage(lease="2s", heartbeat="0.5s", sweep="0.5s", poll="0.5s", crash_limit="3")
