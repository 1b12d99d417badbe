"""Apps in memory, away from anybody's configuration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.testing import MemoryApp


@pytest.fixture(autouse=True)
def _no_configuration_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def app(_no_configuration_of_the_host: None) -> MemoryApp:
    return MemoryApp()
