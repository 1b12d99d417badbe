"""A store of the last release, with tasks in every state, becomes one of this release, and nothing
is lost. `release.py` says how that store was made, `life.py` what happened to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest
from tests.integration.migrating.conftest import TOLD, OldStore
from tests.integration.migrating.life import (
    ALIVE,
    EXPIRED,
    FAR,
    REVOKED,
    SECRET,
    TOKEN,
    pictures,
)
from tests.integration.worker.workshop import PATIENT, Workshop

from holdfast.builtin.callbacks import send_owed
from holdfast.core.attempt import Claim
from holdfast.core.callback import OWED, notice_id
from holdfast.core.lifecycle import UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.task import State, SubmitOutcome, Task, TaskId
from holdfast.core.token import Bounds, RateLimit, Scope
from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.errors import IdempotencyConflict, SchemaMismatch
from holdfast.pauses import resume
from holdfast.ports.store import Store
from holdfast.testing.factories import new_task, stop, success
from holdfast.testing.suites.base import MANY, add, get, save
from holdfast.tokens import Tokens
from holdfast.worker.maintenance.rescuer import Rescuer

NOW = [
    ["holds a", "first in a", "second in a", "third in a"],
    ["first in b", "expiring in b"],
    ["lost", "first in c"],
    ["crashed twice"],
    ["retrying soon"],
    ["needs others"],
    ["requeued"],
    ["delayed, due since"],
    ["queued"],
    ["queued, once"],
    ["queued, for ever"],
]
"""What may run at once, by lock: each line in its order."""


def id_of(label: str) -> TaskId:
    return TaskId(TOLD["tasks"][label]["id"])


async def task(store: Store, label: str) -> Task:
    return await get(store, id_of(label))


async def test_it_is_refused_until_it_is_migrated(old: OldStore) -> None:
    store = old.store()
    before = await store.schema_version()

    with pytest.raises(SchemaMismatch, match="holdfast migrate"):
        await store.open()
    refused, check = holdfast(old, "stats"), holdfast(old, "migrate", "--check")
    done = holdfast(old, "migrate")

    assert (refused.returncode, check.returncode) == (1, 1)
    assert "Run `holdfast migrate`" in refused.stderr
    assert done.returncode == 0, done.stderr
    assert await store.schema_version() > before
    assert list(await store.migrate()) == []
    async with store:
        assert list(await store.check()) == []


def holdfast(old: OldStore, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", *arguments]
    environment = os.environ | {"HOLDFAST_URL": old.url}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


async def test_every_task_is_as_the_last_release_told_of_it(old: OldStore) -> None:
    assert {each["state"] for each in TOLD["tasks"].values()} == set(State)

    async with old.migrated() as store:
        assert await pictures(store) == {"tasks": TOLD["tasks"], "workers": TOLD["workers"]}
        assert list(await store.check()) == []


async def test_what_may_run_runs_once_in_its_order_and_nothing_is_lost(old: OldStore) -> None:
    async with old.migrated() as store:
        await finish_what_runs(store)
        await rescue(store)

        assert in_line(await drained(store)) == in_line([label for line in NOW for label in line])
        old.clock.advance(700)
        assert sorted(await drained(store)) == ["retrying", "snoozing"]
        old.clock.advance(3600)
        assert await drained(store) == ["delayed"]

        paused = [(await task(store, label)).state for label in ("paused", "paused, blocked")]
        assert paused == [State.QUEUED, State.BLOCKED]
        assert await resume(store, "mail")
        assert await drained(store) == ["paused", "paused, blocked"]

        assert await store.count(TaskFilter(states=UNFINISHED), limit=1) == 0
        await nothing_was_lost(store)
        assert list(await store.check()) == []


async def finish_what_runs(store: Store) -> None:
    """What the worker that is still there does: its attempts are its own, as ever."""
    assert await store.beat(ALIVE)
    assert await store.requests(ALIVE) == ([id_of("running, to be stopped")], False)
    assert await store.requests(FAR) == ([], True)
    running, holder = await task(store, "running"), await task(store, "holds b")
    stopped = await task(store, "running, to be stopped")
    await save(store, success(Claim.of(running)), stop(Claim.of(stopped)))
    await save(store, success(Claim.of(holder)))


async def rescue(store: Store) -> None:
    """Bury whoever is silent for a lease. Time passes for the rescuer alone."""
    seconds = 0.0
    rescuer = Rescuer(store, InProcessDispatcher(), PATIENT, clock=lambda: seconds)
    while seconds <= 2 * PATIENT.lease:
        await rescuer.tick()
        await store.beat(ALIVE)
        await store.beat(FAR)
        seconds += PATIENT.sweep
    assert not await store.orphans(limit=9)
    assert (await task(store, "lost")).crash_count == 1
    assert (await task(store, "crashed twice")).crash_count == 2


async def drained(store: Store) -> list[str]:
    """Let a worker of this release run all that it may; the labels, in the order of their runs."""
    ran = []
    shop = Workshop(store)

    @shop.task(name="demo")
    async def demo(label: str) -> str:
        ran.append(label)
        return label

    await shop.drain(queues=("*",), capabilities=frozenset({"gpu"}))
    return ran


def in_line(labels: list[str]) -> list[list[str]]:
    """Those that share a lock in the order given, the others in any."""
    lock = {label: TOLD["tasks"][label].get("lock", label) for label in labels}
    return [[label for label in labels if lock[label] == key] for key in sorted({*lock.values()})]


async def nothing_was_lost(store: Store) -> None:
    """Every task ended, completed once if at all, with all that is known of it from before."""
    after = (await pictures(store))["tasks"]
    assert after.keys() == TOLD["tasks"].keys()
    states = Counter(each["state"] for each in after.values())
    assert states == {"completed": 28, "cancelled": 7, "dead_letter": 4, "failed": 2}
    for label, before in TOLD["tasks"].items():
        ends = [each.get("ended") for each in after[label].get("attempts", [])]
        assert ends.count("completed") == (after[label]["state"] == "completed"), label
        assert after[label]["events"][: len(before["events"])] == before["events"]
        ended = [each for each in before.get("attempts", []) if "ended" in each]
        assert after[label].get("attempts", [])[: len(ended)] == ended
        if before["state"] not in UNFINISHED:
            assert after[label] == before


async def test_keys_tokens_and_callbacks_hold_as_before(old: OldStore) -> None:
    async with old.migrated() as store:
        (again,) = await add(store, new_task(idempotency_key="order-2", fingerprint="f2"))
        (once,) = await add(store, new_task(unique_key="once"))
        (running,) = await add(store, new_task(unique_key="running"))
        with pytest.raises(IdempotencyConflict):
            await add(store, new_task(idempotency_key="order-1", fingerprint="other"))

        assert again == (id_of("queued"), SubmitOutcome.IDEMPOTENCY_KEY, State.QUEUED)
        assert once == (id_of("queued, once"), SubmitOutcome.UNIQUE_KEY, State.QUEUED)
        assert running == (id_of("running"), SubmitOutcome.UNIQUE_KEY, State.RUNNING)
        await tokens_open_what_they_did(store)
        labels = {id_of(label): label for label in TOLD["tasks"]}
        owed = {labels[TaskId(record.key)] for record in await store.records(OWED, limit=MANY)}
        assert owed == {"not told yet", "to be told", "running", "delayed", "first in c"}
        await send_owed(store, 0)
        assert await store.records(OWED, limit=MANY) == []
        notices = {label: await get(store, notice_id(id_of(label))) for label in owed}
        free = {label for label, notice in notices.items() if notice.state is State.QUEUED}
        assert free == {"not told yet", "to be told"}


async def tokens_open_what_they_did(store: Store) -> None:
    tokens = Tokens(store)
    kept = [(each.id, each.name, each.revoked_at is None) for each in await tokens.list()]
    assert kept == [(EXPIRED, "short", True), (REVOKED, "old ✓", False), (TOKEN, "ci", True)]
    token = await tokens.check(f"hf_{TOKEN}_{SECRET}")
    assert token is not None
    assert (token.name, sorted(token.scopes)) == ("ci", [Scope.READ, Scope.SUBMIT])
    bound = Bounds(owner="anna", queues=frozenset({"default"}), rate=RateLimit(100, 60))
    assert (token.bounds, token.created_by) == (bound, "cli")
    assert str(token.last_used_at) == "2026-03-01 12:00:01+00:00"
    await tokens.noted()
    for closed in (REVOKED, EXPIRED):
        assert await tokens.check(f"hf_{closed}_{SECRET}") is None
