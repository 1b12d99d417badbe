"""What the operating system says about a process: alive, stopped, how large.

Linux answers from `/proc`; elsewhere `ps` is asked, which is slower but the same on every Unix.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from enum import StrEnum
from pathlib import Path

_HAS_PROC = Path("/proc/self/stat").exists()
_PR_SET_PDEATHSIG = 1


class Liveness(StrEnum):
    """Whether a process can do anything."""

    RUNNING = "running"
    STOPPED = "stopped"
    """Frozen by SIGSTOP, Ctrl-Z or a debugger: it would not notice that its lease ran out."""
    GONE = "gone"


def liveness(pid: int) -> Liveness:
    """How this process is. A zombie is gone."""
    letter = _state(pid)
    if letter in ("", "Z", "X"):
        return Liveness.GONE
    return Liveness.STOPPED if letter in ("T", "t") else Liveness.RUNNING


def resident(pid: int) -> int:
    """Bytes of memory the process has in use; 0 if it is gone."""
    if _HAS_PROC:
        try:
            pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * resource.getpagesize()
    return int(_ps(pid, "rss") or 0) * 1024


def describe_exit(code: int) -> str:
    """In words how a process ended, from `Popen.returncode`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return f"was killed by signal {-code} ({name})"


def die_with_parent(parent: int) -> None:
    """End this process, at once and whatever it does, when its parent ends. Call it first of all.

    The kernel does it on Linux; it can hit while the interpreter is busy or stuck. (The signal is
    sent when the parent's *thread* that started us ends: start children from a thread that stays.)
    Elsewhere a thread looks twice a second.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()
    if os.getppid() != parent:
        # It was gone before we could ask.
        os._exit(1)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


def _state(pid: int) -> str:
    if _HAS_PROC:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return ""
        # The name before it stands in brackets and may hold anything, brackets too.
        return stat.rpartition(")")[2].split()[0]
    return _ps(pid, "state")[:1]


def _ps(pid: int, field: str) -> str:
    found = subprocess.run(
        ["ps", "-o", f"{field}=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return found.stdout.strip()
