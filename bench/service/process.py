"""The service in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bench.environments import ROOT, Unavailable


@contextmanager
def service(url: str, app: str = "bench.peers.holdfast:app") -> Iterator[tuple[int, int]]:
    """`holdfast server` on a free port: that, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", "holdfast.cli.main", "server", app]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--open-queue", "remote"],
        cwd=ROOT,
        env={
            **os.environ,
            "BENCH_POSTGRES": url,
            "HOLDFAST_URL": url,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise Unavailable("the service did not start")
