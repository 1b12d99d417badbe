"""The two emulators of Google Cloud Tasks, and an app with timers behind a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kit.servers.account import ServerError
from tests.kit.servers.cloud_tasks import CloudTasks
from tests.kit.servers.gcloud_emulator import GcloudEmulator

from holdfast.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cloud(clock: FakeClock) -> Iterator[CloudTasks]:
    """The strict emulator, whose time the test lets pass."""
    with CloudTasks(clock) as server:
        yield server


@pytest.fixture
def live_cloud() -> Iterator[CloudTasks]:
    """The strict emulator by the host's clock."""
    with CloudTasks() as server:
        yield server


@pytest.fixture(scope="session")
def gcloud_emulator() -> Iterator[GcloudEmulator]:
    """That of the package index. If it cannot be had, its tests fail and say so."""
    server = GcloudEmulator()
    try:
        server.start()
    except ServerError as problem:
        server.close()
        pytest.fail(str(problem))
    with server:
        yield server
