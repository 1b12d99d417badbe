"""A type checker catches a wrong argument, also after `.options()`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).with_name("examples.py")
ROOT = EXAMPLES.parents[2]


def expected() -> set[tuple[int, str]]:
    lines = enumerate(EXAMPLES.read_text().splitlines(), start=1)
    found = [(number, re.search(r"# error: ([a-z, -]+)$", line)) for number, line in lines]
    return {(n, code) for n, match in found if match for code in match[1].split(", ")}


def test_mypy_reports_exactly_the_marked_lines() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-pretty", str(EXAMPLES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    reported = {
        (int(line), code)
        for line, code in re.findall(r"examples\.py:(\d+): error: .*\[([a-z-]+)\]", done.stdout)
    }
    assert reported == expected(), done.stdout + done.stderr


def test_there_are_marked_lines_to_report() -> None:
    assert len(expected()) > 40
