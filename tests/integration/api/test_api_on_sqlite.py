"""The API on a real file: between processes, over forks, at exit."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Holdfast, IdempotencyConflict, State
from holdfast.testing.eventually import eventually


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tasks.db"


@pytest.fixture
def app(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holdfast]:
    monkeypatch.chdir(tmp_path)
    app = Holdfast(url=url, heartbeat="100ms", lease="1s")

    @app.task(name="double")
    def double(n: int) -> int:
        return n * 2

    with app:
        yield app


async def test_a_task_goes_through_a_worker_and_its_result_comes_back(app: Holdfast) -> None:
    double = app.registry["double"]
    handles = app.submit_many([double.call(n) for n in range(50)])

    await app.run_worker(burst=True)

    assert [await handle for handle in handles] == [n * 2 for n in range(50)]


async def test_a_handle_waits_for_a_worker_that_is_at_work(app: Holdfast) -> None:
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    try:
        handle = await app.registry["double"].submit_async(4)
        assert await handle.result_async(timeout="20s") == 8
    finally:
        worker.stop()
        await running


async def test_a_running_task_is_cancelled_through_its_handle(app: Holdfast) -> None:
    started = asyncio.Event()

    @app.task(name="forever")
    async def forever() -> None:
        started.set()
        await asyncio.Event().wait()

    worker = app.worker()
    running = asyncio.create_task(worker.run())
    try:
        handle = await forever.submit_async()
        await asyncio.wait_for(started.wait(), 20)
        assert (await handle.cancel_async()).cancel_requested
        await eventually(lambda: _is(handle.id, app, State.CANCELLED), within=20)
    finally:
        worker.stop()
        await running


async def _is(task_id: str, app: Holdfast, state: State) -> bool:
    return (await app.get_async(task_id)).state is state


def test_sync_threads_submit_side_by_side(app: Holdfast) -> None:
    double = app.registry["double"]
    threads = [
        threading.Thread(target=lambda: [double.submit(n) for n in range(20)]) for _ in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert app.count() == 160


def test_a_forked_child_submits_to_the_same_file(app: Holdfast) -> None:
    double = app.registry["double"]
    mine = double.submit(1)

    child = os.fork()
    if child == 0:
        try:
            double.submit(2)
            app.close()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert code == 0
    assert app.count() == 2
    assert double.submit(3).id > mine.id


def test_one_idempotency_key_from_many_processes_is_one_task(app: Holdfast, url: str) -> None:
    script = (
        "import sys\n"
        "from holdfast import Holdfast\n"
        f"app = Holdfast(url={url!r})\n"
        "@app.task(name='double')\n"
        "def double(n: int) -> int: ...\n"
        "for _ in range(25):\n"
        "    print(double.options(idempotency_key='k').submit(1).id)\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]

    ids = [line for child in children for line in child.communicate(timeout=100)[0].split()]

    assert (len(ids), len(set(ids))) == (100, 1)
    assert app.count() == 1
    with pytest.raises(IdempotencyConflict):
        app.registry["double"].options(idempotency_key="k").submit(2)


@pytest.mark.parametrize(
    "ending",
    ["", "raise SystemExit(0)", "import asyncio; asyncio.run(app.count_async())"],
    ids=["falls off the end", "exits", "after a loop of its own"],
)
def test_a_script_ends_cleanly_and_what_it_submitted_is_there(
    app: Holdfast, url: str, ending: str
) -> None:
    script = (
        "from holdfast import Holdfast\n"
        f"app = Holdfast(url={url!r})\n"
        "@app.task(name='double')\n"
        "def double(n: int) -> int: ...\n"
        "double.submit(1)\n"
        f"{ending}\n"
    )

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert app.count() == 1


def test_a_relative_url_means_the_folder_at_the_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    app = Holdfast(url="sqlite:///here.db")

    with app:
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert app.count() == 0

    assert (tmp_path / "here.db").exists()
