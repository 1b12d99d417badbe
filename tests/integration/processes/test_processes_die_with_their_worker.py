"""kill -9 of a worker leaves none of its processes behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.testing.eventually import eventually

from .conftest import SPEC, is_gone, pid_in

PARENT = """
import asyncio, sys
sys.path.insert(0, sys.argv[3])
from conftest import attempt
from holdfast.settings import Settings
from holdfast.worker.loading import load_app
from holdfast.worker.processes.runner import ProcessRunner

async def main():
    app = load_app(sys.argv[1])
    task = app.registry["bodies." + sys.argv[4]]
    await ProcessRunner(sys.argv[1], Settings.load(), 1).run(attempt(task, file=sys.argv[2]))

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["sleeps", "spins", "holds_the_gil"])
def test_a_process_dies_with_its_worker(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    here = str(Path(__file__).parent)
    with subprocess.Popen([sys.executable, "-c", PARENT, SPEC, str(file), here, kind]) as parent:
        pid = asyncio.run(eventually(lambda: pid_in(file), within=30))

        parent.kill()
        parent.wait()

        asyncio.run(eventually(lambda: is_gone(pid), within=1))
