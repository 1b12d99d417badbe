"""`holdfast top` on a real pseudo-terminal: what is seen, what keys do, what it survives."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Shell
from tests.kit.servers.postgres import PostgresServer
from tests.kit.terminal import Terminal

from holdfast.stores.sqlite.store import SQLiteStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_task

COLOUR = re.compile(rb"\x1b\[[\d;]*3\d[\d;]*m")


@contextmanager
def top(
    shell: Shell, *arguments: str, columns: int = 100, lines: int = 24, **environment: str
) -> Iterator[Terminal]:
    settings = shell.environment(**environment)
    if "COLUMNS" not in environment:
        del settings["COLUMNS"]
    with Terminal(
        shell.command("top", *arguments),
        environment=settings,
        folder=shell.folder,
        columns=columns,
        lines=lines,
    ) as terminal:
        yield terminal


@contextmanager
def worker(shell: Shell, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    process = shell.start("worker", "shop:app", *options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


async def until(terminal: Terminal, *words: str, within: float = 20.0) -> None:
    try:
        await eventually(lambda: terminal.shows(*words), within=within)
    except (AssertionError, TimeoutError) as error:
        raise AssertionError(f"{words} not in:\n{terminal.shown}") from error


def paused(shell: Shell) -> dict[str, bool]:
    return {each["queue"]: each["paused"] for each in shell.ok("queue", "list")["queues"]}


async def test_the_numbers_are_there_and_follow_the_store(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})
    fresh.submit("bill", {"customer": "ghost"})
    with top(fresh) as terminal:
        await until(terminal, "queued 2", "dead_letter 0", "No worker is alive.")
        assert re.search(r"> default +2 +0", terminal.shown)

        with worker(fresh):
            await until(terminal, "1 completed", "1 dead letter", "no customer 'ghost'", "0/10")
            assert re.search(r"[▁▂▃▄▅▆▇█]", terminal.line_with("last minute"))
            assert "active" in terminal.shown

        await until(terminal, "No worker is alive.")
        terminal.press("q")
        assert await asyncio.to_thread(terminal.process.wait, 10) == 0
        await eventually(terminal.is_as_it_was)


async def test_keys_pause_and_resume_the_queue_that_is_selected(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"}, "--queue", "attic")
    fresh.submit("send_mail", {"to": "ann"}, "--queue", "mail")
    with top(fresh) as terminal:
        await until(terminal, "> attic")

        terminal.press("\x1b[B")
        await until(terminal, "> mail")
        terminal.press("p")
        await until(terminal, "Queue 'mail' is paused")
        assert paused(fresh) == {"attic": False, "mail": True}
        assert "paused" in terminal.line_with("> mail")

        terminal.press("p")
        await until(terminal, "Queue 'mail' goes on.")
        assert paused(fresh) == {"attic": False, "mail": False}
        terminal.press("\x1b[A")
        await until(terminal, "> attic")


async def test_a_key_drains_the_worker_that_is_selected(fresh: Shell) -> None:
    fresh.ok("migrate")
    first, second = (fresh.start("worker", "shop:app", "--name", name) for name in ("one", "two"))
    try:
        with top(fresh) as terminal:
            await until(terminal, "one-", "two-")
            terminal.press("\t")
            await eventually(lambda: bool(re.search(r"> (one|two)-", terminal.shown)))
            if not terminal.line_with("> one-"):
                terminal.press("\x1b[B")
            await until(terminal, "> one-")
            terminal.press("d")
            await until(terminal, "was asked to finish what it has and leave")
            assert await asyncio.to_thread(first.wait, 30) == 0
            assert second.poll() is None
    finally:
        for process in (first, second):
            process.terminate()
            process.wait(30)


async def test_replaying_asks_first(fresh: Shell) -> None:
    fresh.submit("bill", {"customer": "a"})
    fresh.work()
    with top(fresh) as terminal:
        await until(terminal, "dead_letter 1")

        terminal.press("r")
        await until(terminal, "Replay 1 dead letter? [y/n]")
        terminal.press("n")
        await until(terminal, "Nothing was done.")
        assert len(fresh.ok("dead", "list")["tasks"]) == 1

        terminal.press("r")
        await until(terminal, "Replay 1 dead letter? [y/n]")
        terminal.press("y")
        await until(terminal, "Replayed 1 dead letter.", "queued 1")
        assert fresh.ok("dead", "list")["tasks"] == []


async def test_it_outlives_a_server_that_dies_and_comes_back(
    fresh: Shell, own_postgres: PostgresServer
) -> None:
    fresh = replace(fresh, url=own_postgres.create_database("shop"))
    fresh.submit("send_mail", {"to": "ann"})
    with top(fresh) as terminal:
        await until(terminal, "queued 1")

        own_postgres.stop("immediate")
        await until(terminal, "The store is away for", "trying again", "> default")
        terminal.press("p")
        await until(terminal, "That failed:")

        own_postgres.start()
        await eventually(lambda: not terminal.shows("The store is away"), within=20.0)
        fresh.submit("send_mail", {"to": "bob"})
        await until(terminal, "queued 2")


async def test_a_frame_fits_whatever_the_size_and_follows_a_change(fresh: Shell) -> None:
    async with SQLiteStore(Path(fresh.url.removeprefix("sqlite:///"))) as store:
        queues = [f"a_queue_with_a_long_name_{number:02}" for number in range(30)]
        await store.add([new_task(queue=queue) for queue in queues], idempotency_window=WINDOW)
    with top(fresh, columns=120, lines=50, LINES="24", COLUMNS="80") as terminal:
        await until(terminal, "waiting", "blocked", "name_29", "q quit")

        terminal.resize(40, 12)
        await eventually(lambda: not terminal.shows("blocked  "))
        await until(terminal, "> a_queue", "…")
        assert max(map(len, terminal.shown.splitlines())) <= 40
        terminal.press("\x1b[B" * 29)
        await until(terminal, "> a_queue")
        assert terminal.line_with("> a_queue").strip()

        terminal.resize(100, 40)
        await until(terminal, "> a_queue_with_a_long_name_29", "No failed task is kept.")

        for size in ((20, 5), (5, 2), (100, 24)):
            terminal.resize(*size)
            await asyncio.sleep(0.2)
        await until(terminal, "> a_queue_with_a_long_name_29")
        assert terminal.process.poll() is None


@pytest.mark.parametrize(
    "end",
    [
        lambda terminal: terminal.press("\x03"),
        lambda terminal: terminal.process.send_signal(signal.SIGTERM),
        lambda terminal: terminal.process.send_signal(signal.SIGHUP),
    ],
    ids=["Ctrl-C", "SIGTERM", "SIGHUP"],
)
async def test_the_terminal_is_given_back_however_it_ends(
    fresh: Shell, end: Callable[[Terminal], None]
) -> None:
    fresh.ok("migrate")
    with top(fresh) as terminal:
        await until(terminal, "No queue has tasks.")
        assert not terminal.is_as_it_was()

        end(terminal)

        assert await asyncio.to_thread(terminal.process.wait, 10) == 0
        await eventually(terminal.is_as_it_was)
        assert b"Traceback" not in terminal.raw


async def test_an_error_of_ours_gives_the_terminal_back_too(fresh: Shell, tmp_path: Path) -> None:
    fresh.ok("migrate")
    script = tmp_path / "broken.py"
    script.write_text(
        "import sys\n"
        "from holdfast.cli.top_facts import Eye\n"
        "look, rounds = Eye.look, []\n"
        "async def broken(self):\n"
        "    rounds.append(1)\n"
        "    if len(rounds) > 2: raise ZeroDivisionError('a bug')\n"
        "    return await look(self)\n"
        "Eye.look = broken\n"
        "from holdfast.cli.main import main\n"
        "sys.exit(main(['top']))\n"
    )
    command = [fresh.command()[0], str(script)]
    with Terminal(command, environment=fresh.environment(), folder=fresh.folder) as terminal:
        assert await asyncio.to_thread(terminal.process.wait, 20) == 1
        await eventually(terminal.is_as_it_was)
        await eventually(lambda: b"ZeroDivisionError: a bug" in terminal.raw)


async def test_ctrl_z_gives_the_terminal_back_for_as_long_as_it_sleeps(fresh: Shell) -> None:
    fresh.ok("migrate")
    with top(fresh) as terminal:
        await until(terminal, "No queue has tasks.")

        terminal.press("\x1a")
        await eventually(lambda: state_of(terminal.process.pid) == "T")
        await eventually(terminal.is_as_it_was)
        terminal.process.send_signal(signal.SIGCONT)
        fresh.submit("send_mail", {"to": "ann"})

        await until(terminal, "queued 1")
        terminal.press("q")
        assert await asyncio.to_thread(terminal.process.wait, 10) == 0


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def test_there_are_colours_on_a_terminal_and_none_with_no_color(fresh: Shell) -> None:
    fresh.submit("bill", {"customer": "a"})
    fresh.work()
    with top(fresh) as coloured:
        await until(coloured, "no customer")
        assert COLOUR.search(coloured.raw)
    with top(fresh, NO_COLOR="1") as plain:
        await until(plain, "no customer")
        assert not COLOUR.search(plain.raw)


async def test_what_a_task_says_cannot_steer_the_terminal(fresh: Shell) -> None:
    fresh.submit("bill", {"customer": "\x1b]0;mine\x07\x1b[2J"})
    fresh.work()
    with top(fresh, columns=160) as terminal:
        await until(terminal, "newest errors", "ValueError")

    assert b"\x1b]0;mine" not in terminal.raw
    assert b"\x1b[2J\x07" not in terminal.raw


def test_once_prints_a_frame_for_scripts(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})
    fresh.submit("bill", {"customer": "ghost"})
    fresh.work("-q", "none")

    ran = fresh.run("top", "--once")
    data = fresh.run("top", "--once", "--json").json

    assert ran.code == 0
    assert "queued 2" in ran.out
    assert re.search(r"default +2 +0", ran.out)
    assert "\x1b" not in ran.out
    assert data["statuses"]["queued"] == 2
    assert data["newest_errors"] == []


def test_without_a_terminal_it_says_what_works_instead(fresh: Shell) -> None:
    fresh.ok("migrate")

    ran = fresh.run("top")

    assert ran.code == 2
    assert "--once" in ran.err
