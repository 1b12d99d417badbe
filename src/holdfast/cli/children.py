"""The workers that the demo and the bench start: real `holdfast worker` commands that die with us.

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
os.execv(sys.executable, [sys.executable, "-m", "holdfast.cli.main", "worker", *sys.argv[2:]])
"""


def start_worker(
    app: str,
    *options: str,
    environment: Mapping[str, str] | None = None,
    log: IO[bytes] | int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start `holdfast worker app …`. Call it from a thread that stays: with it, the worker ends."""
    return subprocess.Popen(
        [sys.executable, "-c", _TIED, str(os.getpid()), app, *options],
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
