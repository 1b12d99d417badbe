"""Huey on SQLite, the peer: the same empty task, results stored, Huey's own defaults.

Huey 3 leaves `synchronous` at SQLite's default, which is FULL, as ours. It takes and finishes one
task per transaction. `one` is its default worker (one thread), `best` two worker processes.

This file is both the module that Huey's consumer imports and the measuring side.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import huey

HERE = Path(__file__).parent
DATABASE = os.environ.get("BENCH_HUEY_DB", "")
MARKS = os.environ.get("BENCH_HUEY_MARKS", "")
app: Any = huey.SqliteHuey("bench", filename=DATABASE) if DATABASE else None


def noop(number: int) -> int:
    """The empty task; tells when the first one started."""
    if number == 0:
        Path(MARKS).write_bytes(struct.pack("d", time.time()))
    return number


def mark(sent: float) -> float:
    """Record how long the way from submit to start took."""
    descriptor = os.open(MARKS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, struct.pack("d", time.time() - sent))
    os.close(descriptor)
    return sent


if app is not None:
    noop_task: Any = app.task()(noop)
    mark_task: Any = app.task()(mark)


@contextmanager
def consumer(folder: Path, *flags: str) -> Iterator[int]:
    """A running Huey consumer; yields its process id."""
    command = [str(Path(sys.executable).with_name("huey_consumer")), "peer_huey.app", "-q", "-n"]
    process = subprocess.Popen([*command, *flags], cwd=HERE, env=_environment(folder))
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {
        "BENCH_HUEY_DB": str(folder / "huey.db"),
        "BENCH_HUEY_MARKS": str(folder / "marks"),
        "PYTHONPATH": str(HERE),
    }


def run_side(folder: Path, code: str) -> str:
    """Run a snippet against the peer in a process of its own and return what it printed."""
    command = [sys.executable, "-c", f"import time, peer_huey as p\n{code}"]
    done = subprocess.run(
        command, cwd=HERE, env=_environment(folder), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def submit_rate(count: int) -> float:
    """Tasks per second, one call each."""
    with tempfile.TemporaryDirectory() as name:
        code = (
            "t = time.perf_counter()\n"
            f"for i in range({count}): p.noop_task(i)\n"
            f"print({count} / (time.perf_counter() - t))"
        )
        return float(run_side(Path(name), code))


def drain_rate(count: int, *, best: bool = False) -> float:
    """Tasks per second from the first body to the last stored result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_side(folder, f"for i in range({count}): p.noop_task(i)")
        flags = ("-k", "process", "-w", "2") if best else ("-k", "thread", "-w", "1")
        wait = (
            "deadline = time.time() + 120\n"
            f"while p.app.result_count() < {count} and time.time() < deadline: time.sleep(0.01)\n"
            "print(time.time(), p.app.result_count())"
        )
        with consumer(folder, *flags):
            ended, stored = run_side(folder, wait).split()
        assert int(stored) == count, f"huey stored {stored} of {count} results"
        started: float = struct.unpack("d", (folder / "marks").read_bytes())[0]
        return count / (float(ended) - started)


def pickup_seconds(count: int) -> list[float]:
    """Seconds from the submit call to the start of the body, with an idle worker."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with consumer(folder, "-k", "thread", "-w", "1"):
            time.sleep(1.5)
            code = f"for i in range({count}):\n    p.mark_task(time.time())\n    time.sleep(0.02)"
            run_side(folder, code)
            marks = folder / "marks"
            deadline = time.time() + 30
            while marks.stat().st_size < 8 * count and time.time() < deadline:
                time.sleep(0.05)
        return [value for (value,) in struct.iter_unpack("d", marks.read_bytes())]
