"""Each example runs by itself, in seconds, and prints what `expected/` says it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
EXPECTED = Path(__file__).parent / "expected"
APART = ("test_", "http_worker")
"""A test file has its own test below; workers over HTTP need a server: `test_http_workers.py`."""


def environment(folder: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return ours | {"TMPDIR": str(folder), "PYTHONWARNINGS": "error", "COLUMNS": "100"}


@pytest.mark.parametrize(
    "example", [e for e in EXAMPLES if not e.stem.startswith(APART)], ids=lambda e: e.stem
)
def test_an_example_prints_what_it_should(example: Path, tmp_path: Path) -> None:
    expected = (EXPECTED / f"{example.stem}.txt").read_text()

    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == expected
    assert list(tmp_path.iterdir()) == [], "an example must clean up after itself"


def test_the_example_of_testing_your_tasks_is_a_green_test_file(tmp_path: Path) -> None:
    example = ROOT / "examples" / "test_your_tasks.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]

    done = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(tmp_path), str(example)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_no_expected_output_is_left_over() -> None:
    assert {f.stem for f in EXPECTED.iterdir()} <= {e.stem for e in EXAMPLES}
