"""Forks a real process per command, with the imports done: they are most of a command's cost.

Reads one JSON request per line (arguments, environment, folder, files for the standard streams) and
answers with the exit code. What is tested is unchanged: own process, own streams, own exit code.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from holdfast.cli.main import app, run

WARM = (
    "holdfast.app",
    "holdfast.cli.tables",
    "holdfast.dispatch.local.dispatcher",
    "holdfast.stores.sqlite.store",
    "holdfast.worker.loading",
)


def serve() -> None:
    for name in WARM:
        import_module(name)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        app(["queue", "--help"], standalone_mode=False)  # Typer, too, does much at its first use
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            become(request)
            run()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def become(request: dict[str, Any]) -> None:
    """Be the process that the test asked for."""
    for number, (path, flags) in enumerate(
        [
            (request["stdin"], os.O_RDONLY),
            (request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (request["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ]
    ):
        file = os.open(path, flags)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = ["holdfast", *request["arguments"]]


if __name__ == "__main__":
    serve()
