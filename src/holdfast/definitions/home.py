"""What definitions and handles need from the app they belong to."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.definitions.registry import Registry

T = TypeVar("T")


class Home(Protocol):
    """An app, seen from the tasks it defines."""

    @property
    def settings(self) -> Settings: ...

    @property
    def registry(self) -> Registry: ...

    async def verbs(self) -> Client:
        """The client, with its store open."""
        ...

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work from sync code, whatever thread or event loop this is."""
        ...
