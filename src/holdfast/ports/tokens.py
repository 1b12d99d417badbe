"""What a store must promise about tokens."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.core.token import Scope, Token


class TokenStore(Protocol):
    """Keeps tokens. Whether one is good is for the caller to judge, by `now` and the digest."""

    async def add_token(
        self,
        *,
        id: str,  # noqa: A002 - the word for it everywhere
        name: str,
        scopes: Collection[Scope],
        digest: bytes,
        expires_in: float | None,
        document: str = "{}",
    ) -> Token:
        """Keep a new token, created now; it expires `expires_in` seconds from now, if at all. Its
        id was never used before: a repeat (after an unknown outcome) changes nothing and answers
        the token as it is. `document` is what else there is to know (`core.token.as_document`).
        """
        ...

    async def rewrite_token(self, token_id: str, document: str) -> None:
        """Keep another document for this token; nothing happens if there is no such token."""
        ...

    async def token(self, token_id: str) -> Token | None:
        """One token, whatever its state. Asked about once a second for each token in use."""
        ...

    async def tokens(self) -> Sequence[Token]:
        """All tokens ever made, newest first, those revoked and expired included."""
        ...

    async def revoke_token(self, token_id: str) -> bool:
        """End a token now and for ever. False if it is unknown or was revoked before."""
        ...

    async def now(self) -> datetime:
        """The store's clock, by which tokens expire."""
        ...
