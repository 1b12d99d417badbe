"""Several processes race to set up one file. What they do next is in the conformance suites."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.core.query import TaskFilter
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing.suites.base import MANY

HERE = Path(__file__).parent
Child = subprocess.Popen[str]


@contextmanager
def children(role: str, *arguments: object, number: int) -> Iterator[list[Child]]:
    """Start some processes in a role; whatever happens, they end here."""
    command = [sys.executable, str(HERE / "children.py"), role, *map(str, arguments)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(number)
    ]
    try:
        yield started
    finally:
        for child in started:
            child.kill()
            child.communicate()


def let_go(racers: list[Child]) -> list[list[str]]:
    """Let all run at once; returns the lines that each says."""
    for child in racers:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    said = [child.communicate(timeout=60)[0].splitlines() for child in racers]
    assert [child.returncode for child in racers] == [0] * len(racers)
    return said


async def test_processes_that_race_to_set_up_a_new_file_all_succeed(path: Path) -> None:
    with children("open_and_add", path, number=6) as racers:
        said = let_go(racers)

    async with SQLiteStore(path) as store:
        found = {task.id for task in (await store.list(TaskFilter(), limit=MANY)).tasks}
        assert found == {line for lines in said for line in lines}
        assert len(found) == 6
        assert list(await store.check()) == []
