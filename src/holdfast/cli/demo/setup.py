"""What the demo runs on: a folder with a fresh store and a journal, and real worker processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self

from holdfast.cli.children import kill_group, start_worker
from holdfast.cli.demo import journal
from holdfast.cli.places import sqlite_url

APP = "holdfast.cli.demo_tasks:app"

LEASE = 3.0
"""Seconds until a silent worker counts as lost: short, so that the audience need not wait."""


class DemoSetup:
    """Sets the environment up when entered, and takes everything down when left.

    The settings go through the environment because that is how the workers, which are separate
    processes, can get the very same ones.
    """

    def __init__(self, url: str | None, *, keep: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
        self.url = url or sqlite_url(self.folder / "demo.db")
        self.journal = self.folder / "journal.log"
        self.worker_log = self.folder / "workers.log"
        self.groups: list[subprocess.Popen[bytes]] = []
        self._keep = keep

    def __enter__(self) -> Self:
        os.environ |= {
            "HOLDFAST_URL": self.url,
            "HOLDFAST_LEASE": f"{LEASE}s",
            "HOLDFAST_HEARTBEAT": "0.5s",
            "HOLDFAST_SWEEP": "0.5s",
            "HOLDFAST_DRAIN": "5s",
            journal.VARIABLE: str(self.journal),
        }
        # Without this, a service manager's or `timeout`'s SIGTERM would leave the folder behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return self

    def __exit__(self, *_: object) -> None:
        for group in self.groups:
            kill_group(group)
        if not self._keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start_workers(self, groups: int, concurrency: int) -> None:
        """Start that many `holdfast worker` commands, as a user would in that many terminals."""
        with self.worker_log.open("ab") as log:
            for _ in range(groups):
                self.groups.append(start_worker(APP, "--concurrency", str(concurrency), log=log))

    def stop_workers(self, patience: float = 15.0) -> list[int]:
        """Ask all to leave (SIGTERM) and return their exit codes."""
        for group in self.groups:
            group.send_signal(signal.SIGTERM)
        codes = []
        for group in self.groups:
            try:
                codes.append(group.wait(patience))
            except subprocess.TimeoutExpired:
                codes.append(-1)
        return codes

    def last_words(self, lines: int = 12) -> str:
        """The end of the workers' log, for when something went wrong."""
        if not self.worker_log.exists():
            return ""
        return "\n".join(self.worker_log.read_text(errors="replace").splitlines()[-lines:])
