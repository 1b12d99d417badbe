"""Takes new tasks in.

Calls that come while another is under way are gathered and written together: one commit for all of
them, and the disk flushes once. Tasks with keys go on their own: a key may be in an open
transaction of somebody, and who has nothing to do with that must not wait for it.

The commit that brings work wakes who sleeps for it (`calls.py`).
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import asyncpg
import orjson

from holdfast.core.gate import gates_text, to_pass
from holdfast.core.task import Added, NewTask, State, SubmitOutcome, TaskId
from holdfast.errors import HoldfastError
from holdfast.stores.columns import in_us, span_us
from holdfast.stores.postgres.calls import CommitCalls
from holdfast.stores.postgres.connections import Connection, Connections
from holdfast.stores.postgres.lanes import Lanes
from holdfast.stores.postgres.passed_on import Tell
from holdfast.stores.postgres.queries import Queries

_ALONE: Final = 200
"""A call with so many tasks gains nothing by waiting for others."""
_TOGETHER: Final = 2000
_KEYED: Final = 4
"""Calls with keys at a time; however long they wait, connections are left for others."""
_OWN: Final = 3
"""The first fields of a task are its own: id, name and payload."""
_NOTHING: Final = (*(None,) * 8, (), ())
_CREATED: Final = SubmitOutcome.CREATED
_QUEUED: Final = State.QUEUED


@dataclass(slots=True, eq=False)
class _Call:
    tasks: Sequence[NewTask]
    answer: asyncio.Future[Sequence[Added]]


class Adding:
    """Adds for the whole process; gathers by event loop."""

    def __init__(self, connections: Connections, sql: Queries, lanes: Lanes, tell: Tell) -> None:
        self._connections = connections
        self._sql = sql
        self._lanes = lanes
        self._tell = tell
        self._gathered: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _GatheredAdds] = (
            weakref.WeakKeyDictionary()
        )

    async def add(
        self, tasks: Sequence[NewTask], *, window: float, now: int | None
    ) -> Sequence[Added]:
        if not tasks:
            return []
        loop = asyncio.get_running_loop()
        gathered = self._gathered.get(loop)
        if gathered is None:
            gathered = self._gathered[loop] = _GatheredAdds(self)
        if any(map(_has_keys, tasks)):
            async with gathered.keyed:
                return await self.write(tasks, gathered.calls, window=window, now=now)
        if len(tasks) >= _ALONE:
            return await self.write(tasks, gathered.calls, window=window, now=now)
        return await gathered.add(tasks, now)

    async def finish(self) -> None:
        """Wait for what was accepted on this loop."""
        gathered = self._gathered.get(asyncio.get_running_loop())
        if gathered is not None:
            await gathered.finish()

    async def call(self, queues: list[str]) -> None:
        """Wake who sleeps for these queues."""
        await self._connections.do(lambda db: db.execute(self._sql["wake"], queues))

    async def write(
        self, tasks: Sequence[NewTask], calls: CommitCalls, *, window: float, now: int | None
    ) -> Sequence[Added]:
        are_alike = _are_alike(tasks)
        queues = {tasks[0].queue} if are_alike else {new.queue for new in tasks}
        called = calls.take(queues)
        try:
            added = await self._write(tasks, are_alike, called, window=window, now=now)
        except BaseException:
            calls.owe(called)
            raise
        if not called:
            calls.owe(queues)
        return added

    async def _write(
        self,
        tasks: Sequence[NewTask],
        are_alike: bool,
        calls: Collection[str],
        *,
        window: float,
        now: int | None,
    ) -> Sequence[Added]:
        if are_alike:
            try:
                return await self._connections.do(
                    lambda db: add_alike(db, self._sql, self._lanes, tasks, now=now, calls=calls),
                    repeats=True,
                )
            except asyncpg.UniqueViolationError:
                pass  # some are there already: what became of them is for `add` to find out
        added, passed = await self._connections.do(
            lambda db: add(db, self._sql, self._lanes, tasks, window=window, now=now, calls=calls),
            repeats=True,
        )
        await self._tell(passed)
        return added


class _GatheredAdds:
    """Gathers the calls of one loop. Whoever arrives while nothing is being written writes at once;
    a background task writes what gathered meanwhile.
    """

    def __init__(self, adding: Adding) -> None:
        self.keyed = asyncio.Semaphore(_KEYED)
        self.calls = CommitCalls(adding.call)
        self._adding = adding
        self._waiting: list[_Call] = []
        self._is_taken = False
        self._background: asyncio.Task[None] | None = None

    async def add(self, tasks: Sequence[NewTask], now: int | None) -> Sequence[Added]:
        if self._is_taken or self._background is not None:
            call = _Call(tasks, asyncio.get_running_loop().create_future())
            self._waiting.append(call)
            return await call.answer
        self._is_taken = True
        try:
            return await self._adding.write(tasks, self.calls, window=0.0, now=now)
        finally:
            self._is_taken = False
            if self._waiting:
                self._background = asyncio.create_task(self._work(now))

    async def finish(self) -> None:
        if self._background is not None:
            await asyncio.wait([self._background])
        await self.calls.finish()

    async def _work(self, now: int | None) -> None:
        try:
            while self._waiting:
                await self._write(self._gathered(), now)
        finally:
            self._background = None
            for call in self._waiting:
                call.answer.cancel()

    def _gathered(self) -> list[_Call]:
        """The next calls, in their order, as many as go together."""
        number = size = 0
        for call in self._waiting:
            size += len(call.tasks)
            if number and size > _TOGETHER:
                break
            number += 1
        calls, self._waiting = self._waiting[:number], self._waiting[number:]
        return calls

    async def _write(self, calls: list[_Call], now: int | None) -> None:
        tasks = [new for call in calls for new in call.tasks]
        try:
            # No task here has an idempotency key, so the window is of no account.
            answers = await self._adding.write(tasks, self.calls, window=0.0, now=now)
        except asyncio.CancelledError:
            for call in calls:
                call.answer.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - each caller gets it
            _fail(calls, error)
        else:
            start = 0
            for call in calls:
                end = start + len(call.tasks)
                if not call.answer.done():
                    call.answer.set_result(answers[start:end])
                start = end


def _has_keys(new: NewTask) -> bool:
    keys = (new.unique_key, new.idempotency_key, new.lock)
    return keys != (None, None, None) or new.gates != ()


def _fail(calls: Sequence[_Call], error: Exception) -> None:
    """Every caller gets an error of its own: one object must not collect many tracebacks."""
    for call in calls:
        if not call.answer.done():
            call.answer.set_exception(
                type(error)(*error.args)
                if len(calls) > 1 and isinstance(error, HoldfastError)
                else error
            )


async def add(
    db: Connection,
    sql: Queries,
    lanes: Lanes,
    tasks: Sequence[NewTask],
    *,
    window: float,
    now: int | None,
    calls: Collection[str] = (),
) -> tuple[list[Added], str | None]:
    """Store tasks on this connection: in its transaction if it has one open, else in their own.
    Also answers whom gates have let pass (`passed_on.py`).
    """
    await lanes.intern(db, tasks)
    exceptions = await db.fetch(
        sql["add"],
        *columns(tasks, lanes),
        span_us(window),
        now,
        list(calls) or None,
        _or_none([new.callback for new in tasks]),
        _or_none([gates_text(to_pass(None, new.gates)) for new in tasks]),
        _or_none([passes(new) for new in tasks]),
        _or_none([_words(new.counts) for new in tasks]),
    )
    answers = [Added(new.id, _CREATED, _QUEUED) for new in tasks]
    passed = None
    for number, task_id, outcome, state in exceptions:
        if number == 0:
            passed = task_id
            continue
        answers[number - 1] = Added(TaskId(task_id), SubmitOutcome(outcome), State(state))
    return answers, passed


async def add_alike(
    db: Connection,
    sql: Queries,
    lanes: Lanes,
    tasks: Sequence[NewTask],
    *,
    now: int | None,
    calls: Collection[str],
) -> list[Added]:
    """The same for tasks that differ in id and payload only, and are ready at once. Raises
    `UniqueViolationError` if any is there already.
    """
    one = tasks[0]
    await lanes.intern(db, tasks[:1])
    await db.execute(
        sql["add_alike"],
        [new.id for new in tasks],
        [new.payload for new in tasks],
        one.name, lanes.by_key[one.queue, one.requires, one.priority], one.head_start,
        one.max_retries, one.timeout, one.retry, one.owner, one.trace, one.parent_id,
        list(calls) or None, now,
    )  # fmt: skip
    return [Added(new.id, _CREATED, _QUEUED) for new in tasks]


def _are_alike(tasks: Sequence[NewTask]) -> bool:
    """Whether `add_alike` will do: ready at once, no keys, gates or callback, all equal but for
    id and payload.
    """
    one = tasks[0]
    if one.tags or (
        one.delay, one.run_at, one.expires_in, one.expires_at, one.unique_key, one.idempotency_key,
        one.lock, one.callback, one.gates, one.counts,
    ) != _NOTHING:  # fmt: skip
        return False
    name, rest = one.name, one[_OWN:]
    return all(new.name == name and new[_OWN:] == rest for new in tasks)


def columns(tasks: Sequence[NewTask], lanes: Lanes) -> list[list[Any] | None]:
    """The tasks as arrays, in the order of `add_rows`."""
    by_key = lanes.by_key
    return [
        [new.id for new in tasks],
        [new.name for new in tasks],
        [new.payload for new in tasks],
        [by_key[new.queue, new.requires, new.priority] for new in tasks],
        [new.head_start for new in tasks],
        [new.max_retries for new in tasks],
        _or_none([new.timeout for new in tasks]),
        _or_none([None if new.delay is None else span_us(new.delay) for new in tasks]),
        _or_none([None if new.run_at is None else in_us(new.run_at) for new in tasks]),
        _or_none([None if new.expires_in is None else span_us(new.expires_in) for new in tasks]),
        _or_none([None if new.expires_at is None else in_us(new.expires_at) for new in tasks]),
        _or_none([new.retry for new in tasks]),
        _or_none([new.unique_key for new in tasks]),
        _or_none([new.idempotency_key for new in tasks]),
        _or_none([new.fingerprint for new in tasks]),
        _or_none([new.lock for new in tasks]),
        _or_none([new.owner for new in tasks]),
        _or_none([new.trace for new in tasks]),
        _or_none([new.parent_id for new in tasks]),
        _or_none([_words(new.tags) for new in tasks]),
    ]


def passes(new: NewTask) -> str | None:
    """The names of all its gates in the order of passing, as JSON; None if its lock is all."""
    return _words([gate.name for gate in to_pass(new.lock, new.gates)]) if new.gates else None


def _words(words: Sequence[str]) -> str | None:
    return orjson.dumps(words).decode() if words else None


def _or_none(column: list[Any]) -> list[Any] | None:
    """A column without a value is not sent at all."""
    return None if column.count(None) == len(column) else column
