"""The durable steps of one attempt: what `ctx.step`, `sleep`, `wait_for` and `map` stand on.

A step runs, and what it returned is in the store's journal before the handler goes on. A later
attempt begins at the top again, and every step that was recorded is answered from the journal. So
the handler must call the same steps in the same order; `core.steps` says what is checked.

**Which steps have an order.** Those that the handler calls itself. What it starts beside itself (an
asyncio task, a thread) goes its own way, and its steps are known by their names alone. `line` says
where the handler is: its asyncio task, or its thread; None while only it can have been called.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final, NoReturn, Protocol, TypeVar, cast
from uuid import uuid4

import orjson

from holdfast.core.attempt import Claim
from holdfast.core.events import Came, Looked, NotYet, event_id
from holdfast.core.record import Changes, Put
from holdfast.core.steps import (
    NOTHING,
    SLEEP,
    WAIT,
    Journal,
    Place,
    entry,
    read_step_name,
    shown,
    sleep_value,
    slept_until,
)
from holdfast.core.task import Json
from holdfast.definitions.step_codec import codec_of
from holdfast.errors import EventTimeout, StepRefused

T = TypeVar("T")

Line = asyncio.Task[Any] | int | None
"""Where a handler runs: its asyncio task, or its thread; None if nothing else can run beside it."""

LOOK_EVERY: Final = 0.1
"""Seconds after which a thread that waits for others can be interrupted."""


class Deferral(BaseException):
    """Ends an attempt that sleeps or waits. No `Exception`, so that a handler which catches those
    does not swallow it; `finally` and context managers are left as usual.
    """

    def __init__(self, delay: float, put: Put | None = None) -> None:
        super().__init__("the attempt gives its slot back and goes on later")
        self.delay = delay
        self.put = put

    @property
    def also(self) -> Changes | None:
        return None if self.put is None else Changes(uuid4().hex, records=(self.put,))


class StepHost(Protocol):
    """What steps need of the place where their handler runs. From any thread and event loop."""

    @property
    def max_result(self) -> int: ...

    async def journal(self, claim: Claim) -> Mapping[str, bytes]:
        """What was recorded so far."""
        ...

    def record(self, claim: Claim, name: str, value: bytes) -> Awaitable[None]:
        """Record a step; it is durable when this returns. `LeaseLost` if it is too late."""
        ...

    async def now(self) -> datetime:
        """The store's clock."""
        ...

    async def look_for(self, claim: Claim, event: str, timeout: float | None) -> Looked:
        """See whether an event has come; if not, be told when it does."""
        ...

    async def wait_no_more(self, claim: Claim, event: str) -> None:
        """That it came, or did not in time, is recorded."""
        ...

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work from the thread of a sync handler."""
        ...


class Stepping(Protocol):
    """An attempt whose handler makes steps."""

    claim: Claim
    line: Line

    @property
    def step_host(self) -> StepHost: ...

    def open_transaction(self) -> object | None: ...


class Steps:
    """The steps of one attempt, in the order in which they are called."""

    def __init__(self, attempt: Stepping) -> None:
        claim = attempt.claim
        self._attempt = attempt
        self._claim = claim
        self._host = attempt.step_host
        self._journal = NOTHING if claim.attempt == 1 else None
        self._names: set[str] = set()
        self._numbers = count(1)
        self._sleeps = count(1)
        self._running = 0
        self._deferral: Deferral | None = None

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Any,
        kwargs: Mapping[str, Any],
        place: Place | None = None,
    ) -> Any:
        """One step; at this place if it is part of a map."""
        if place is None:
            place = self._place(read_step_name(name))
        journal = self._journal or await self._load()
        if journal is not NOTHING:
            journal.check(name, place)
        codec = codec_of(function)
        if name in journal:
            return codec.read(journal[name])
        self._running += 1
        try:
            value = function(*args, **kwargs)
            if hasattr(value, "__await__"):
                value = await cast("Awaitable[Any]", value)
            result = codec.dump(name, value, self._host.max_result)
            await self._host.record(self._claim, name, entry(place, name, result))
        finally:
            self._running -= 1
        return codec.load(result)

    def step_sync(
        self, name: str, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        place = self._place(read_step_name(name))
        return self._one_sync(name, place, function, args, kwargs)

    async def sleep(self, seconds: float) -> None:
        await self._sleep(*self._alone(f"{SLEEP}{next(self._sleeps)}"), seconds)

    def sleep_sync(self, seconds: float) -> None:
        name, place = self._alone(f"{SLEEP}{next(self._sleeps)}")
        self._host.wait(self._sleep(name, place, seconds))

    async def wait_for(self, event: str, key: str, timeout: float | None) -> Json:
        name, place = self._alone(WAIT + event_id(event, key))
        return await self._wait_for(name, place, event, key, timeout)

    def wait_for_sync(self, event: str, key: str, timeout: float | None) -> Json:
        name, place = self._alone(WAIT + event_id(event, key))
        return self._host.wait(self._wait_for(name, place, event, key, timeout))

    async def map(
        self, function: Callable[..., Any], items: Iterable[Any], name: str, concurrency: int
    ) -> list[Any]:
        """Once a step fails no more are begun; those that run are waited for, and recorded."""
        calls, place = self._several(name, items)
        left, results = iter(enumerate(calls)), [None] * len(calls)
        failed: dict[int, Exception] = {}

        async def work() -> None:
            for number, (step, item) in left:
                if failed:
                    return
                try:
                    results[number] = await self.step(step, function, (item,), {}, place)
                except Exception as error:  # noqa: BLE001 - raised below, once all have ended
                    failed[number] = error

        tasks = [asyncio.ensure_future(work()) for _ in range(min(concurrency, len(calls)))]
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
        for task in tasks:
            task.result()
        if failed:
            raise failed[min(failed)]
        return results

    def map_sync(
        self, function: Callable[..., Any], items: Iterable[Any], name: str, concurrency: int
    ) -> list[Any]:
        calls, place = self._several(name, items)
        if not calls:
            return []
        with ThreadPoolExecutor(min(concurrency, len(calls)), "holdfast-step") as threads:
            running = [
                threads.submit(
                    copy_context().run, self._one_sync, step, place, function, (item,), {}
                )
                for step, item in calls
            ]
            try:
                # Not `wait(running)` alone: nothing reaches a thread that waits for a lock.
                while (now := wait(running, LOOK_EVERY, FIRST_EXCEPTION)).not_done:
                    if any(one.exception() for one in now.done):
                        break
            finally:
                threads.shutdown(wait=False, cancel_futures=True)
        for one in running:
            if not one.cancelled() and (error := one.exception()) is not None:
                raise error
        return [one.result() for one in running]

    def _one_sync(
        self,
        name: str,
        place: Place,
        function: Callable[..., Any],
        args: Any,
        kwargs: Mapping[str, Any],
    ) -> Any:
        host = self._host
        journal = self._journal or host.wait(self._load())
        journal.check(name, place)
        codec = codec_of(function)
        if name in journal:
            return codec.read(journal[name])
        self._running += 1
        try:
            value = function(*args, **kwargs)
            if asyncio.iscoroutine(value):
                value.close()
                raise StepRefused(
                    f"{shown(name)} is async, and this handler is not. Make the handler "
                    "`async def` and write `await ctx.step(…)`, or give a plain function."
                )
            result = codec.dump(name, value, host.max_result)
            host.wait(self._record(name, entry(place, name, result)))
        finally:
            self._running -= 1
        return codec.load(result)

    async def _sleep(self, name: str, place: Place, seconds: float) -> None:
        journal = self._journal or await self._load()
        journal.check(name, place)
        now = await self._host.now()
        if name in journal:
            until = slept_until(journal[name])
        else:
            until = now + timedelta(seconds=seconds)
            value = entry(place, name, sleep_value(until))
            await self._host.record(self._claim, name, value)
        if now < until:
            self._defer(Deferral((until - now).total_seconds()))

    async def _wait_for(
        self, name: str, place: Place, event: str, key: str, timeout: float | None
    ) -> Json:
        journal = self._journal or await self._load()
        journal.check(name, place)
        if name in journal:
            found = journal[name]
        else:
            found = await self._look_for(name, place, event_id(event, key), timeout)
        if found.get("timed_out"):
            raise EventTimeout(event, key)
        return found["payload"]

    async def _look_for(
        self, name: str, place: Place, event: str, timeout: float | None
    ) -> dict[str, Json]:
        host, claim = self._host, self._claim
        looked = await host.look_for(claim, event, timeout)
        if isinstance(looked, NotYet):
            self._defer(Deferral(looked.delay, looked.put))
        found: dict[str, Json] = {"timed_out": True}
        if isinstance(looked, Came):
            found = {"payload": looked.payload}
        await host.record(claim, name, entry(place, name, orjson.dumps(found)))
        if not isinstance(looked, Came) or looked.was_waiting:
            await host.wait_no_more(claim, event)
        return found

    async def _record(self, name: str, value: bytes) -> None:
        await self._host.record(self._claim, name, value)

    async def _load(self) -> Journal:
        journal = Journal(await self._host.journal(self._claim))
        if self._journal is None:
            self._journal = journal
        return self._journal

    def _place(self, name: str) -> Place:
        """Where this call stands; `StepRefused` if it cannot be."""
        if self._deferral is not None:
            raise self._deferral
        if self._attempt.open_transaction() is not None:
            raise StepRefused(
                f"{shown(name)} is inside `ctx.transaction()`, which completes the task by itself. "
                "Make the step before that block."
            )
        if name in self._names:
            raise StepRefused(
                f"{shown(name)} was called before in this attempt, and what it returned is kept "
                f"under its name. Give each a name of its own (`{name}-1`, `{name}-2` …), or use "
                "ctx.map(), which numbers them."
            )
        self._names.add(name)
        return Place(next(self._numbers) if self._is_in_line() else None, name)

    def _several(self, name: str, items: Iterable[Any]) -> tuple[list[tuple[str, Any]], Place]:
        """The steps of a map, and the place of all of them."""
        calls = [(f"{name}-{n}", item) for n, item in enumerate(items, 1)]
        label = f"{read_step_name(name)}-*"
        for step, _ in calls:
            if step in self._names:
                self._place(step)  # says what is wrong
        place = self._place(label)
        self._names.update(step for step, _ in calls)
        return calls, place

    def _alone(self, name: str) -> tuple[str, Place]:
        """The place of what ends this attempt: only the handler itself may, when nothing runs."""
        if not self._is_in_line():
            raise StepRefused(
                f"{shown(name)} ends the attempt until then, so only the handler itself may call "
                "it, not an asyncio task or a thread that it started (gather, wait_for, "
                "TaskGroup …)."
            )
        place = self._place(name)
        if self._running:
            raise StepRefused(
                f"{shown(name)} ends the attempt until then, and {self._running} of its steps "
                "still run beside the handler. Wait for them first."
            )
        return name, place

    def _is_in_line(self) -> bool:
        line = self._attempt.line
        if isinstance(line, int):
            return line == threading.get_ident()
        return line is None or line is asyncio.current_task()

    def _defer(self, deferral: Deferral) -> NoReturn:
        self._deferral = deferral
        raise deferral
