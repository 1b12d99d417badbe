"""What the bench knows of processes."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.machine import cpu_seconds, parent


def test_a_child_that_has_ended_still_counts() -> None:
    before = cpu_seconds(os.getpid())
    burn = "import time\nwhile time.process_time() < 0.3: pass"

    subprocess.run([sys.executable, "-c", burn], check=True)

    assert cpu_seconds(os.getpid()) - before >= 0.25


def test_a_child_knows_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = parent(child.pid)

    assert found == os.getpid()
