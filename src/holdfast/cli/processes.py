"""What the processes of a worker cost, read from /proc (so on Linux only)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds used so far and memory held now (resident, and shared pages divided)."""

    cpu_seconds: float
    rss_mib: float
    pss_mib: float
    processes: int


def tree(pid: int) -> list[int]:
    """A process and all that descend from it."""
    try:
        threads = list((PROC / str(pid) / "task").iterdir())
    except OSError:
        return []
    children = [int(child) for thread in threads for child in _text(thread / "children").split()]
    return [pid, *(below for child in children for below in tree(child))]


def usage(pid: int) -> Usage | None:
    """What a process and its descendants use; None where /proc does not say."""
    if not (PROC / "self" / "smaps_rollup").exists():
        return None
    pids = tree(pid)
    return Usage(
        cpu_seconds=sum(_cpu(each) for each in pids),
        rss_mib=sum(_kib(each, "Rss:") for each in pids) / 1024,
        pss_mib=sum(_kib(each, "Pss:") for each in pids) / 1024,
        processes=len(pids),
    )


def _cpu(pid: int) -> float:
    # The name in brackets may hold blanks, so count from behind it.
    fields = _text(PROC / str(pid) / "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _kib(pid: int, key: str) -> int:
    lines = _text(PROC / str(pid) / "smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(key)), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
