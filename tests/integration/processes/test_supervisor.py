"""`holdfast worker` as real processes: drains, restarts, buries, reloads, leaves no orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.stopping import stop_between_writes

from holdfast.app import Holdfast
from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.task import AttemptEnd, Cause, Reason, State
from holdfast.testing.eventually import eventually
from holdfast.worker.options import WorkerOptions

from .conftest import is_gone, pid_in

SHOP = Path(__file__).with_name("shop.py")


class Service:
    """A supervisor with its worker processes."""

    def __init__(self, folder: Path, **options: Any) -> None:
        given = replace(WorkerOptions(app=f"{SHOP}:app", processes=1), **options)
        environment = os.environ | {
            "HOLDFAST_URL": f"sqlite:///{folder}/tasks.db",
            "HOLDFAST_LEASE": "2",
            "HOLDFAST_HEARTBEAT": "0.2",
            "HOLDFAST_SWEEP": "0.3",
        }
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "holdfast.worker.supervisor",
                    given.to_json(),
                ],
                env=environment,
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    async def exit_code(self) -> int:
        await eventually(lambda: self.popen.poll() is not None, within=30)
        assert self.popen.returncode is not None
        return self.popen.returncode


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    services: list[Service] = []

    def start(**options: Any) -> Service:
        services.append(Service(tmp_path, **options))
        return services[-1]

    yield start
    for service in services:
        service.popen.kill()
        service.popen.wait()
        print(service.log.read_text())


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Holdfast]:
    app = Holdfast(url=f"sqlite:///{tmp_path}/tasks.db")
    names: dict[str, Any] = {}
    for name, text in (
        ("note", "def note(file: str, text: str) -> str: ..."),
        ("slow", "def slow(file: str, seconds: float) -> int: ..."),
        ("hold_the_gil", "def hold_the_gil(file: str, seconds: int) -> int: ..."),
        ("square", "def square(number: int) -> int: ..."),
        ("encode", "def encode(file: str) -> None: ..."),
        ("crash", "def crash() -> None: ..."),
    ):
        exec(text, names)
        app.task(name=f"shop.{name}", timeout=120)(names[name])
    async with app:
        yield app


async def alive(app: Holdfast) -> list[WorkerInfo]:
    return [worker for worker in await app.workers_async() if worker.status is WorkerStatus.ACTIVE]


async def workers(app: Holdfast, count: int) -> list[WorkerInfo]:
    """Wait until so many are registered and alive."""

    async def enough() -> list[WorkerInfo]:
        found = await alive(app)
        assert len(found) == count
        return found

    return await eventually(enough, within=30)


async def submit(app: Holdfast, name: str, **arguments: Any) -> Any:
    return await app.submit_by_name_async(f"shop.{name}", arguments)


async def test_tasks_are_run_by_as_many_processes_as_asked_for(app: Holdfast, start: Any) -> None:
    service = start(processes=2)
    found = await workers(app, 2)

    handles = [await submit(app, "square", number=n) for n in range(4)]
    results = [await handle.result_async(timeout=30) for handle in handles]
    service.signal(signal.SIGTERM)

    assert results == [0, 1, 4, 9]
    assert len({worker.pid for worker in found}) == 2
    assert await service.exit_code() == 0
    assert await alive(app) == []


async def test_a_drain_lets_running_work_end(app: Holdfast, start: Any, tmp_path: Path) -> None:
    service = start()
    handle = await submit(app, "slow", file=str(tmp_path / "pid"), seconds=1.5)
    pid = await eventually(lambda: pid_in(tmp_path / "pid"), within=30)

    service.signal(signal.SIGTERM)
    os.kill(pid, signal.SIGTERM)  # as a service manager does, which signals every process
    code = await service.exit_code()

    task = await handle.task_async()
    assert code == 0
    assert (task.state, task.attempt) == (State.COMPLETED, 1)


async def test_ctrl_c_reaches_all_processes_and_is_one_request(
    app: Holdfast, start: Any, tmp_path: Path
) -> None:
    service = start(processes=2)
    handle = await submit(app, "slow", file=str(tmp_path / "pid"), seconds=1.5)
    await eventually(lambda: pid_in(tmp_path / "pid"), within=30)

    os.killpg(service.popen.pid, signal.SIGINT)
    code = await service.exit_code()

    task = await handle.task_async()
    assert code == 0
    assert (task.state, task.attempt) == (State.COMPLETED, 1)


async def test_a_second_sigterm_hands_running_work_back_uncharged(
    app: Holdfast, start: Any, tmp_path: Path
) -> None:
    service = start()
    handle = await submit(app, "slow", file=str(tmp_path / "pid"), seconds=60)
    await eventually(lambda: pid_in(tmp_path / "pid"), within=30)

    service.signal(signal.SIGTERM)
    await eventually(lambda: "worker.draining" in service.log.read_text())
    service.signal(signal.SIGTERM)
    code = await service.exit_code()

    task, history = await handle.task_async(), await handle.history_async()
    assert code == 0
    assert (task.state, task.charged, task.crash_count) == (State.QUEUED, 0, 0)
    assert [attempt.ended for attempt in history.attempts] == [AttemptEnd.RELEASED]


def says(service: Service, words: str) -> bool:
    return words in service.log.read_text()


async def test_a_third_sigterm_kills(app: Holdfast, start: Any, tmp_path: Path) -> None:
    service = start()
    await submit(app, "hold_the_gil", file=str(tmp_path / "pid"), seconds=60)
    pid = await eventually(lambda: pid_in(tmp_path / "pid"), within=30)

    for seen in ("how=drain", "how=now"):  # two that are pending at once are one to the kernel
        service.signal(signal.SIGTERM)
        await eventually(partial(says, service, seen), within=30)
    service.signal(signal.SIGTERM)
    code = await service.exit_code()

    assert code == 1
    assert is_gone(pid)


async def test_a_killed_process_is_buried_and_replaced_and_its_task_runs_again(
    app: Holdfast, start: Any, tmp_path: Path
) -> None:
    start()
    (first,) = await workers(app, 1)
    handle = await submit(app, "slow", file=str(tmp_path / "pid"), seconds=2)
    pid = await eventually(lambda: pid_in(tmp_path / "pid"), within=30)

    os.kill(pid, signal.SIGKILL)
    await handle.result_async(timeout=30)

    history = await handle.history_async()
    known = {worker.id: worker.status for worker in await app.workers_async()}
    assert pid == first.pid
    assert known[first.id] is WorkerStatus.DEAD
    assert [attempt.cause for attempt in history.attempts] == [Cause.SUBMITTED, Cause.WORKER_LOST]
    assert len(await alive(app)) == 1


async def test_processes_die_with_their_supervisor(
    app: Holdfast, start: Any, tmp_path: Path
) -> None:
    service = start(processes=2)
    found = await workers(app, 2)
    await submit(app, "hold_the_gil", file=str(tmp_path / "pid"), seconds=60)
    await eventually(lambda: pid_in(tmp_path / "pid"), within=30)

    service.signal(signal.SIGKILL)

    await eventually(lambda: all(is_gone(worker.pid) for worker in found), within=1)


async def test_a_program_started_by_a_handler_does_not_outlive_a_killed_worker(
    app: Holdfast, start: Any, tmp_path: Path
) -> None:
    start()
    (worker,) = await workers(app, 1)
    await submit(app, "encode", file=str(tmp_path / "pid"))
    program = await eventually(lambda: pid_in(tmp_path / "pid"), within=30)

    os.kill(worker.pid, signal.SIGKILL)

    await eventually(lambda: is_gone(program), within=5)


async def test_a_stopped_process_is_silent_and_its_late_result_is_refused(
    app: Holdfast, start: Any, tmp_path: Path
) -> None:
    start(processes=2)
    await workers(app, 2)
    handle = await submit(app, "slow", file=str(tmp_path / "pid"), seconds=1)
    pid = await eventually(lambda: pid_in(tmp_path / "pid"), within=30)

    stop_between_writes([pid], tmp_path / "tasks.db")
    result = await handle.result_async(timeout=30)
    os.kill(pid, signal.SIGCONT)

    async def refusal() -> bool:
        events = (await handle.history_async()).events
        return "late_result_refused" in {event.kind for event in events}

    assert result != pid
    await eventually(refusal, within=20)
    await workers(app, 2)


async def test_a_poison_pill_stops_after_three_crashes_and_harms_nobody(
    app: Holdfast, start: Any
) -> None:
    start()
    (before,) = await workers(app, 1)
    pill = await submit(app, "crash")
    neighbours = [await submit(app, "square", number=n) for n in range(3)]

    results = [await handle.result_async(timeout=60) for handle in neighbours]
    await eventually(lambda: _has_state(pill, State.DEAD_LETTER), within=60)

    task, history = await pill.task_async(), await pill.history_async()
    assert results == [0, 1, 4]
    assert (task.reason, task.crash_count) == (Reason.POISON, 3)
    assert [attempt.ended for attempt in history.attempts] == [AttemptEnd.WORKER_LOST] * 3
    assert all("SIGSEGV" in str(attempt.error) for attempt in history.attempts)
    assert [worker.id for worker in await alive(app)] == [before.id]


async def test_burst_ends_when_nothing_is_left(app: Holdfast, start: Any, tmp_path: Path) -> None:
    handles = [
        await submit(app, "note", file=str(tmp_path / "notes"), text=str(n)) for n in range(20)
    ]

    service = start(processes=2, burst=True)
    code = await service.exit_code()

    states = {(await handle.task_async()).state for handle in handles}
    assert code == 0
    assert states == {State.COMPLETED}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("no_such_shop:app", "there is no module 'no_such_shop'"),
        (f"{SHOP}:ap", "Did you mean"),
        ("broken.py:app", "ZeroDivisionError"),
    ],
)
async def test_an_app_that_cannot_be_imported_is_said_once_and_ends_it(
    spec: str, words: str, start: Any, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")

    service = start(app=spec, processes=2)
    code = await service.exit_code()

    log = service.log.read_text()
    assert code == 2
    assert words in log
    assert log.count("holdfast: ") == 1


async def test_reload_restarts_the_processes_with_the_new_code(
    app: Holdfast, start: Any, tmp_path: Path
) -> None:
    source = SHOP.read_text()
    (tmp_path / "shop.py").write_text(source)
    start(app="shop:app", reload=True)
    await workers(app, 1)
    before = await submit(app, "square", number=3)
    assert await before.result_async(timeout=30) == 9

    (tmp_path / "shop.py").write_text("this is no Python")
    await eventually(lambda: "SyntaxError" in (tmp_path / "log").read_text(), within=30)
    (tmp_path / "shop.py").write_text(source.replace("number * number", "number * 100"))

    after = await submit(app, "square", number=3)
    assert await after.result_async(timeout=30) == 300


async def _has_state(handle: Any, state: State) -> bool:
    return bool((await handle.task_async()).state is state)


async def test_a_worker_that_an_operator_sent_home_is_not_replaced(
    app: Holdfast, start: Any
) -> None:
    service = start(processes=2)
    first, second = await workers(app, 2)

    assert await app.client.store.ask_to_drain(first.id)
    left = await workers(app, 1)
    assert await app.client.store.ask_to_drain(second.id)

    assert [worker.id for worker in left] == [second.id]
    assert await service.exit_code() == 0
