"""Whatever is broken by hand is found by `check`, and told in words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pymongo import MongoClient

from holdfast.core.gate import Gate, GateKind
from holdfast.core.task import TaskId
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import WINDOW, failure, new_task, success, worker_info

Database = Any


class Scene:
    """A store with tasks in every place, and a way to break them."""

    def __init__(self, store: MongoStore, tasks: dict[str, TaskId], database: Database) -> None:
        self.store, self.tasks, self.database = store, tasks, database

    def change(self, name: str, **change: Any) -> None:
        """Set fields of a task; None takes one off."""
        kept = {field: value for field, value in change.items() if value is not None}
        gone = {field: "" for field, value in change.items() if value is None}
        orders = {"$set": kept, "$unset": gone}
        self.database["holdfast.tasks"].update_one(
            {"_id": self.tasks[name]}, {verb: what for verb, what in orders.items() if what}
        )


@pytest.fixture
async def scene(fresh_mongo: str) -> AsyncIterator[Scene]:
    tasks = {
        "done": new_task(),
        "retrying": new_task(),
        "running": new_task(lock="doc:1"),
        "ready": new_task(),
        "waiting": new_task(delay=60.0),
        "blocked": new_task(lock="doc:1"),
    }
    worker = worker_info()
    client: MongoClient[dict[str, Any]] = MongoClient(fresh_mongo)
    async with MongoStore(fresh_mongo, clock=FakeClock()) as store:
        await store.register(worker)
        for name, settle in (("done", success), ("retrying", failure), ("running", None)):
            await store.add([tasks[name]], idempotency_window=WINDOW)
            got = await store.claim(worker.id, queues=None, capabilities=frozenset(), limit=1)
            if settle:
                await store.save([settle(got.claims[0])])
        for name in ("ready", "waiting", "blocked"):
            await store.add([tasks[name]], idempotency_window=WINDOW)
        with client:
            ids = {name: task.id for name, task in tasks.items()}
            yield Scene(store, ids, client.get_default_database())


async def test_a_sound_store_has_nothing_to_say(scene: Scene) -> None:
    assert list(await scene.store.check()) == []


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("ready", {"state": "running"}, "it is running and in place ready"),
        ("ready", {"ready": None}, "its mark ready is None"),
        ("ready", {"ready_lane": "other"}, "its mark ready_lane is 'other'"),
        ("ready", {"lane": "other"}, "its lane is 'other'"),
        ("ready", {"lane": "other"}, "nobody sees it"),
        ("ready", {"idempotent": "key"}, "its idempotency key has no end"),
        ("waiting", {"alarm": None}, "its mark alarm is None"),
        ("waiting", {"due": 1}, "its mark due is 1"),
        ("running", {"running_on": None}, "its mark running_on is None"),
        ("running", {"holds": None}, "its mark holds is None"),
        ("done", {"ended_on": None}, "its mark ended_on is None"),
        ("done", {"unique": "x"}, "its mark unique is 'x'"),
        ("done", {"attempts": []}, "had 1 attempts that ended, and its history has []"),
        ("retrying", {"attempt": 2}, "had 2 attempts that ended, and its history has [1]"),
    ],
)
async def test_a_broken_document_is_found(
    scene: Scene, name: str, change: dict[str, Any], words: str
) -> None:
    scene.change(name, **change)

    problems = await scene.store.check()

    assert [problem for problem in problems if words in problem]
    assert all(scene.tasks[name] in problem or "lock" in problem for problem in problems)


async def test_a_key_that_nobody_holds_is_found(scene: Scene) -> None:
    scene.change("running", lock=None, holds=None)

    assert "gate lock:doc:1: 1 tasks wait for it and nobody holds it" in await scene.store.check()


async def test_a_holder_that_is_not_the_first_is_found(scene: Scene) -> None:
    first, second = new_task(lock="doc:2"), new_task(lock="doc:2")
    await scene.store.add([first], idempotency_window=WINDOW)
    await scene.store.add([second], idempotency_window=WINDOW)
    scene.tasks["second"] = second.id

    scene.change(
        "second", rank=0, order=bytes([128, *bytes(7)]) + bytes.fromhex(second.id.replace("-", ""))
    )

    (problem,) = await scene.store.check()
    assert problem == f"gate lock:doc:2: {first.id} is ready and another comes before it"


@pytest.mark.parametrize(
    ("gate", "change", "words"),
    [
        ("limit:acme", {"held": 2}, "it says that 2 hold it, and 1 do"),
        ("limit:acme", {"capacity": 3}, "1 tasks stand before it and it is open"),
        ("limit:none", {"capacity": 3}, "its document is left over"),
        ("lock:none", {"turn": 3}, "its document is left over"),
        ("latch:ready", {"opened_at": 1}, "1 tasks stand before it and it is open"),
    ],
)
async def test_a_broken_gate_is_found(
    scene: Scene, gate: str, change: dict[str, Any], words: str
) -> None:
    limited = (Gate(GateKind.LIMIT, "acme", 1),)
    behind = (Gate(GateKind.LATCH, scene.tasks["ready"]),)
    tasks = [new_task(gates=limited), new_task(gates=limited), new_task(gates=behind)]
    await scene.store.add(tasks, idempotency_window=WINDOW)
    assert list(await scene.store.check()) == []
    name = gate.replace("ready", scene.tasks["ready"])

    scene.database["holdfast.gates"].update_one({"_id": name}, {"$set": change}, upsert=True)

    assert list(await scene.store.check()) == [f"gate {name}: {words}"]


async def test_a_gate_that_is_missing_and_a_latch_that_nobody_will_open_are_found(
    scene: Scene,
) -> None:
    behind = (Gate(GateKind.LATCH, scene.tasks["ready"]),)
    await scene.store.add([new_task(gates=behind)], idempotency_window=WINDOW)

    scene.database["holdfast.gates"].delete_one({"_id": "lock:doc:1"})
    scene.change("ready", awaited=None)

    assert list(await scene.store.check()) == [
        "gate lock:doc:1: its document is missing",
        f"gate latch:{scene.tasks['ready']}: the end of its task will not open it",
    ]


async def test_a_history_without_its_task_is_found(scene: Scene) -> None:
    scene.database["holdfast.history"].insert_one({"_id": "x/1/0", "task": "x", "attempts": []})

    assert list(await scene.store.check()) == ["the history of task x is kept, and the task is not"]
