"""A bookshop keeps its bookings in the database of the tasks. Handlers write them through the
connection that `ctx.transaction()` gives; the tests look at them as everybody else does.

Processes of handlers import these modules too, so nothing here knows pytest.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tests.kit.servers.proxy import Fate, Proxy

from holdfast import Handle, Holdfast
from holdfast.core.attempt import Claim
from holdfast.definitions.definition import Definition
from holdfast.testing.factories import loss


class Bookshop(ABC):
    """One database with bookings and tasks.

    Attributes:
        url: Where it is.
        connections: What an async handler is given, and what a sync one is.
        endings: By which a sync handler could end the transaction itself; each must be refused.
        admits_others: Whether others may write while a handler is inside.
    """

    connections: ClassVar[tuple[type, type]]
    endings: ClassVar[Sequence[Callable[[Any], object]]]
    admits_others: ClassVar[bool] = True

    def __init__(self, url: str) -> None:
        self.url = url

    def app(self, url: str = "") -> Holdfast:
        return Holdfast(
            url=url or self.url, heartbeat="1s", lease="10s", retry_base="10ms", poll="100ms"
        )

    @abstractmethod
    def furnish(self) -> None:
        """Make room for bookings, once there is room for tasks."""

    @abstractmethod
    async def book(self, connection: Any, customer: str) -> None: ...

    @abstractmethod
    def book_sync(self, connection: Any, customer: str) -> None: ...

    @abstractmethod
    async def count(self, connection: Any) -> int:
        """How many bookings this connection sees."""

    @abstractmethod
    def count_sync(self, connection: Any) -> int: ...

    @abstractmethod
    async def end(self, connection: Any) -> None:
        """End the transaction behind the back of whoever lent it."""

    @abstractmethod
    def bookings(self) -> list[str]:
        """The customers that everybody sees, in the order of booking."""


class Branch(Bookshop):
    """A bookshop on a server, so that there is a network to break.

    Attributes:
        commit: The request by which a handler's transaction is committed, as a pattern.
        completion: The request before it, which writes the task.
        losses: How many commits in a row are worth losing.
        lock: What handlers may hold without there being other commits than theirs.
        advice: What a handler that catches an error inside is told.
    """

    commit: ClassVar[str]
    completion: ClassVar[str]
    losses: ClassVar[Sequence[int]] = (1,)
    lock: ClassVar[str | None] = None
    advice: ClassVar[str]

    @abstractmethod
    def proxy(self) -> Proxy:
        """A bad network before the server, for `through`."""

    @abstractmethod
    def through(self, proxy: Proxy) -> Holdfast: ...

    @abstractmethod
    def attempts_after(self, fate: Fate) -> int:
        """How many attempts a task needs whose commit meets this fate."""

    @abstractmethod
    async def stumble(self, connection: Any) -> None:
        """Book, and catch the error of an operation that fails."""


async def work(app: Holdfast, **options: Any) -> None:
    """Run all tasks there are."""
    async with asyncio.timeout(60):
        await app.run_worker(burst=True, **options)


async def ran(app: Holdfast, task: Definition[..., Any, Any], *given: Any) -> Handle[Any]:
    """Submit one, and run all tasks there are."""
    handle = await task.submit_async(*given)
    await work(app)
    return handle


async def rescue(app: Holdfast, task_id: str) -> None:
    """Somebody else declares the running attempt lost, and the task goes on without it."""
    running = Claim.of(await app.get_async(task_id))
    assert not await app.client.store.save([loss(running)])


async def message_of(handle: Handle[Any]) -> str:
    """What the error of a failed task says."""
    error = (await handle.task_async()).error
    assert error is not None
    return error.message


async def kinds_of(handle: Handle[Any]) -> list[str]:
    """The kinds of all events of a task, oldest first."""
    return [event.kind for event in (await handle.history_async()).events]


async def endings_of(handle: Handle[Any]) -> list[str | None]:
    """How each attempt of a task ended."""
    return [attempt.ended for attempt in (await handle.history_async()).attempts]
