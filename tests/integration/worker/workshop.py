"""A worker's surroundings for tests: a store, a dispatcher, definitions, and workers on them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.client import Client
from holdfast.core.attempt import Attempt
from holdfast.core.task import Priority, State, Task, TaskId
from holdfast.definitions.define import define
from holdfast.definitions.options import read_options
from holdfast.definitions.registry import AnyDefinition, Registry
from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.settings import Settings
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, task_id
from holdfast.worker.heartbeat import ThreadHeartbeat
from holdfast.worker.worker import Worker

T = TypeVar("T")

PATIENT = Settings(poll=0.2, lease=30.0, heartbeat=10.0, retry_base=0.01, retry_cap=0.05, drain=5.0)


class Workshop:
    """Where a test defines tasks, submits them and lets workers run."""

    def __init__(self, store: Store, dispatcher: Dispatcher | None = None) -> None:
        self.store = store
        self.dispatcher = dispatcher or InProcessDispatcher()
        self.registry = Registry()
        self.settings = PATIENT

    async def verbs(self) -> Client:
        raise NotImplementedError

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        raise NotImplementedError

    def task(self, **options: Any) -> Callable[[Callable[..., Any]], AnyDefinition]:
        """Define a task."""

        def decorate(function: Callable[..., Any]) -> AnyDefinition:
            options.setdefault("name", function.__name__)
            return define(function, self, options)

        return decorate

    async def submit(self, definition: AnyDefinition, *args: Any, **options: Any) -> TaskId:
        """Submit one call."""
        return (await self.submit_many(definition, [args], **options))[0]

    async def submit_many(
        self, definition: AnyDefinition, calls: list[tuple[Any, ...]], **options: Any
    ) -> list[TaskId]:
        """Submit one call for each tuple of arguments, in one batch."""
        read = read_options(options)
        starts = {one: self.settings.aging.head_start(one) for one in Priority}
        tasks = [
            definition.make_call(args, {}, read).new_task(task_id(), self.settings, starts)
            for args in calls
        ]
        added = await self.store.add(tasks, idempotency_window=WINDOW)
        self.dispatcher.wake(Counter(task.queue for task in tasks))
        return [one.task_id for one in added]

    def worker(
        self,
        *,
        store: Store | None = None,
        burst: bool = False,
        **given: Any,
    ) -> Worker:
        """A worker on this store; keywords are settings."""
        settings = replace(self.settings, **given)
        used = store or self.store
        return Worker(
            used,
            self.dispatcher,
            self.registry,
            settings,
            burst=burst,
            start_heartbeat=lambda worker_id: ThreadHeartbeat(used, worker_id, settings.heartbeat),
        )

    async def drain(self, **given: Any) -> None:
        """Run a worker until nothing is left."""
        async with asyncio.timeout(20):
            await self.worker(burst=True, **given).run()

    @asynccontextmanager
    async def working(self, **given: Any) -> AsyncIterator[Worker]:
        """A worker that runs while the context is open."""
        worker = self.worker(**given)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            worker.stop()
            async with asyncio.timeout(20):
                await running

    async def get(self, task: TaskId) -> Task:
        found = await self.store.get(task)
        assert found is not None
        return found

    async def attempts(self, task: TaskId) -> tuple[Attempt, ...]:
        history = await self.store.history(task)
        assert history is not None
        return history.attempts

    async def reaches(self, task: TaskId, state: State, *, within: float = 10.0) -> Task:
        """Wait until the task is in that state."""

        async def there() -> Task | None:
            found = await self.get(task)
            assert found.state is state, f"{found.state}, expected {state}: {found.error}"
            return found

        found = await eventually(there, within=within)
        assert found is not None
        return found
