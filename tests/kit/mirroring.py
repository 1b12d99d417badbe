"""An app that mirrors, and documents that are kept in memory: the shortest reading of the port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from holdfast.core.task import Json
from holdfast.definitions.define import define
from holdfast.errors import MirrorUnavailable
from holdfast.mirror.task import mirror_task_of
from holdfast.ports.mirror import KEEP, Documents, Truth
from holdfast.testing import MemoryApp

URL = "firestore://demo-holdfast"


class MemoryDocuments:
    """`Documents` as a mapping by path. `is_away`: nothing can be written."""

    def __init__(self) -> None:
        self.found: dict[str, Mapping[str, Json]] = {}
        self.is_away = False
        self.writes = 0

    async def write(self, path: str, truth: Callable[[], Awaitable[Truth]]) -> bool:
        if self.is_away:
            raise MirrorUnavailable("nobody there")
        wanted = await truth()
        if wanted is KEEP or wanted == self.found.get(path):
            return False
        self.writes += 1
        if isinstance(wanted, Mapping):
            self.found[path] = wanted
        else:
            del self.found[path]
        return True

    async def clear(self, path: str) -> int:
        inside = [each for each in self.found if each.startswith(f"{path}/")]
        for each in inside:
            del self.found[each]
        return len(inside)

    async def close(self) -> None:
        """Nothing to let go of."""


def serve_mirror(app: MemoryApp, documents: Documents) -> None:
    """Let this app run its mirror tasks by itself."""
    task = mirror_task_of(app.client.store, documents)
    define(task.handler, app, {"name": task.name, "queue": task.queue, **task.options})
