"""`holdfast worker --metrics-port`: real processes, summed by their supervisor."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.house.pages import ROOT

from holdfast import Holdfast
from holdfast.core.fleet import ALIVE
from holdfast.core.metrics import TASK_STATES
from holdfast.core.task import State
from holdfast.metrics.keeping import fleet_counts
from holdfast.testing.eventually import eventually

SHOP = ROOT / "tests/integration/processes/shop.py"


class Service:
    """`holdfast worker` with a port for its metrics."""

    def __init__(self, folder: Path, port: int = 0, processes: int = 2) -> None:
        environment = os.environ | {
            "HOLDFAST_URL": f"sqlite:///{folder}/tasks.db",
            "HOLDFAST_LEASE": "3",
            "HOLDFAST_HEARTBEAT": "0.2",
            "HOLDFAST_SWEEP": "0.3",
        }
        self.log = folder / "log"
        words = ["worker", f"{SHOP}:app", "--processes", str(processes)]
        words += ["--metrics-port", str(port), "--json"]
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "holdfast", *words],
                env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def said(self, event: str) -> list[dict[str, object]]:
        lines = [json.loads(one) for one in self.log.read_text().splitlines() if one[:1] == "{"]
        return [line for line in lines if line["event"] == event]

    @property
    def port(self) -> int:
        return int(str(self.said("supervisor.metrics")[0]["port"]))

    async def get(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient() as client:
            return await client.get(f"http://127.0.0.1:{self.port}{path}")

    async def completed(self) -> float:
        found = text_string_to_metric_families((await self.get("/metrics")).text)
        samples = [one for family in found for one in family.samples]
        return sum(
            one.value
            for one in samples
            if one.name == "holdfast_task_state_total" and one.labels["state"] == "completed"
        )

    async def health(self) -> int:
        return (await self.get("/healthz")).status_code


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    yield made
    os.killpg(made.popen.pid, signal.SIGKILL)
    made.popen.wait()
    print(made.log.read_text())


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Holdfast]:
    made = Holdfast(url=f"sqlite:///{tmp_path}/tasks.db")

    @made.task(name="shop.note", timeout=120)
    def note(file: str, text: str) -> str: ...  # type: ignore[empty-body]  # run elsewhere

    async with made:
        yield made


async def pids(app: Holdfast, number: int) -> list[int]:
    async def enough() -> list[int]:
        found = [one.pid for one in await app.workers_async() if one.status in ALIVE]
        assert len(found) == number
        return found

    return list(await eventually(enough, within=30))


async def run(app: Holdfast, folder: Path, number: int) -> None:
    for _ in range(number):
        await app.submit_by_name_async("shop.note", {"file": f"{folder}/notes", "text": "x"})

    async def done() -> bool:
        states = (await app.client.store.stats()).states
        return not states[State.QUEUED] + states[State.RUNNING]

    await eventually(done, within=30)


async def test_the_counts_of_all_processes_are_told_and_outlive_them(
    service: Service, app: Holdfast, tmp_path: Path
) -> None:
    async def all_told(number: int) -> bool:
        return await service.completed() == number

    first = await pids(app, 2)
    await run(app, tmp_path, 30)
    await eventually(lambda: all_told(30), within=10)

    os.kill(first[0], signal.SIGKILL)
    seen = [await service.completed() for _ in range(20)]
    await pids(app, 2)
    await run(app, tmp_path, 10)
    await eventually(lambda: all_told(40), within=10)

    assert set(seen) == {30}
    assert (await service.get("/metrics?name=x")).status_code == 200
    assert (await service.get("/")).status_code == 404


async def test_what_the_fleet_counts_never_shrinks_when_a_process_is_killed(
    service: Service, app: Holdfast, tmp_path: Path
) -> None:
    async def completed() -> float:
        return (await fleet_counts(app.client.store)).number(TASK_STATES, "completed")

    async def all_kept() -> bool:
        return await completed() == 30

    first = await pids(app, 2)
    await run(app, tmp_path, 30)
    await eventually(all_kept, within=20)  # each writes every ten seconds

    for pid in first:
        os.kill(pid, signal.SIGKILL)
    await pids(app, 2)

    assert await completed() == 30
    assert (await app.client.store.stats()).states[State.COMPLETED] == 30


async def test_a_process_that_stands_still_makes_the_port_unhealthy(
    service: Service, app: Holdfast
) -> None:
    async def is_well() -> bool:
        return await service.health() == 200

    async def is_named() -> bool:
        answer = await service.get("/healthz")  # may name the other one first on a busy machine
        return answer.status_code == 503 and str(pid) in answer.text

    pid = (await pids(app, 2))[0]
    await eventually(is_well, within=30)

    os.kill(pid, signal.SIGSTOP)
    await eventually(is_named, within=30)
    os.kill(pid, signal.SIGCONT)

    await eventually(is_well, within=30)


async def test_garbage_and_slow_clients_do_no_harm(service: Service, app: Holdfast) -> None:
    await pids(app, 2)
    sent = [
        b"\r\n\r\n", b"\0\xff\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics HTTP/1.1\r\n\r\n" * 50,
        b"POST /metrics HTTP/1.1\r\n\r\n", b"x" * 100_000,
        b"GET " + b"/" * 9000 + b" HTTP/1.1\r\n\r\n",
        b"",
    ]  # fmt: skip
    answers: list[bytes] = []
    slow = [await asyncio.open_connection("127.0.0.1", service.port) for _ in range(50)]

    for each in sent:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        with closing(writer):
            writer.write(each)
            if each:
                try:
                    answers.append((await reader.read(100)).partition(b"\r\n")[0])
                except ConnectionResetError:
                    answers.append(b"reset")

    assert await service.health() == 200
    assert answers[:5] == [
        b"HTTP/1.1 400 Bad Request", b"HTTP/1.1 400 Bad Request", b"HTTP/1.1 400 Bad Request",
        b"HTTP/1.1 200 OK", b"HTTP/1.1 405 Method Not Allowed",
    ]  # fmt: skip
    for _, writer in slow:
        writer.close()
    assert "Traceback" not in service.log.read_text()


def test_a_port_in_use_is_said_and_ends_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        service = Service(tmp_path, port=taken.getsockname()[1])

        assert service.popen.wait(30) == 2

    (said,) = service.said("supervisor.no_metrics")
    assert "in use" in str(said["error"])
