"""Several processes on one file, racing for real."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing.factories import new_tasks
from holdfast.testing.suites.base import MANY, add

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


def wait_until_ready(racers: list[Child]) -> None:
    for child in racers:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"


async def test_processes_that_race_to_set_up_a_new_file_all_succeed(path: Path) -> None:
    with children("open_and_add", path, number=6) as racers:
        said = let_go(racers)

    async with SQLiteStore(path) as store:
        found = {task.id for task in (await store.list(TaskFilter(), limit=MANY)).tasks}
        assert found == {line for lines in said for line in lines}
        assert len(found) == 6
        assert list(await store.check()) == []


async def test_claimers_in_many_processes_never_share_a_task(path: Path) -> None:
    async with SQLiteStore(path) as store:
        batch = new_tasks(600)
        await add(store, *batch[:300])
        await add(store, *batch[300:])
        with children("claim_all", path, number=4) as racers:
            wait_until_ready(racers)
            shares = [json.loads(line) for (line,) in let_go(racers)]

        got = Counter(task_id for share in shares for task_id in share)
        assert got == Counter(task.id for task in batch)
        assert await store.count(TaskFilter(states=frozenset({State.RUNNING})), limit=MANY) == 600
        assert list(await store.check()) == []


async def test_equal_submits_from_many_processes_make_one_task(path: Path) -> None:
    async with SQLiteStore(path) as store:
        with children("submit_same", path, 50, number=4) as racers:
            wait_until_ready(racers)
            lines = [line.split() for lines in let_go(racers) for line in lines]

        assert len(lines) == 200
        assert {kind for kind, _, _ in lines} == {"unique_key", "idempotency_key"}
        for wanted in ("unique_key", "idempotency_key"):
            answers = [(task_id, outcome) for kind, task_id, outcome in lines if kind == wanted]
            assert len({task_id for task_id, _ in answers}) == 1
            assert Counter(outcome for _, outcome in answers)["created"] == 1
        assert await store.count(TaskFilter(), limit=MANY) == 2


async def test_what_was_acknowledged_survives_kill_9(path: Path) -> None:
    """The child is killed in the middle of its writing, a few times; each id it said is there."""
    acknowledged: set[str] = set()
    for _ in range(3):
        with children("submit_until_killed", path, number=1) as (child,):
            assert child.stdout
            said = [child.stdout.readline() for _ in range(40)]
            child.kill()
            said += child.communicate()[0].splitlines()
        whole = [line.split() for line in said if line.endswith("\n") or len(line.split()) == 3]
        acknowledged |= {word for words in whole for word in words if len(word) == 36}

    async with SQLiteStore(path) as store:
        found: set[str] = set()
        after = None
        while True:
            page = await store.list(TaskFilter(), limit=500, after=after)
            found |= {task.id for task in page.tasks}
            after = page.next
            if after is None:
                break
        assert len(acknowledged) >= 3 * 40 * 3
        assert acknowledged <= found
        assert list(await store.check()) == []
