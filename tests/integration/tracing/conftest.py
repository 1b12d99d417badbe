"""Real processes that send their spans to a real receiver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kit.otlp import SpanReceiver
from tests.kit.receivers import running

ROOT = Path(__file__).parents[3]
MILL = "tests.integration.tracing.mill"


class Processes:
    """Starts programs on one store, with one receiver of their spans."""

    def __init__(self, folder: Path, receiver: SpanReceiver) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/tasks.db"
        self.receiver = receiver
        self.environment = {
            **os.environ,
            "HOLDFAST_URL": self.url,
            "HOLDFAST_OTEL": "true",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }

    def run(self, *command: str, **environment: str) -> str:
        """Run a module to its end; what it printed. Its log is in `self.log`."""
        done = subprocess.run(
            [sys.executable, "-m", *command],
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.log = done.stderr
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, *names: str, **environment: str) -> list[str]:
        """Submit these in a process of its own; the tasks' ids."""
        return self.run(MILL, *names, **environment).split()

    def work(self, **environment: str) -> float:
        """Work off what there is in a `holdfast worker`; how many seconds that took."""
        began = time.monotonic()
        self.run("holdfast", "worker", f"{MILL}:app", "--burst", "--json", **environment)
        return time.monotonic() - began

    @property
    def events(self) -> list[str]:
        """What the log of the last run says."""
        return [json.loads(line)["event"] for line in self.log.splitlines()]

    @contextmanager
    def started(self, *command: str, **environment: str) -> Iterator[Any]:
        """A `holdfast` command at work; what it logs, line by line. It drains at the end."""
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *command, "--json"],
            env=self.environment | environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        try:
            yield map(json.loads, process.stderr)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        assert process.returncode == 0


@pytest.fixture
def receiver() -> Iterator[SpanReceiver]:
    with running(SpanReceiver()) as one:
        yield one


@pytest.fixture
def processes(tmp_path: Path, receiver: SpanReceiver) -> Processes:
    return Processes(tmp_path, receiver)
