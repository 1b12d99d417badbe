"""No hot query walks the collection: the server is asked how it would find what we look for."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from tests.integration.mongo.watching import Document, Watch, explain, searches, walks

from holdfast.core.attempt import Report
from holdfast.core.gate import Gate, GateKind
from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId, WorkerId
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.factories import (
    HEAD_STARTS,
    WINDOW,
    failure,
    new_task,
    new_tasks,
    success,
    worker_info,
)

NOBODY = WorkerId("nobody")
LARGE = frozenset({"tasks", "history", "gates"})
"""The collections that grow with the work."""


class Scene:
    """A store with something in every place, and one worker."""

    def __init__(self, store: MongoStore, worker: WorkerId, tasks: dict[str, TaskId]) -> None:
        self.store, self.worker, self.tasks = store, worker, tasks

    def only(self, name: str) -> TaskFilter:
        return TaskFilter(ids=(self.tasks[name],))


Verb = Callable[[Scene], Awaitable[object]]


async def claim(scene: Scene, *queues: str, limit: int = 2) -> list[object]:
    found = await scene.store.claim(
        scene.worker, queues=queues or None, capabilities=frozenset(), limit=limit
    )
    return list(found.claims)


async def settle(scene: Scene) -> None:
    got = await scene.store.claim(scene.worker, queues=None, capabilities=frozenset(), limit=4)
    first, *rest = got.claims
    await scene.store.report(
        [Report(first.task_id, first.attempt, first.worker_id, logs=("half",))]
    )
    await scene.store.save([failure(first), *(success(one) for one in rest)])
    await scene.store.save([success(rest[0])._replace(worker_id=NOBODY)])


async def submit_with_keys(scene: Scene) -> None:
    task = new_task(unique_key="one", idempotency_key="once", lock="doc:1")
    for again in (task, task._replace(id=new_task().id)):
        await scene.store.add([again], idempotency_window=WINDOW)
    await scene.store.add([*new_tasks(2), task], idempotency_window=WINDOW)


def gates_of(*others: Gate) -> tuple[Gate, ...]:
    return (*others, Gate(GateKind.LIMIT, "acme", 2), Gate(GateKind.RATE, "mail", 2, 60.0))


async def submit_with_gates(scene: Scene) -> None:
    latch = Gate(GateKind.LATCH, scene.tasks["ready"])
    await scene.store.add(
        [new_task(gates=gates_of(latch)), new_task(gates=gates_of())], idempotency_window=WINDOW
    )


VERBS: dict[str, Verb] = {
    "claim from all queues": claim,
    "claim from one queue": lambda scene: claim(scene, "mail"),
    "claim from two queues": lambda scene: claim(scene, "mail", "default"),
    "claim locked tasks": lambda scene: claim(scene, "locked"),
    "claim rated tasks": lambda scene: claim(scene, "gated"),
    "submit with gates": submit_with_gates,
    "why at a gate": lambda scene: scene.store.standing(scene.tasks["gated"]),
    "cancel at a gate": lambda scene: scene.store.cancel(scene.only("gated"), limit=1),
    "report and settle": settle,
    "submit with keys": submit_with_keys,
    "ask for orphans": lambda scene: scene.store.orphans(limit=10),
    "ask what to do": lambda scene: scene.store.requests(scene.worker),
    "get": lambda scene: scene.store.get(scene.tasks["ready"]),
    "history": lambda scene: scene.store.history(scene.tasks["ready"]),
    "look at gates": lambda scene: scene.store.gates(names=["limit:acme"], limit=10),
    "why": lambda scene: scene.store.standing(scene.tasks["ready"]),
    "why blocked": lambda scene: scene.store.standing(scene.tasks["blocked"]),
    "stats": lambda scene: scene.store.stats(),
    "list dead letters": lambda scene: scene.store.list(
        TaskFilter(states=frozenset({State.DEAD_LETTER})), limit=10
    ),
    "count what runs": lambda scene: scene.store.count(
        TaskFilter(states=frozenset({State.RUNNING})), limit=10
    ),
    "list by ids": lambda scene: scene.store.list(scene.only("ready"), limit=10),
    "list by lock": lambda scene: scene.store.list(TaskFilter(lock="doc:0"), limit=10),
    "list children": lambda scene: scene.store.list(
        TaskFilter(parent_id=scene.tasks["ready"]), limit=10
    ),
    "cancel": lambda scene: scene.store.cancel(scene.only("ready"), limit=1),
    "cancel a running task": lambda scene: scene.store.cancel(scene.only("running"), limit=1),
    "requeue": lambda scene: scene.store.requeue(
        scene.only("ended"), limit=1, head_starts=HEAD_STARTS
    ),
    "discard": lambda scene: scene.store.discard(scene.only("ended"), limit=1),
    "prune": lambda scene: scene.store.prune(retention=0.0, dead_letter_retention=0.0, limit=10),
}


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch.install(monkeypatch)


@pytest.fixture
async def store(fresh_mongo: str, watch: Watch) -> AsyncIterator[MongoStore]:
    async with MongoStore(fresh_mongo) as store:
        yield store


@pytest.fixture
async def database(fresh_mongo: str) -> AsyncIterator[AsyncDatabase[Document]]:
    client: AsyncMongoClient[Document] = AsyncMongoClient(fresh_mongo)
    async with client:
        yield client.get_default_database()


@pytest.fixture
async def scene(store: MongoStore) -> Scene:
    worker = worker_info()
    await store.register(worker)
    ended, running = (new_task(queue="first") for _ in range(2))
    await store.add([ended, running], idempotency_window=WINDOW)
    got = await store.claim(worker.id, queues=["first"], capabilities=frozenset(), limit=2)
    await store.save([success(one) for one in got.claims if one.task_id == ended.id])
    locked = [new_task(queue="locked", lock=f"doc:{n % 3}") for n in range(6)]
    ready, *others = new_tasks(8, queue="mail")
    later = new_tasks(3, delay=60.0)
    gated = new_tasks(4, queue="gated", gates=gates_of())
    every = [*locked, *gated, ready, *others, *later, *new_tasks(8)]
    await store.add(every, idempotency_window=WINDOW)
    names = {
        "ended": ended, "running": running, "ready": ready, "blocked": locked[-1],
        "gated": gated[-1],
    }  # fmt: skip
    return Scene(store, worker.id, {name: task.id for name, task in names.items()})


@pytest.mark.parametrize("verb", VERBS)
async def test_no_hot_query_walks_a_large_collection(
    scene: Scene, watch: Watch, database: AsyncDatabase[Document], verb: str
) -> None:
    with watch.over() as said:
        await VERBS[verb](scene)

    large = [
        search
        for command in said
        for search in searches(command)
        if search["find"].rpartition(".")[2] in LARGE
    ]
    walking = [search for search in large if await walks(database, search)]
    assert said
    assert walking == []


async def test_a_walk_is_noticed(scene: Scene, database: AsyncDatabase[Document]) -> None:
    named = {"find": "holdfast.tasks", "filter": {"name": "x", "owner": {"$ne": "y"}}}

    assert await walks(database, named) is True


@pytest.mark.parametrize("queues", [["mail"], ["mail", "default"]])
async def test_a_claim_examines_two_documents_for_each_task_at_most(
    scene: Scene, watch: Watch, database: AsyncDatabase[Document], queues: list[str]
) -> None:
    """The test server reads the whole line before it obeys a limit, MongoDB does not."""
    with watch.over() as said:
        assert len(await claim(scene, *queues, limit=2)) == 2
    every = [search for command in said for search in searches(command)]
    (line,) = [one for one in every if "ready_lane" in one["filter"] and "_id" not in one["filter"]]
    left = 2 if "MONGODB_URL" in os.environ else 8 * len(queues) - 2

    plan = await explain(database, line)

    assert plan["executionStats"]["totalDocsExamined"] <= 2 * left
