"""What a store finds wrong with itself (`check`)."""

from __future__ import annotations

from typing import Final, Self

BROKEN: Final = "store_check"
"""The code of what has none of its own: an invariant that does not hold."""


class Trouble(str):
    """A sentence about what should not be. `code` is stable, `fix` says what to do about it;
    not `harmful` is what costs speed or safety later and breaks no promise now.
    """

    __slots__ = ("code", "fix", "harmful")

    code: str
    fix: str | None
    harmful: bool

    def __new__(
        cls, text: str, *, code: str = BROKEN, fix: str | None = None, harmful: bool = True
    ) -> Self:
        self = super().__new__(cls, text)
        self.code, self.fix, self.harmful = code, fix, harmful
        return self
