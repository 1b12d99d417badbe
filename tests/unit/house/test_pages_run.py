"""Every page does what it shows: its Python runs, its commands run, their output is compared.

How a page says so, in the order of its blocks and in one fresh folder:

    ```python title="tasks.py"     is written to that file
    ```python                      is run as a script
    ```output                      is what the script before it printed
    ```console                     `$ command` lines are run, what follows each is its output

`ID` in a command is the first task id in the last output that had one. A line `…` in an output
stands for any lines, `…` inside a line for any text. ```py is a fragment: it is not run, and a test
of the house only checks that it is Python.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .pages import PAGES, Block, blocks, name_of

RUNNABLE = {"python", "console", "output"}


def runs(page: Path) -> bool:
    return any(block.language in RUNNABLE for block in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if runs(page)], ids=name_of)
def test_the_page_does_what_it_shows(page: Path, tmp_path: Path) -> None:
    printed = task_id = ""
    for block in blocks(page):
        match block.language:
            case "python" if block.title:
                file = tmp_path / block.title
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text)
            case "python":
                script = tmp_path / f"block_at_line_{block.line}.py"
                script.write_text(block.text)
                printed = run([sys.executable, str(script)], tmp_path, block)
            case "output":
                assert_matches(printed, block.text, block)
            case "console":
                for command, expected in sessions(block.text):
                    ready = re.sub(r"\bID\b", task_id, command)
                    printed = run(["sh", "-c", ready], tmp_path, block)
                    assert_matches(printed, expected, block)
                    task_id = first_id(printed) or task_id


def run(command: list[str], folder: Path, block: Block) -> str:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")
    } | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "PYTHONWARNINGS": "error",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTEST_ADDOPTS": "-p no:asyncio -p no:cacheprovider",  # ours, not the page's subject
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{place(block)}: {' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def sessions(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def first_id(printed: str) -> str:
    found = re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", printed)
    return found[0] if found else ""


def assert_matches(printed: str, expected: str, block: Block) -> None:
    lines = [re.escape(line.rstrip()) for line in expected.strip().splitlines()]
    pattern = "\n".join(
        "(?:.*\n?)*?.*" if line == "…" else line.replace("…", ".*") for line in lines
    )
    said = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    assert re.fullmatch(pattern, said), (
        f"{place(block)} shows\n{expected}\nbut it printed\n{printed}"
    )


def place(block: Block) -> str:
    return f"{name_of(block.page)}:{block.line}"
