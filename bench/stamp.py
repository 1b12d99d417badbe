"""The line under a part's heading: which code was measured, when, and on what machine."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime

from bench.environments import ROOT
from bench.machine import Watch, describe

MEASURED = ("src", "bench")
"""The folders whose changes change figures."""


def stamp(commit: str, watch: Watch, versions: Sequence[str]) -> str:
    """Absolute figures belong to the machine and the minute; this names both. `commit` is what was
    there when the measuring began.
    """
    today = datetime.now(UTC).date()
    machine = ", ".join([describe(), *versions])
    return f"Measured at {commit}, on {today}: {machine}; {_others(watch.foreign)}.\n"


def code() -> str:
    """The commit that is checked out, and whether it is just that."""
    name = _git("rev-parse", "--short=7", "HEAD")
    if not name:
        return "a commit unknown"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *MEASURED)
    return f"commit {name}" + (" and changes on top" if changed else "")


def _git(*arguments: str) -> str:
    """What git says; nothing if there is no git, or no clone."""
    try:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _others(readings: Sequence[float]) -> str:
    if not readings:
        return "how busy others kept it is not known"
    busy = f"others kept {statistics.median(readings):.1f} cores busy"
    if len(readings) == 1:
        return busy
    spread = f"{min(readings):.1f} to {max(readings):.1f}"
    return f"{busy} (median of {len(readings)} readings; {spread})"
