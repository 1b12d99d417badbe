"""The commands that other commands start: real `holdfast …` processes that die with us.

Each is in a session of its own, so that Ctrl-C reaches only us and we can end it with all it has
started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

_TIED = """
import os, sys
from holdfast.worker.liveness import die_with_parent
die_with_parent(int(sys.argv[1]))
os.execv(sys.executable, [sys.executable, "-m", *sys.argv[2:]])
"""

COMMAND = "holdfast.cli.main"
"""The module of the `holdfast` command."""


def tied(module: str, *arguments: str) -> list[str]:
    """`python -m module …` as a command that ends when this process does. Start it from a thread
    that stays: with that, it ends.
    """
    return [sys.executable, "-c", _TIED, str(os.getpid()), module, *arguments]


def start_worker(
    app: str,
    *options: str,
    environment: Mapping[str, str] | None = None,
    log: IO[bytes] | int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start `holdfast worker app …`. Call it from a thread that stays: with it, the worker ends."""
    return subprocess.Popen(
        tied(COMMAND, "worker", app, *options),
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def kill_group(leader: subprocess.Popen[bytes]) -> None:
    """End a worker and whatever it started, at once."""
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()
