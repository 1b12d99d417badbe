"""What the machine did while we measured: processor time by tree of processes, ours and others'."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
_HZ = os.sysconf("SC_CLK_TCK")


def cpu_seconds(*roots: int) -> float:
    """Processor seconds of processes and all their descendants, those that have ended included.

    From one pass over all processes: the kernel's own lists of children skip some while others end.
    """
    table = _processes()
    wanted = set(roots)
    # A child may have a smaller number than its parent once numbers have wrapped round.
    while more := {pid for pid, (above, _) in table.items() if above in wanted} - wanted:
        wanted |= more
    return sum(seconds for pid, (_, seconds) in table.items() if pid in wanted)


def _processes() -> dict[int, tuple[int, float]]:
    """Every process: its parent, and its processor seconds with those of children waited for."""
    table = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            table[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15])) / _HZ
    return table


def parent(pid: int) -> int | None:
    """The process that started this one; None where the system does not tell."""
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _stat(pid: int) -> list[str]:
    try:
        # The name in brackets may hold blanks, so count from behind it.
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def describe() -> str:
    return f"{os.cpu_count()} cores, {platform.system()}, CPython {platform.python_version()}"


@dataclass(slots=True)
class Watch:
    """Counts the cores that others kept busy. `servers` are ours, though no children of ours."""

    servers: set[int] = field(default_factory=set)
    foreign: list[float] = field(default_factory=list)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Add one reading for what happens in this context."""
        if not (PROC / "stat").exists():
            yield
            return
        began, before = time.monotonic(), self._others()
        yield
        passed = time.monotonic() - began
        self.foreign.append(max(0.0, (self._others() - before) / passed))

    def _others(self) -> float:
        line = (PROC / "stat").read_text().partition("\n")[0]
        user, nice, system, _idle, _wait, *rest = (int(word) for word in line.split()[1:9])
        return (user + nice + system + sum(rest)) / _HZ - cpu_seconds(os.getpid(), *self.servers)
