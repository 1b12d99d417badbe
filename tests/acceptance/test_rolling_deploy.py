"""A deploy under way: workers of the old and of the new code side by side, in both directions."""

from __future__ import annotations

import importlib.util
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import MakeStage
from tests.acceptance.stage import Stage, until

from holdfast.core.query import TaskFilter
from holdfast.core.task import State

pytestmark = pytest.mark.acceptance

OLD = """
from holdfast import Holdfast
app = Holdfast()

@app.task(name="pay", max_retries=0)
def pay(order: int) -> str:
    return f"old {order}"

@app.task(name="bill", max_retries=0)
def bill(order: int) -> str:
    return f"old {order}"

@app.task(name="fax", max_retries=0, executor="process")
def fax(order: int) -> str:
    return f"old {order}"
"""
NEW = """
from holdfast import Holdfast
app = Holdfast()

@app.task(name="pay", max_retries=0)
async def pay(order: int, currency: str = "EUR") -> str:
    return f"{currency} {order}"

@app.task(name="bill", max_retries=0, executor="process")
def bill(order: int, to: str) -> str:
    return f"{to} {order}"

@app.task(name="refund", max_retries=0)
def refund(order: int) -> str:
    return f"new {order}"
"""


def load(stage: Stage, name: str, code: str) -> tuple[Path, Any]:
    """One release: where its workers find it, and its module here."""
    path = stage.folder / name / "shopfront.py"
    path.parent.mkdir()
    path.write_text(code)
    spec = importlib.util.spec_from_file_location(f"{name}_{id(stage)}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path, module


def results(stage: Stage, handles: list[Any]) -> list[Any]:
    tasks = [stage.app.get(handle.id) for handle in handles]
    assert [(t.state, t.charged, t.error) for t in tasks] == [(State.COMPLETED, 0, None)] * len(
        tasks
    )
    return [json.loads(task.result or b"null") for task in tasks]


def test_old_and_new_code_side_by_side_lose_and_charge_nothing(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make_stage(poll="0.2s")
    for name in ("HOLDFAST_URL", "HOLDFAST_REDIS_URL"):
        if name in stage.environment:
            monkeypatch.setenv(name, stage.environment[name])
    old_path, old = load(stage, "old", OLD)
    new_path, new = load(stage, "new", NEW)
    number = range(3 if stage.is_slow else 8)
    old_worker, new_worker = stage.worker(app=old_path), stage.worker(app=new_path)

    with old.app, new.app:
        by_either = [new.pay.submit(n) for n in number] + [old.pay.submit(n) for n in number]
        only_new = [new.refund.submit(n) for n in number] + [new.pay.submit(7, "USD")]
        only_old = [old.fax.submit(n) for n in number]
        refused_by_old = [new.bill.submit(1, "Ada")]
        refused_by_new = [old.bill.submit(1)]
    until(lambda: not stage.unfinished(), within=120)

    assert {r.split()[0] for r in results(stage, by_either)} <= {"old", "EUR"}
    assert results(stage, only_new) == [f"new {n}" for n in number] + ["USD 7"]
    assert results(stage, only_old) == [f"old {n}" for n in number]
    assert results(stage, refused_by_old) == ["Ada 1"]
    assert results(stage, refused_by_new) == ["old 1"]
    assert stage.broken() == []
    for worker in (old_worker, new_worker):
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_what_nobody_knows_waits_is_told_of_and_is_given_up_in_time(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make_stage(poll="0.2s", heartbeat="0.2s", lease="10s")
    for name in ("HOLDFAST_URL", "HOLDFAST_REDIS_URL"):
        if name in stage.environment:
            monkeypatch.setenv(name, stage.environment[name])
    old_path, _ = load(stage, "old", OLD)
    _, new = load(stage, "new", NEW)
    patient = stage.worker(app=old_path)
    with new.app:
        task = new.refund.submit(1).id

    until(lambda: stage.app.get(task).attempt == 1 and stage.app.get(task).state is State.QUEUED)
    why = json.loads(stage.command("task", "why", task, "--json").stdout)
    doctor = stage.command("doctor")
    patient.signal(signal.SIGTERM)
    assert patient.wait() == 0
    assert "worker.unknown_task task_name=refund" in patient.said()
    assert stage.app.get(task).state is State.QUEUED
    hasty = stage.worker(app=old_path, unknown_task_grace="1s")
    until(lambda: stage.app.get(task).state is State.DEAD_LETTER)

    assert [reason["code"] for reason in why["reasons"]] == ["unknown_task"]
    assert "'refund' wait for a worker that knows it" in doctor.stdout
    assert "All is well" not in doctor.stdout
    assert "tasks.unknown task_name=refund tasks=1" in hasty.said()
    dead = stage.app.get(task)
    assert (dead.reason, dead.charged, dead.attempt) == ("unknown_task", 0, 1)
    assert stage.app.count(TaskFilter()) == 1
