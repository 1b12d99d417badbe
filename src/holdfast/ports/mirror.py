"""What holds copies of documents for others to listen to, and what it must promise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Final, Protocol

from holdfast.core.task import Json


class Keep(Enum):
    """What there is, or is not, stays as it is."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP

Truth = Mapping[str, Json] | Keep | None
"""What a document should say: these fields (those that others added stay), or what it says now,
or nothing, as it should be gone (None). The values are JSON, and datetimes.
"""


class Documents(Protocol):
    """Documents by their paths, below the place that was configured."""

    async def write(self, path: str, truth: Callable[[], Awaitable[Truth]]) -> bool:
        """Make a document what `truth` answers; whether anything was changed.

        `truth` is asked after the document was looked at, and the answer is only written if nobody
        has written the document since; else both are asked again, until they say the same. So
        whoever is late never leaves something older where something newer was, even if it was
        taken for lost and another does the same.
        `MirrorUnavailable` if that did not work: nothing is lost, try again later.
        """
        ...

    async def clear(self, path: str) -> int:
        """Delete all documents of the collection at this path, and say how many there were."""
        ...

    async def close(self) -> None:
        """Let go of the connection; the next use connects again."""
        ...
