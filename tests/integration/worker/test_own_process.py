"""A worker inside somebody's own program: its name, and how Ctrl-C ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from holdfast import Holdfast, InvalidOption
from holdfast.core.task import State
from holdfast.testing.eventually import eventually

PROGRAM = """
import asyncio, pathlib, sys
from holdfast import Holdfast

app = Holdfast(url=sys.argv[1])

@app.task
async def work():
    pathlib.Path("started").touch()
    await asyncio.sleep(0.5)
    return "done"

task = work.submit()
asyncio.run(app.run_worker(handle_signals=True, worker_name="till-3"))
print("left in order", task.task().state, task.task().worker_id)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_of_ones_own_drains_at_a_signal_and_goes_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    program = subprocess.Popen(
        [sys.executable, "program.py", f"sqlite:///{tmp_path}/t.db"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    asyncio.run(eventually((tmp_path / "started").exists, within=60))
    program.send_signal(number)
    out, err = program.communicate(timeout=60)

    assert program.returncode == 0, err
    assert out.startswith("left in order completed till-3-")
    assert "Traceback" not in err


async def test_a_worker_is_called_by_its_name_and_every_incarnation_differs(
    tmp_path: Path,
) -> None:
    async with Holdfast(url=f"sqlite:///{tmp_path}/t.db", worker_name="till") as app:
        task = app.task(name="nothing")(lambda: None)
        first, second = app.worker().id, app.worker().id
        handle = await task.submit_async()
        await app.run_worker(burst=True)

        assert first.startswith(f"till-{os.getpid()}-")
        assert first != second
        done = await handle.task_async()
        assert (done.state, str(done.worker_id).startswith("till-")) == (State.COMPLETED, True)


async def test_after_the_worker_signals_mean_what_they_meant_before() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    async with Holdfast(url="memory://") as app:
        app.task(name="nothing")(lambda: None)
        await app.run_worker(burst=True, handle_signals=True)

    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_signals_cannot_be_handled_beside_the_main_thread() -> None:
    refused: list[Exception] = []
    app = Holdfast(url="memory://")
    app.task(name="nothing")(lambda: None)

    def work() -> None:
        try:
            asyncio.run(app.run_worker(burst=True, handle_signals=True))
        except InvalidOption as error:
            refused.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)

    assert "main thread only" in str(refused[0])
