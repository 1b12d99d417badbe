"""The Firestore emulator: the one that `FIRESTORE_EMULATOR_HOST` names, or that of an installed
Google Cloud CLI (its component `cloud-firestore-emulator`, which needs Java).
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import Final, Self

from tests.kit.servers import processes
from tests.kit.servers.account import ServerError
from tests.kit.servers.postgres import free_port

VARIABLE: Final = "FIRESTORE_EMULATOR_HOST"
PATIENCE: Final = 60.0
_MAIN: Final = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
_SMALL: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.language=en")


class NoEmulator(Exception):
    """There is none here. Says what would make one."""


class FirestoreEmulator:
    """An emulator, running; ours in a process of its own."""

    def __init__(self) -> None:
        self._given = os.environ.get(VARIABLE)
        self._folder: Path | None = None
        self._pid: int | None = None
        self.host = self._given or f"127.0.0.1:{free_port()}"

    def start(self) -> Self:
        """Start it and return when it answers. `NoEmulator` if there is nothing to start."""
        if self._given:
            return self
        command = _command()
        self._folder = Path(tempfile.mkdtemp(prefix="holdfast-firestore-"))
        address, _, port = self.host.rpartition(":")
        self._pid = processes.launch(
            [*command, "start", f"--host={address}", f"--port={port}"],
            folder=self._folder,
            owner=os.getpid(),
            environment=os.environ,
            unprivileged=False,
        )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if not processes.is_alive(self._pid) or time.monotonic() > deadline:
                log = (self._folder / "server.log").read_text(errors="replace")
                raise ServerError(f"the emulator did not start; its log ends:\n{log[-2000:]}")
            time.sleep(0.05)
        return self

    def close(self) -> None:
        """End it, if it is ours, and remove its folder."""
        if self._pid is not None:
            processes.kill_family(self._pid)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        address, _, port = self.host.rpartition(":")
        try:
            socket.create_connection((address, int(port)), 1).close()
        except OSError:
            return False
        return True

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def _command() -> list[str]:
    """How the emulator of the Google Cloud CLI is started: as `gcloud emulators` does, without it,
    because that takes two seconds more and leaves its children behind.
    """
    gcloud, java = shutil.which("gcloud"), shutil.which("java")
    if gcloud is None:
        raise NoEmulator(
            f"no Firestore emulator here: set {VARIABLE}, or install the Google Cloud CLI with its "
            "component cloud-firestore-emulator"
        )
    home = Path(gcloud).resolve().parent.parent
    jar = home / "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"
    if not jar.exists() or java is None:
        lacking = "Java" if jar.exists() else "the component cloud-firestore-emulator"
        raise NoEmulator(
            f"no Firestore emulator here: the Google Cloud CLI lacks {lacking}. Install it, or set "
            f"{VARIABLE}"
        )
    return [java, *_SMALL, "-cp", str(jar), _MAIN]
