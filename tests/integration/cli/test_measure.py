"""The measuring functions do what they say; how fast is not judged here."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Shell

from holdfast.cli import bench, measure
from holdfast.cli.command import CommandFailed


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'scratch.db'}"


def test_submitting_is_measured_by_callers(url: str) -> None:
    speed = measure.measure_submit(url, 20, callers=4)

    assert (speed.tasks, speed.callers, speed.batch) == (20, 4, 1)
    assert speed.per_second == pytest.approx(20 / speed.seconds)


def test_bulk_submitting_is_measured_by_batch(url: str) -> None:
    speed = measure.measure_bulk(url, 250, batch=100)

    assert (speed.tasks, speed.batch) == (250, 100)


def test_draining_counts_only_what_completed_and_beside_other_tasks_it_is_refused(url: str) -> None:
    speed = measure.measure_drain(url, 50, processes=2)

    assert (speed.tasks, speed.processes) == (50, 2)
    assert speed.seconds > 0
    with pytest.raises(CommandFailed, match="100 of 50 tasks completed"):
        measure.measure_drain(url, 50)


def test_pick_up_is_given_in_percentiles(url: str) -> None:
    pickup = measure.measure_pickup(url, 10)

    assert 0 < pickup.p50_ms <= pickup.p95_ms <= pickup.p99_ms


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process uses")
def test_idleness_is_measured_over_all_processes(url: str) -> None:
    idle = measure.measure_idle(url, 0.5)

    assert idle is not None
    assert idle.processes == 2
    assert 20 < idle.pss_mib < idle.rss_mib < 200
    assert set(asdict(idle)) == {"seconds", "cpu_percent", "rss_mib", "pss_mib", "processes"}


def test_the_scratch_store_is_beside_the_users_and_leaves_nothing(tmp_path: Path) -> None:
    with bench.scratch(f"sqlite:///{tmp_path / 'mine.db'}") as store:
        inside = Path(store.removeprefix("sqlite:///"))
        assert inside.parent.parent == tmp_path

    assert list(tmp_path.iterdir()) == []


def test_bench_prints_every_figure_as_json(fresh: Shell) -> None:
    ran = fresh.run("bench", "--tasks", "1000", "--json")

    data = json.loads(ran.out)
    assert ran.code == 0
    assert set(data) == {
        "store", "submit", "submit_8_callers", "submit_bulk", "drain_1_process",
        "drain_2_processes", "pickup", "idle", "raw_limit_per_second",
    }  # fmt: skip
    assert data["drain_2_processes"]["tasks"] == 1000
    assert data["raw_limit_per_second"] > data["drain_1_process"]["per_second"]
    assert list(fresh.folder.iterdir()) == []
