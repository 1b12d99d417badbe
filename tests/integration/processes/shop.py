"""A small app on SQLite for the supervisor's tests; its database is named by HOLDFAST_URL."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from pathlib import Path

from holdfast.app import Holdfast

app = Holdfast()


@app.task(timeout=120)
def note(file: str, text: str) -> str:
    with Path(file).open("a") as out:
        out.write(text + "\n")
    return text


@app.task(timeout=120)
def slow(file: str, seconds: float) -> int:
    Path(file).write_text(str(os.getpid()))
    time.sleep(seconds)
    return os.getpid()


@app.task(timeout=120)
def hold_the_gil(file: str, seconds: int) -> int:
    Path(file).write_text(str(os.getpid()))
    ctypes.PyDLL(None).sleep(seconds)
    return os.getpid()


@app.task(timeout=120, executor="process")
def square(number: int) -> int:
    return number * number


@app.task(timeout=120, executor="process")
def encode(file: str) -> None:
    program = subprocess.Popen(["sleep", "60"])
    Path(file).write_text(str(program.pid))
    program.wait()


@app.task(timeout=120, executor="process")
def crash() -> None:
    ctypes.string_at(0)
