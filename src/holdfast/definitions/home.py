"""What definitions and handles need from the app they belong to."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from holdfast.core.attempt import History
from holdfast.core.task import Added, Task
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.definitions.call import Call
    from holdfast.definitions.registry import Registry

T = TypeVar("T")


class Verbs(Protocol):
    """The verbs of `client.Client` that reach a definition or a handle."""

    async def submit_many(self, calls: Sequence[Call[Any]]) -> Sequence[Added]: ...

    def submit_within(self, calls: Sequence[Call[Any]], connection: object) -> Sequence[Added]: ...

    async def submit_within_async(
        self, calls: Sequence[Call[Any]], connection: object
    ) -> Sequence[Added]: ...

    async def get(self, task_id: str) -> Task: ...

    async def history(self, task_id: str) -> History: ...

    async def cancel(self, task_id: str) -> Task: ...

    async def retry(self, task_id: str) -> Task: ...


class Home(Protocol):
    """An app, seen from the tasks it defines."""

    @property
    def settings(self) -> Settings: ...

    @property
    def registry(self) -> Registry: ...

    async def verbs(self) -> Verbs:
        """The client, with its store open."""
        ...

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work from sync code, whatever thread or event loop this is."""
        ...
