from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.acceptance.stage import Stage

MakeStage = Callable[..., Stage]


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[MakeStage]:
    """Stages with settings of their own; whatever they started dies with the test."""
    stages: list[Stage] = []

    def make(**settings: str) -> Stage:
        folder = tmp_path / str(len(stages))
        folder.mkdir()
        stages.append(Stage(folder, **settings))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """A stage with short times, so that death is noticed soon."""
    return make_stage(lease="2s", heartbeat="0.5s", sweep="0.5s", poll="0.5s", crash_limit="3")
