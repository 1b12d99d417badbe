"""The SQL itself: every block is used, every plan is the one meant, and no cost grows."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import State, TaskId, WorkerId
from holdfast.stores import sqlite
from holdfast.stores.sqlite import SQLiteStore, numbers, queries
from holdfast.stores.sqlite.filters import query
from holdfast.stores.sqlite.queries import (
    CLAIMS,
    FILTERS,
    GATES,
    HISTORY,
    OPERATIONS,
    RECORDS,
    SETTLEMENTS,
    STATS,
    TASKS,
    WORKERS,
    _spread,
)
from holdfast.testing.factories import new_task, new_tasks, success
from holdfast.testing.suites.base import add, claim, save

NOUNS = {
    name: blocks
    for name, blocks in vars(queries).items()
    if name.isupper() and isinstance(blocks, dict)
}
FOLDER = Path(sqlite.__file__).parent
PARENT = TaskId("p")
CHILDREN = "SEARCH task USING INDEX task_parent (parent_id=?)"


def test_every_block_is_used_and_every_name_exists() -> None:
    code = "\n".join(file.read_text() for file in FOLDER.glob("*.py"))
    used = set(re.findall(r'([A-Z]+)\["(\w+)"\]', code))
    # These names are computed: filter clauses are named like the fields of `TaskFilter`, the
    # columns an operation needs and the slices of the promoter are arguments.
    used |= {("FILTERS", name) for name in TaskFilter.__dataclass_fields__}
    used |= {
        ("FILTERS", name)
        for name in ("after", "later_than", "dead_end", "waiting", "ready", "blocked", "running")
    }
    used |= {("FILTERS", f"page_{order.name.lower()}") for order in Order}
    used |= {
        ("FILTERS", name)
        for name in ("ended_after", "ended_later_than", "edge", "elsewhere_than", "child_of")
    }
    used |= {("OPERATIONS", name) for name in OPERATIONS if name.startswith("columns_")}
    used |= {("CLAIMS", "due"), ("CLAIMS", "expired")}
    used |= {("GATES", name) for name in ("page", "page_of_locks")}
    used |= {
        ("CHECKS", f"{kind}_{what}") for kind in ("told", "real") for what in ("holders", "counts")
    }
    used |= {
        ("RECORDS", f"{order}_{by}")
        for order in ("oldest", "newest")
        for by in ("by_key", "in_group")
    }

    there = {(noun, name) for noun, blocks in NOUNS.items() for name in blocks}

    assert used == there


HOT = {
    "look": CLAIMS["look"],
    "first_in_line": CLAIMS["first_in_line"],
    "first_in_lane": CLAIMS["first_in_lane"],
    "start": CLAIMS["start"],
    "due": CLAIMS["due"],
    "line_up": CLAIMS["line_up"],
    "expired": CLAIMS["expired"],
    "give_fences": _spread(CLAIMS["give_fences"], 2, 4),
    "complete": SETTLEMENTS["complete"],
    "find": SETTLEMENTS["find"],
    "finish": _spread(SETTLEMENTS["finish"], 10, 4),
    "go_on": _spread(SETTLEMENTS["go_on"], 12, 4),
    "to_complete": SETTLEMENTS["to_complete"],
    "complete_gated": SETTLEMENTS["complete_gated"],
    **{f"gate_{name}": GATES[name] for name in GATES if "/* rows */" not in GATES[name]},
    "park": _spread(GATES["park"], 4, 4),
    "states": TASKS["states"],
    "set_callbacks": _spread(TASKS["set_callbacks"], 2, 4),
    "set_gates": _spread(TASKS["set_gates"], 4, 4),
    "unique_keys_taken": TASKS["unique_keys_taken"],
    "idempotency_keys_seen": TASKS["idempotency_keys_seen"],
    "get": TASKS["get"],
    "standing_in_line": TASKS["standing_in_line"],
    "was_saved": HISTORY["was_saved"],
    "attempts": HISTORY["attempts"],
    "events": HISTORY["events"],
    "renew": _spread(OPERATIONS["renew"], 5, 4),
    "hurry": _spread(OPERATIONS["hurry"], 5, 4),
    "old": OPERATIONS["old"],
    "forget_attempts": HISTORY["forget_attempts"],
    "forget_events": HISTORY["forget_events"],
    "forget_their_keys": OPERATIONS["forget_their_keys"],
    "oldest_ready": STATS["oldest_ready"],
    "running_by_lane": STATS["running_by_lane"],
    "ended_lately": STATS["ended_lately"],
    "named": RECORDS["named"],
    "oldest_in_group": RECORDS["oldest_in_group"],
    "newest_by_key": RECORDS["newest_by_key"],
    "kept": RECORDS["kept"],
    "due_records": RECORDS["due"],
    "take_records": RECORDS["take"],
    "journal": RECORDS["journal"],
    "requests": WORKERS["requests"],
    "orphans": WORKERS["orphans"],
}


def plan(db: sqlite3.Connection, sql: str) -> list[str]:
    return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", _nothing(sql))]


def _nothing(sql: str) -> dict[str, None] | list[None]:
    """A NULL for every parameter."""
    names = re.findall(r":(\w+)", sql)
    if names:
        return dict.fromkeys(names)
    return [None] * max([sql.count("?"), *map(int, re.findall(r"\?(\d+)", sql))])


@pytest.mark.parametrize("name", HOT)
def test_no_hot_statement_walks_a_table(outside: sqlite3.Connection, name: str) -> None:
    steps = plan(outside, HOT[name])

    tables = "task|gate|event|attempt|idempotency|record|journal|worker"
    walks = [s for s in steps if re.match(rf"SCAN ({tables})\b(?! USING)", s)]
    assert walks == [], steps
    assert not [s for s in steps if "AUTOMATIC" in s], steps


@pytest.mark.parametrize(
    ("where", "index"),
    [
        (TaskFilter(), "SCAN task USING INDEX sqlite_autoindex_task_1"),
        (TaskFilter(name="x", queue="q", tag="t"), "SCAN task USING INDEX sqlite_autoindex_task_1"),
        (TaskFilter(ids=("a",)), "SEARCH task USING INDEX sqlite_autoindex_task_1 (id=?)"),  # type: ignore[arg-type]
        (
            TaskFilter(states=frozenset({State.DEAD_LETTER}), name="x"),
            "SEARCH task USING INDEX task_dead_end (dead_end=?)",
        ),
        (TaskFilter(parent_id=PARENT), CHILDREN),
        (TaskFilter(parent_id=PARENT, states=frozenset({State.FAILED})), CHILDREN),
        (TaskFilter(parent_id=PARENT, states=frozenset({State.RUNNING})), CHILDREN),
        (
            TaskFilter(unique_key="k", states=frozenset({State.QUEUED})),
            "SEARCH task USING INDEX task_by_unique_key (unique_key=?)",
        ),
        (
            TaskFilter(idempotency_key="k"),
            "SEARCH task USING INDEX task_by_idempotency_key (idempotency_key=?)",
        ),
        (TaskFilter(owner="ann"), "SEARCH task USING INDEX task_by_owner (owner=?)"),
        (
            TaskFilter(parent_id=PARENT, ids=(PARENT,)),
            "SEARCH task USING INDEX sqlite_autoindex_task_1 (id=?)",
        ),
        (
            TaskFilter(states=frozenset({State.RUNNING})),
            "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)",
        ),
    ],
)
def test_lists_walk_the_best_index(
    outside: sqlite3.Connection, where: TaskFilter, index: str
) -> None:
    text = query(outside, where).text

    steps = plan(outside, " ".join((FILTERS["columns"], text, FILTERS["page_newest"])))

    assert index in steps


@pytest.mark.parametrize("order", ["page_last_ended", "page_first_ended"])
def test_dead_letters_by_their_ends_are_in_an_index(
    outside: sqlite3.Connection, order: str
) -> None:
    text = query(outside, TaskFilter(states=frozenset({State.DEAD_LETTER}))).text

    parts = (FILTERS["columns"], text, FILTERS["and_ended"], FILTERS[order])
    steps = plan(outside, " ".join(parts))

    assert "SEARCH task USING INDEX task_finished (dead_end=?)" in steps


async def test_the_cost_of_a_claim_does_not_grow_with_the_backlog_or_the_history(
    store: SQLiteStore, worker: WorkerId
) -> None:
    """Counted in steps of SQLite's machine, which do not depend on the weather."""
    await add(store, *(new_task(queue=f"q{n % 3}") for n in range(1_000)))
    await save(store, *map(success, await claim(store, worker, limit=100)))
    await claim(store, worker, limit=100)
    few = await steps_of_a_claim(store, worker)
    for _ in range(10):
        await add(store, *(new_task(queue=f"q{n % 3}") for n in range(3_000)))
        await save(store, *map(success, await claim(store, worker, limit=1_000)))

    many = await steps_of_a_claim(store, worker)

    assert few > 1_000
    assert many <= few * 1.05


async def test_the_cost_of_a_claim_does_not_grow_with_equal_ranks(
    store: SQLiteStore, worker: WorkerId
) -> None:
    """A batch has one rank. The merge of lanes must not walk over those it took before."""
    await add(store, *(new_task(queue=f"q{n % 2}") for n in range(2_000)))

    of_50 = await steps_of_a_claim(store, worker, limit=50)
    of_500 = await steps_of_a_claim(store, worker, limit=500)

    assert of_500 <= of_50 * 11


async def test_numbers_do_not_cost_more_with_a_backlog(store: SQLiteStore) -> None:
    await add(store, *new_tasks(500))
    few = await steps_of_stats(store)
    for _ in range(5):
        await add(store, *new_tasks(2_000))

    assert await steps_of_stats(store) <= few * 1.05


async def test_a_small_batch_is_saved_like_a_large_one(
    store: SQLiteStore, worker: WorkerId
) -> None:
    """Equal results in large numbers, different ones, and a mixture take different statements."""
    await add(store, *new_tasks(60))
    claims = await claim(store, worker)

    await save(
        store,
        *(success(found, b"1") for found in claims[:20]),
        *(success(found, str(n).encode()) for n, found in enumerate(claims[20:])),
    )

    done = (await store.list(TaskFilter(), limit=100)).tasks
    assert [task.state for task in done] == [State.COMPLETED] * 60
    expected = [b"1"] * 20 + [str(n).encode() for n in range(40)]
    assert [task.result for task in reversed(done)] == expected


async def steps_of_a_claim(store: SQLiteStore, worker: WorkerId, limit: int = 100) -> int:
    counter = StepCounter()
    await store._write(lambda unit: unit.db.set_progress_handler(counter, 1))
    assert len(await claim(store, worker, limit=limit)) == limit
    await store._write(lambda unit: unit.db.set_progress_handler(None, 1))
    return counter.steps


async def steps_of_stats(store: SQLiteStore) -> int:
    counter = StepCounter()

    def watched(db: sqlite3.Connection) -> None:
        db.set_progress_handler(counter, 1)
        numbers.stats(db, store._lanes, now=0)
        db.set_progress_handler(None, 1)

    await store._read(watched)
    return counter.steps


class StepCounter:
    """A progress handler: SQLite calls it for every step of its machine."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self) -> int:
        self.steps += 1
        return 0
