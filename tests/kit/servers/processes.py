"""Processes that are not our children: their start under a guard, signals, and their end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.kit.servers import guard
from tests.kit.servers.account import account


def launch(
    command: list[str],
    *,
    folder: Path,
    owner: int,
    environment: Mapping[str, str],
    unprivileged: bool = True,
) -> int:
    """Start a server in its folder, as whom servers run, for as long as `owner` lives.

    Its output goes to `server.log`. Returns its process id. `unprivileged`: as root, drop to the
    servers' account; one that does not mind root stays and needs no folder of its own.
    """
    user = account() if unprivileged else None
    watcher = [sys.executable, "-S", guard.__file__, str(owner), user.pw_name if user else ""]
    started = subprocess.run(
        [*watcher, str(folder), "remove", *command],
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return int(started.stdout)


def is_alive(pid: int) -> bool:
    """Whether the process can still run: a zombie cannot."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def send(pid: int, number: signal.Signals) -> None:
    """Signal a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def wait_for_end(pid: int, *, within: float) -> None:
    """Wait until a process has ended, whoever its parent is."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([descriptor], [], [], within)
    finally:
        os.close(descriptor)
    if not ended:
        raise TimeoutError(f"process {pid} did not end within {within} s")


def children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def kill_family(pid: int) -> None:
    """SIGKILL a process and its children, with no moment in which it could start another."""
    send(pid, signal.SIGSTOP)
    family = [pid, *children(pid)]
    for each in family:
        send(each, signal.SIGKILL)
    deadline = time.monotonic() + 10.0
    while any(is_alive(each) for each in family):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {family} survived SIGKILL")
        time.sleep(0.005)
