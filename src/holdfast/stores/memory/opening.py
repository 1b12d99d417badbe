"""Opening, closing and a schema, for a store that needs none of it."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self


class NothingToOpen:
    """`SchemaStore`, and how a store is opened."""

    async def schema_version(self) -> int:
        return 1

    async def migrate(self) -> Sequence[int]:
        return ()

    async def check(self) -> Sequence[str]:
        return ()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
