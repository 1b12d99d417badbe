"""One poll that waits for work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.core.attempt import Claim
from holdfast.remote.roster import Member


class Seat:
    """Answered exactly once: with claims, with none, or with an error.

    A claim under way for a seat is never given up, because the store may have started its tasks: a
    seat that is asked to close meanwhile is answered when the claim has landed.
    """

    __slots__ = ("_closing", "answer", "is_served", "limit", "member")

    def __init__(self, member: Member, limit: int) -> None:
        self.member = member
        self.limit = limit
        self.answer: asyncio.Future[Sequence[Claim]] = asyncio.get_running_loop().create_future()
        self.is_served = False
        self._closing = False

    def close(self) -> None:
        """Wait no more: none came."""
        self._closing = True
        if not self.is_served:
            self._set([])

    def begin(self) -> None:
        """A claim for it is under way."""
        self.is_served = True

    def land(self, claims: Sequence[Claim]) -> None:
        """The claim brought this."""
        self.is_served = False
        if claims or self._closing:
            self._set(claims)

    def fail(self, error: BaseException) -> None:
        """The claim failed."""
        self.is_served = False
        if not self.answer.done():
            self.answer.set_exception(error)

    def _set(self, claims: Sequence[Claim]) -> None:
        if not self.answer.done():
            self.answer.set_result(claims)
