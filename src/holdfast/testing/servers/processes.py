"""Signals and ends of processes that are not our children."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path


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
