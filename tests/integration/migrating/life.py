"""What happens to a store before it is migrated: tasks in every state, workers, tokens, a pause.

`release.py` runs this with the code of the last release; so whatever has a word for it in both
releases is imported, and the store is `Any`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import asdict
from typing import Any

from holdfast.core.attempt import Claim, Report
from holdfast.core.ids import uuid7
from holdfast.core.lifecycle import Unfit
from holdfast.core.query import TaskFilter
from holdfast.core.task import Cost, Priority, Progress, Reason, TaskId, WorkerId
from holdfast.core.token import Scope
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    HEAD_STARTS,
    failure,
    loss,
    release,
    settled,
    stop,
    success,
    task_error,
    timeout,
    worker_info,
)
from holdfast.testing.suites.base import MANY, Settle, claim_one, only, save, submit

URL = "https://example.com/told"
ALIVE, SILENT, BURIED, GONE, FAR = map(WorkerId, ("alive", "silent", "buried", "gone", "far"))
SECRET = "A" * 43
TOKEN, REVOKED, EXPIRED = ("0123456789abcdef", "1123456789abcdef", "2123456789abcdef")


class Life:
    """What happened to the store, in order. Every task is called by a label, its only argument."""

    def __init__(self, store: Any, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.ids: dict[str, TaskId] = {}
        self._numbers = itertools.count(1)

    async def submit(self, label: str, **given: Any) -> TaskId:
        self.clock.advance(1)
        own = uuid7(self.clock.now_us() // 1000, next(self._numbers))
        payload = json.dumps({"label": label}).encode()
        head_start = HEAD_STARTS[given.get("priority", Priority.NORMAL)]
        given |= {"id": own, "payload": payload, "head_start": head_start}
        self.ids[label] = await submit(self.store, **given)
        return own

    async def start(self, label: str, worker: WorkerId = ALIVE, **given: Any) -> Claim:
        """Submit a task and start it. Nothing else may be ready."""
        own = await self.submit(label, **given)
        found = await self.again(worker)
        assert found.task_id == own
        return found

    async def again(self, worker: WorkerId = ALIVE) -> Claim:
        self.clock.advance(0.25)
        return await claim_one(self.store, worker)

    async def end(self, label: str, settle: Settle, **given: Any) -> None:
        found = await self.start(label, **given)
        self.clock.advance(0.5)
        await save(self.store, settle(found))

    async def lead(self) -> None:
        await self._enlist()
        await self._end_some()
        await self._owe_callbacks()
        await self._leave_some_running()
        await self._wait()
        await self._stand_in_line()
        await self._guard()

    async def _enlist(self) -> None:
        infos = [
            worker_info(id=ALIVE, capabilities=frozenset({"gpu"}), capacity=4),
            worker_info(id=SILENT, queues=("default", "mail")),
            worker_info(id=BURIED),
            worker_info(id=GONE),
            worker_info(id=FAR, kind="http", capabilities=frozenset({"http"})),
        ]
        for info in infos:
            await self.store.register(info)
        await self.store.retire(GONE)
        await self.store.ask_to_drain(FAR)
        await self.store.beat(ALIVE, load=3)

    async def _end_some(self) -> None:
        await self.end(
            "completed",
            lambda claim: success(claim, b'{"sum": 7}'),
            tags=("a", "b"),
            owner="anna",
            trace="00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
            timeout=2.5,
            retry="exponential(5s, 2)",
            priority=Priority.CRITICAL,
            unique_key="once",
            idempotency_key="order-1",
            fingerprint="f1",
        )
        await self.end("completed later", lambda claim: failure(claim, backoff=1.0), lock="old")
        self.clock.advance(1)
        await save(self.store, success(await self.again(), b"[1]"))
        await self.end("failed", lambda claim: failure(claim, retriable=False))
        await self.end("dead letter", failure, max_retries=0, tags=("dead",))
        await self.end("timed out", timeout, max_retries=0)
        await self.end("poison", lambda claim: loss(claim, crash_limit=1))
        await self.end("unfit", lambda claim: settled(claim, _unfit(None)))
        await self.submit("cancelled", unique_key="cancelled")
        await self.store.cancel(only(self.ids["cancelled"]), limit=1)
        found = await self.start("stopped")
        await self.store.cancel(only(found.task_id), limit=1)
        await save(self.store, stop(found))
        await self.submit("expired", expires_in=1.0)
        self.clock.advance(2)
        assert not (await self._claim(ALIVE))
        found = await self.start("late", BURIED)
        await self.store.bury(BURIED, beats=None)
        await save(self.store, loss(found))
        await save(self.store, success(await self.again()))
        assert await self.store.save([success(found)])

    async def _owe_callbacks(self) -> None:
        await self.end("told", success, callback=URL)
        (notice,) = await self.store.due_callbacks(limit=9, lease=60.0)
        assert await self.store.callback_done(notice, retry_in=None, error=None)
        await self.end("not told yet", success, callback=URL)
        (notice,) = await self.store.due_callbacks(limit=9, lease=60.0)
        assert await self.store.callback_done(notice, retry_in=600.0, error="busy")
        await self.end("to be told", lambda claim: failure(claim, retriable=False), callback=URL)

    async def _leave_some_running(self) -> None:
        found = await self.start("running", unique_key="running", callback=URL, timeout=9.0)
        said = Progress(done=1, total=4, message="a quarter")
        cost = Cost(units=0.5, tokens_in=10, tokens_out=20)
        await self.store.report([_report(found, said, cost, ("one line", "another"))])
        found = await self.start("running, to be stopped")
        await self.store.cancel(only(found.task_id), limit=1)
        await self.start("holds b", lock="b")
        await self.start("lost", SILENT, lock="c", max_retries=1)
        await self.store.register(worker_info(id=WorkerId("buried-2")))
        found = await self.start("crashed twice", WorkerId("buried-2"))
        await self.store.bury(found.worker_id, beats=None)
        await save(self.store, loss(found))
        await self.store.register(worker_info(id=WorkerId("buried-3")))
        found = await self.again(WorkerId("buried-3"))
        await self.store.bury(found.worker_id, beats=None)

    async def _wait(self) -> None:
        await self.end("retrying", lambda claim: failure(claim, backoff=600.0), max_retries=5)
        await self.end("retrying soon", lambda claim: timeout(claim, backoff=9.0), lock="soon")
        await self.end("snoozing", lambda claim: release(claim, delay=300.0), lock="snooze")
        await self.end("needs others", lambda claim: settled(claim, _unfit(1.0)))
        await self.end("requeued", failure, max_retries=0, tags=("dead",))
        await self.store.requeue(only(self.ids["requeued"]), limit=1, head_starts=HEAD_STARTS)
        await self.submit("delayed", delay=3600.0, callback=URL, idempotency_key="later")
        await self.submit("delayed, due since", delay=5.0, priority=Priority.LOW)
        await self.submit("delayed, expiring", delay=600.0, expires_in=60.0)

    async def _stand_in_line(self) -> None:
        await self.submit("holds a", lock="a", priority=Priority.HIGH)
        await self.submit("third in a", lock="a", priority=Priority.LOW)
        await self.submit("first in a", lock="a", priority=Priority.HIGH)
        await self.submit("second in a", lock="a", queue="other", requires=frozenset({"gpu"}))
        await self.submit("cancelled in a", lock="a")
        await self.store.cancel(only(self.ids["cancelled in a"]), limit=1)
        await self.submit("first in b", lock="b", unique_key="b")
        await self.submit("expiring in b", lock="b", expires_in=1800.0)
        await self.submit("first in c", lock="c", callback=URL)
        parent = self.ids["running"]
        await self.submit("queued", parent_id=parent, idempotency_key="order-2", fingerprint="f2")
        await self.submit("queued, expired since", expires_in=4.0)
        await self.submit("queued, once", unique_key="once", tags=("a",), owner="anna")
        await self.submit("queued, for ever", max_retries=2147483647, priority=Priority.CRITICAL)
        await self.submit("paused", queue="mail", lock="paused")
        await self.submit("paused, blocked", queue="default", lock="paused")
        self.clock.advance(10)

    async def _guard(self) -> None:
        await self.store.pause("mail")
        digest = hashlib.sha256(SECRET.encode()).digest()
        bounds = {"owner": "anna", "queues": ["default"], "rate": [100, 60], "created_by": "cli"}
        used = {"last_used_at": "2026-03-01T12:00:01+00:00"}
        for own, name, scopes, lifetime, document in (
            (TOKEN, "ci", [Scope.SUBMIT, Scope.READ], 86400.0, bounds | used),
            (REVOKED, "old ✓", [Scope.ADMIN], None, {}),
            (EXPIRED, "short", [Scope.WORKER], 1.5, {}),
        ):
            self.clock.advance(0.000_001)
            text = json.dumps(document)
            await self.store.add_token(
                id=own, name=name, scopes=scopes, digest=digest, expires_in=lifetime, document=text
            )
        await self.store.revoke_token(REVOKED)
        self.clock.advance(2)

    async def _claim(self, worker: WorkerId) -> list[Claim]:
        claimed = await self.store.claim(worker, queues=None, capabilities=frozenset(), limit=MANY)
        return list(claimed.claims)


def _unfit(again_in: float | None) -> Unfit:
    error = task_error(type="UnfitArguments", message="too many")
    needs = "task:demo" if again_in else None
    return Unfit(error, Reason.UNFIT_ARGUMENTS, again_in, needs)


def _report(claim: Claim, progress: Progress, cost: Cost, logs: tuple[str, ...]) -> Report:
    return Report(claim.task_id, claim.attempt, claim.worker_id, progress, cost, logs)


async def pictures(store: Any) -> Any:
    """All that can be read of the tasks and workers, as JSON without what is empty."""
    told = {}
    for task in (await store.list(TaskFilter(name="demo"), limit=MANY)).tasks:
        label = json.loads(task.payload)["label"]
        told[label] = asdict(task) | asdict(await store.history(task.id))
    workers = {info.id: asdict(info) for info in await store.workers()}
    return json.loads(json.dumps({"tasks": _full(told), "workers": _full(workers)}, default=_plain))


def _full(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _full(each) for key, each in value.items() if each or each == b""}
    return [_full(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return sorted(value) if isinstance(value, frozenset) else value.isoformat()
