"""A line to Redis that several threads use while it breaks."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.dispatch.redis.line import Line

PATIENCE = 5.0


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    _, line = await loop.create_connection(lambda: Line(("", 0), lambda _: None), sock=ours)
    yield line
    line.drop(ConnectionError("over"))
    theirs.close()
    await asyncio.sleep(0)


class Staged:
    """A lock; as soon as one thread has let go of it, something happens elsewhere."""

    def __init__(self, thread: int, then: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._thread = thread
        self._then = then

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if threading.get_ident() == self._thread:
            self._then()


async def test_a_call_from_another_thread_while_the_line_is_dropped_is_not_sent(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is raised, and nobody takes it for sent."""
    let_go, asks, dropped = threading.Event(), threading.Event(), threading.Event()
    told: list[object] = []

    def after() -> None:
        let_go.set()
        assert asks.wait(PATIENCE)

    def has_no_way(_: bytes) -> bool:
        asks.set()
        assert dropped.wait(PATIENCE)
        return False

    def call() -> bool:
        assert let_go.wait(PATIENCE)
        return line.ask_from(told.append, "PING")

    monkeypatch.setattr(line, "_order", Staged(threading.get_ident(), after))
    monkeypatch.setattr(line, "_has_way_for", has_no_way)
    with ThreadPoolExecutor(1) as other:
        calling = other.submit(call)

        line.drop(ConnectionError("gone"))
        dropped.set()

        assert calling.result(PATIENCE) is False
    await asyncio.sleep(0)
    assert told == [], "who was told that it was not sent calls otherwise; not twice"


def test_a_call_while_its_loop_is_closed_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was sent in the last moment; nobody is left to watch over the answer."""
    loop = asyncio.new_event_loop()
    ours, theirs = socket.socketpair()
    told: list[object] = []

    async def connect() -> Line:
        _, made = await loop.create_connection(lambda: Line(("", 0), lambda _: None), sock=ours)
        return made

    def end() -> None:
        last.drop(ConnectionError("closed"))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    last = loop.run_until_complete(connect())
    with ThreadPoolExecutor(1) as board:
        after = Staged(threading.get_ident(), lambda: board.submit(end).result(PATIENCE))
        monkeypatch.setattr(last, "_order", after)

        assert last.ask_from(told.append, "PING")
    assert len(told) == 1, "it failed, and is called otherwise"
    theirs.close()
