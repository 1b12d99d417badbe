"""kill -9 in the middle of a run: what its model was paid for is not paid again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.agents.due import due_now

from holdfast import Holdfast, Usage
from holdfast.core.task import AttemptEnd, State
from holdfast.core.usage import Totals
from holdfast.testing.eventually import eventually

OFFICE = Path(__file__).with_name("office.py")


@contextmanager
def worker(folder: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process of the office; what is left of it is killed at the end."""
    settings = {"URL": url, "LEASE": "1500ms", "HEARTBEAT": "300ms", "SWEEP": "200ms"}
    settings |= {"POLL": "100ms"}
    variables = {f"HOLDFAST_{name}": value for name, value in settings.items()}
    with (folder / "log").open("ab") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "worker", f"{OFFICE}:app"],
            cwd=folder, env={**os.environ, **variables, "OFFICE_DESK": str(folder)},
            stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield running
        finally:
            running.kill()
            running.wait()


async def test_a_killed_run_resumes_after_its_step_and_pays_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tasks.db"
    app = Holdfast(url=url)

    @app.task(name="answer", max_retries=0)  # stands for the office's: only workers run it
    def answer() -> None: ...

    async with app:
        await app.budgets.set_async("owner:ann", day={"runs": 5, "cost": 0.05})
        (name,) = await due_now(app, 1)
        with worker(tmp_path, url):
            await eventually((tmp_path / "asked-1").exists, within=60)
        with worker(tmp_path, url):
            await eventually(lambda: _is_done(app), within=60)

        (execution,) = (await app.executions.list_async(schedule=name)).executions
        history = await app.history_async(execution.id)
        state = await app.budgets.get_async("owner:ann")
        report = await app.usage_async(owner="ann")

    assert (tmp_path / "paid").read_text().splitlines() == [f"{execution.id} 1"]
    assert [each.ended for each in history.attempts] == [
        AttemptEnd.WORKER_LOST, AttemptEnd.COMPLETED,
    ]  # fmt: skip
    assert (execution.content, execution.status) == ("an expensive answer", "success")
    assert execution.steps == ("Reading", "Asking the model", "Writing")
    assert execution.usage == Usage(units=1, tokens_in=900, tokens_out=100, cost=0.03)
    assert state is not None
    assert state.day.used == Totals(runs=1, units=1, tokens_in=900, tokens_out=100, cost=0.03)
    assert report.totals == state.day.used


async def _is_done(app: Holdfast) -> bool:
    return await app.count_async(state=State.COMPLETED) == 1
