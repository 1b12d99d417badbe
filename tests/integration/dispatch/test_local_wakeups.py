"""Wake-ups between processes over the meeting place of one database file."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from holdfast.dispatch.local.dispatcher import LocalDispatcher
from holdfast.dispatch.local.folder import folder_of

Dispatch = Callable[[Path], LocalDispatcher]

LISTEN = """
import asyncio, sys, time
from holdfast.dispatch.local.dispatcher import LocalDispatcher

async def main():
    async with LocalDispatcher(sys.argv[1]).listen(sys.argv[2].split(",")) as listener:
        print("ready", flush=True)
        while True:
            if await listener.wait(30):
                print(time.monotonic_ns(), flush=True)

asyncio.run(main())
"""


class Other:
    """Another process that listens and prints when it was woken."""

    def __init__(self, database: Path, queues: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LISTEN, str(database), queues],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
async def dispatch() -> AsyncIterator[Dispatch]:
    made: list[LocalDispatcher] = []

    def make(path: Path) -> LocalDispatcher:
        made.append(LocalDispatcher(path))
        return made[-1]

    yield make
    for dispatcher in made:
        await dispatcher.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "tasks.db"
    place = folder_of(tmp_path / "tasks.db")
    for left in place.glob("*"):
        left.unlink()
    if place.exists():
        place.rmdir()


async def test_a_worker_in_another_process_is_woken_within_milliseconds(
    dispatch: Dispatch, database: Path
) -> None:
    other = Other(database, "mail")
    dispatcher = dispatch(database)
    delays = []
    try:
        for _ in range(50):
            await asyncio.sleep(0.005)
            started = time.monotonic_ns()
            dispatcher.wake(["mail"])
            delays.append((int(other.line()) - started) / 1e6)
    finally:
        other.kill()

    # Typically 0.1 ms; the bound only tells a wake-up from a poll, on however busy a machine.
    assert statistics.median(delays) < 50


async def test_other_queues_do_not_wake_it(dispatch: Dispatch, database: Path) -> None:
    mail, films = Other(database, "mail"), Other(database, "films,mail2")
    dispatcher = dispatch(database)
    try:
        dispatcher.wake(["films"])
        assert films.line()
        asked_at = time.monotonic_ns()
        dispatcher.wake(["mail"])
        woken_at = int(mail.line())
    finally:
        mail.kill()
        films.kill()

    assert woken_at >= asked_at


async def test_a_killed_listener_is_forgotten_and_its_files_removed(
    dispatch: Dispatch, database: Path
) -> None:
    other = Other(database, "mail")
    dispatcher = dispatch(database)
    other.kill()
    assert len(list(folder_of(database).iterdir())) == 2

    dispatcher.wake(["mail"])

    assert list(folder_of(database).iterdir()) == []


async def test_a_new_listener_tidies_up_after_a_killed_one_that_had_a_wake_up(
    dispatch: Dispatch,
    database: Path,
) -> None:
    other = Other(database, "mail")
    dispatcher = dispatch(database)
    os.kill(other.process.pid, signal.SIGSTOP)
    dispatcher.wake(["mail"])
    other.kill()

    async with dispatcher.listen(["mail"]):
        files = list(folder_of(database).iterdir())

    assert len(files) == 2
    assert all(file.name.startswith(f"{os.getpid()}-") for file in files)
    assert not folder_of(database).exists()


async def test_what_was_left_at_another_database_is_tidied_up_too(
    dispatch: Dispatch, database: Path, tmp_path: Path
) -> None:
    other = Other(tmp_path / "forgotten.db", "mail")
    other.kill()
    assert folder_of(tmp_path / "forgotten.db").exists()

    async with dispatch(database).listen(["mail"]):
        pass

    assert not folder_of(tmp_path / "forgotten.db").exists()


async def test_a_listener_of_the_same_dispatcher_is_woken_too(
    dispatch: Dispatch, database: Path
) -> None:
    dispatcher = dispatch(database)

    async with dispatcher.listen(["mail"]) as listener:
        dispatcher.wake(["films"])
        missed = await listener.wait(0.01)
        dispatcher.wake(["mail"])
        woken = await listener.wait(30)

    assert (missed, woken) == (False, True)


async def test_two_dispatchers_of_one_process_reach_each_other(
    dispatch: Dispatch, database: Path
) -> None:
    ours, theirs = dispatch(database), dispatch(database)

    async with ours.listen(None) as listener:
        theirs.wake(["mail"])
        theirs.wake(["mail"])
        answers = [await listener.wait(30), await listener.wait(0.02)]

    assert answers == [True, False]


async def test_a_link_to_the_database_leads_to_the_same_place(
    dispatch: Dispatch, database: Path, tmp_path: Path
) -> None:
    _link(tmp_path / "link.db", database)

    async with dispatch(database).listen(None) as listener:
        dispatch(tmp_path / "link.db").wake(["mail"])
        woken = await listener.wait(30)

    assert woken


async def test_a_listener_that_came_after_the_first_wake_is_found(
    dispatch: Dispatch, database: Path
) -> None:
    dispatcher, submitter = dispatch(database), dispatch(database)

    async with dispatcher.listen(["a"]) as first:
        submitter.wake(["a"])
        async with dispatcher.listen(["b"]) as second:
            submitter.wake(["a", "b"])
            answers = [await first.wait(30), await second.wait(30)]

    assert answers == [True, True]


async def test_a_forked_child_wakes_its_parent_by_the_socket(
    dispatch: Dispatch, database: Path
) -> None:
    dispatcher = dispatch(database)

    async with dispatcher.listen(["mail"]) as listener:
        child = os.fork()
        if child == 0:
            dispatcher.wake(["mail"])
            os._exit(0)
        woken = await listener.wait(30)
        _reap(child)
        place = list(folder_of(database).iterdir())

    assert woken
    assert len(place) == 2


async def test_files_that_were_tidied_away_come_back(dispatch: Dispatch, database: Path) -> None:
    dispatcher, submitter = dispatch(database), dispatch(database)

    async with dispatcher.listen(["mail"]) as listener:
        for file in folder_of(database).iterdir():
            file.unlink()
        await listener.wait(0.01)
        submitter.wake(["mail"])
        woken = await listener.wait(30)

    assert woken


async def test_a_place_that_is_open_to_others_is_not_used_and_that_is_said_once(
    dispatch: Dispatch, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = folder_of(database)
    place.parent.mkdir(mode=0o700, exist_ok=True)
    place.mkdir()
    place.chmod(0o755)
    dispatcher, stranger = dispatch(database), dispatch(database)

    with caplog.at_level(logging.WARNING, "holdfast"):
        async with dispatcher.listen(None), dispatcher.listen(None) as listener:
            stranger.wake(["mail"])
            from_outside = await listener.wait(0.05)
            dispatcher.wake(["mail"])
            from_inside = await listener.wait(30)

    assert (from_outside, from_inside) == (False, True)
    assert [record.getMessage().split()[0] for record in caplog.records] == ["dispatch.unavailable"]


async def test_waking_a_busy_worker_sends_nothing(dispatch: Dispatch, database: Path) -> None:
    other = Other(database, "mail")
    dispatcher = dispatch(database)
    os.kill(other.process.pid, signal.SIGSTOP)
    try:
        started = time.perf_counter()
        for _ in range(2000):
            dispatcher.wake(["mail"])
        seconds = time.perf_counter() - started
        os.kill(other.process.pid, signal.SIGCONT)
        assert other.line()
    finally:
        other.kill()

    # A system call for the directory and none for the mailbox; about 3 µs each.
    assert seconds < 1


def _link(link: Path, target: Path) -> None:
    target.touch()
    link.symlink_to(target)


def _reap(pid: int) -> None:
    os.waitpid(pid, 0)
