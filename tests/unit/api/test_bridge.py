"""Sync calls from everywhere: threads, running loops, the bridge itself, forked children."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest

from holdfast.asyncio_tools.bridge import BRIDGE, Bridge


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    made = Bridge()
    yield made
    made.close()


async def thread_name() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_work_runs_in_a_daemon_thread_that_starts_late(bridge: Bridge) -> None:
    assert bridge._thread is None

    assert bridge.run(thread_name()) == "holdfast-bridge"
    assert bridge._thread is not None
    assert bridge._thread.daemon


def test_an_error_comes_out_as_itself(bridge: Bridge) -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        bridge.run(fail())


async def test_a_running_loop_may_call_it(bridge: Bridge) -> None:
    assert bridge.run(thread_name()) == "holdfast-bridge"


def test_work_on_the_bridge_may_use_the_bridge_again_and_again(bridge: Bridge) -> None:
    async def deeper(levels: int) -> int:
        return levels if levels == 0 else 1 + bridge.run(deeper(levels - 1))

    assert bridge.run(deeper(3)) == 3


def test_many_threads_share_one_loop(bridge: Bridge) -> None:
    names: list[str] = []
    threads = [
        threading.Thread(target=lambda: names.append(bridge.run(thread_name()))) for _ in range(20)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert names == ["holdfast-bridge"] * 20
    assert bridge._nested is None


def test_a_closed_bridge_opens_again(bridge: Bridge) -> None:
    bridge.run(thread_name())
    bridge.close()
    bridge.close()

    assert bridge.run(thread_name()) == "holdfast-bridge"


def test_closing_cancels_what_still_runs(bridge: Bridge) -> None:
    ended = threading.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def start() -> asyncio.Task[None]:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        return task

    task = bridge.run(start())
    bridge.close()

    assert ended.is_set()
    assert task.cancelled()


def test_an_interrupted_wait_cancels_its_work(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = threading.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    from concurrent.futures import Future

    real = Future.result

    def interrupted(self: Future[None], timeout: float | None = None) -> None:
        with pytest.raises(TimeoutError):
            real(self, 0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bridge.run(forever())

    assert cancelled.wait(10)


def test_a_forked_child_has_a_bridge_of_its_own() -> None:
    assert BRIDGE.run(thread_name()) == "holdfast-bridge"

    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if BRIDGE.run(thread_name()) == "holdfast-bridge" else 1)
        finally:
            os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert BRIDGE.run(thread_name()) == "holdfast-bridge"
