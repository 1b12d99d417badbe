"""What only a terminal shows: colours, fitting columns, questions. On a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from tests.integration.cli.conftest import Ran, Shell, World

COLOUR = re.compile(r"\x1b\[[\d;]*3\d[\d;]*m")


def on_terminal(
    shell: Shell, *arguments: str, columns: int = 100, typed: str = "", **environment: str
) -> Ran:
    """Run a command with a terminal of that width, and somebody typing on it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    settings = shell.environment(TERM="xterm-256color", **environment)
    del settings["COLUMNS"]
    process = subprocess.Popen(
        shell.command(*arguments),
        cwd=shell.folder,
        env=settings,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # how Linux says that the other end was closed
        pass
    os.close(ours)
    return Ran(process.wait(30), shown.decode().replace("\r\n", "\n"), "")


def test_states_have_colours_on_a_terminal_and_none_with_no_color(world: World) -> None:
    coloured = on_terminal(world.shell, "stats")
    plain = on_terminal(world.shell, "stats", NO_COLOR="1")

    assert COLOUR.search(coloured.out)
    assert not COLOUR.search(plain.out)
    assert "completed" in plain.out


def test_a_list_fits_the_terminal_and_keeps_ids_whole(world: World) -> None:
    ran = on_terminal(world.shell, "task", "list", "--state", "dead", columns=80, NO_COLOR="1")

    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in ran.out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith(world.dead)
    assert lines[0].split() == ["id", "name", "state", "what"]


def test_an_error_is_red_on_a_terminal_and_plain_with_no_color(world: World) -> None:
    red = on_terminal(world.shell, "task", "get", "42")
    plain = on_terminal(world.shell, "task", "get", "42", NO_COLOR="1")

    assert red.out.startswith("\x1b[1;31merror:\x1b[0m ")
    assert plain.out.startswith("error: ")


def test_replaying_asks_first_and_keeps_to_a_no(fresh: Shell) -> None:
    fresh.submit("bill", {"customer": "a"})
    fresh.work()

    refused = on_terminal(fresh, "dead", "replay", "--all", typed="n\n")
    agreed = on_terminal(fresh, "dead", "replay", "--all", typed="y\n")

    assert refused.code == 1
    assert "Replay 1 dead letter? [y/N]" in refused.out
    assert "nothing was done" in refused.out
    assert (agreed.code, "Replayed 1 task." in agreed.out) == (0, True)


def test_leaving_a_question_unanswered_does_nothing(fresh: Shell) -> None:
    fresh.submit("bill", {"customer": "a"})
    fresh.work()

    ran = on_terminal(fresh, "dead", "discard", "--all", typed="\x04")

    assert ran.code == 130
    assert len(fresh.ok("dead", "list")["tasks"]) == 1


def test_watching_shows_one_status_line_that_is_replaced(fresh: Shell) -> None:
    task_id = fresh.submit("steps", {"seconds": 1})
    worker = fresh.start("worker", "shop:app", "-q", "steps", "--burst")

    ran = on_terminal(fresh, "task", "get", task_id, "--watch")

    assert worker.wait(30) == 0
    assert "\r\x1b[2Kqueued, attempt 0" in ran.out
    assert "walking" in ran.out
    assert "result" in ran.out
