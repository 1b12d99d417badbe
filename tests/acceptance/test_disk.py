"""A full and a read-only disk: clear errors, no false acknowledgement, recovery without restart."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.disks import SmallDisk, read_only_disk, small_disk
from tests.acceptance.stage import Stage, ids, until
from tests.kit.startlog import StartLog

from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.errors import StoreUnavailable

pytestmark = pytest.mark.acceptance

SHORT = {"lease": "2s", "heartbeat": "0.5s", "sweep": "0.5s", "poll": "0.5s"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "small") as disk:
        yield disk


@pytest.fixture
def stage(disk: SmallDisk, tmp_path: Path) -> Iterator[Stage]:
    """The database is on the small disk; the start log is not."""
    stage = Stage(tmp_path, **SHORT, url=f"sqlite:///{disk.folder / 'shop.db'}")
    yield stage
    stage.close()


def test_a_full_disk_refuses_submits_clearly_and_heals_by_itself(
    stage: Stage, disk: SmallDisk
) -> None:
    acknowledged = [stage.shop.fill.submit("x" * 10_000).id]
    disk.fill()

    def submit_on() -> None:
        while len(acknowledged) < 1000:
            acknowledged.append(stage.shop.fill.submit("x" * 10_000).id)

    with pytest.raises(StoreUnavailable, match=r"disk is full.*Nothing was written"):
        submit_on()
    kept = {task.id for task in stage.app.list(limit=500).tasks}
    disk.free()
    acknowledged.append(stage.shop.fill.submit("room again").id)

    assert kept == set(acknowledged[:-1])
    stage.worker("-c", "4")
    until(lambda: not stage.unfinished())
    assert stage.broken(acknowledged) == []
    assert stage.finished() == len(acknowledged)
    with sqlite3.connect(disk.folder / "shop.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_worker_waits_out_a_full_disk_and_runs_nothing_twice(
    stage: Stage, disk: SmallDisk
) -> None:
    worker = stage.worker("-c", "4")
    process = worker.children()
    calls = [stage.shop.nap.call(0.5) for _ in range(12)]
    handles = stage.app.submit_many(calls)
    until(lambda: len(stage.log.starts()) >= 4)

    disk.fill()
    full = time.monotonic()
    until(lambda: sum(s.ended is not None for s in stage.log.starts()) >= 4)
    until(lambda: time.monotonic() - full > 4.0)  # two leases
    during = stage.finished()
    disk.free()
    until(lambda: not stage.unfinished())

    assert during < 12
    assert worker.children() == process
    assert {handle.status() for handle in handles} == {State.COMPLETED}
    assert len(stage.log.starts()) == 12
    assert stage.broken(ids(handles)) == []
    lines = [line for line in worker.said().splitlines() if "disk is full" in line]
    assert 0 < len(lines) < 40
    assert stage.shop.noop.submit(1).result(timeout=60) == 1


def test_submits_under_a_filling_disk_are_never_acknowledged_falsely(
    stage: Stage, disk: SmallDisk
) -> None:
    acknowledged: list[str] = []
    refused = 0
    over = threading.Event()

    def breathe() -> None:
        while not over.wait(0.05):
            disk.fill()
            time.sleep(0.05)  # the disk is full for this long
            disk.free()

    breathing = threading.Thread(target=breathe)
    breathing.start()
    try:
        until((disk.folder / "ballast").exists)
        while refused < 20 and len(acknowledged) < 150:
            try:
                acknowledged.append(stage.shop.fill.submit("x" * 10_000).id)
            except StoreUnavailable:
                refused += 1
    finally:
        over.set()
        breathing.join()

    kept = {task.id for task in stage.app.list(TaskFilter(), limit=500).tasks}
    assert refused > 0
    assert set(acknowledged) <= kept
    stage.worker("-c", "4")
    until(lambda: not stage.unfinished())
    assert stage.broken(acknowledged) == []


def test_a_read_only_database_refuses_clearly_and_heals_by_itself(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    first = Stage(tmp_path, **SHORT, url=f"sqlite:///{real / 'shop.db'}")
    kept = first.shop.noop.submit(1).id
    first.close()

    with read_only_disk(tmp_path / "seen", of=real) as disk:
        stage = Stage(tmp_path, **SHORT, url=f"sqlite:///{disk.folder / 'shop.db'}")
        worker = stage.worker("-c", "1", ready=False)
        with pytest.raises(StoreUnavailable) as caught:
            stage.shop.noop.submit(2)
        until(lambda: "read-only" in worker.said() or "opened" in worker.said())
        assert "Nothing was written" in str(caught.value)
        assert "shop.db" in str(caught.value)

        disk.allow_writing()
        later = stage.shop.noop.submit(3)
        assert later.result(timeout=60) == 3
        until(lambda: not stage.unfinished())

        assert worker.is_running
        assert {task.id for task in stage.app.list(limit=10).tasks} == {kept, later.id}
        assert StartLog(tmp_path / "starts.log").starts()
        stage.close()
