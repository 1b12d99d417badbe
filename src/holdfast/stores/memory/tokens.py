"""Tokens in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from holdfast.core.token import Scope, Token, from_document
from holdfast.ports.clock import Clock
from holdfast.stores.memory.guarded import Guarded
from holdfast.stores.values import as_time, span_us


class KeepsTokens(Guarded):
    """All of `ports.tokens.TokenStore`."""

    def __init__(self, clock: Clock | None) -> None:
        super().__init__(clock)
        self._tokens: dict[str, Token] = {}

    async def add_token(
        self,
        *,
        id: str,  # noqa: A002 - the port's word
        name: str,
        scopes: Collection[Scope],
        digest: bytes,
        expires_in: float | None,
        document: str = "{}",
    ) -> Token:
        with self._lock:
            now = self._clock.now_us()
            new = Token(
                id=id,
                name=name,
                scopes=frozenset(scopes),
                digest=digest,
                created_at=as_time(now),
                expires_at=None if expires_in is None else as_time(now + span_us(expires_in)),
                **from_document(document),
            )
            return self._tokens.setdefault(id, new)

    async def rewrite_token(self, token_id: str, document: str) -> None:
        with self._lock:
            if found := self._tokens.get(token_id):
                self._tokens[token_id] = replace(found, **from_document(document))

    async def token(self, token_id: str) -> Token | None:
        with self._lock:
            return self._tokens.get(token_id)

    async def tokens(self) -> Sequence[Token]:
        with self._lock:
            return tuple(reversed(self._tokens.values()))

    async def revoke_token(self, token_id: str) -> bool:
        with self._lock:
            found = self._tokens.get(token_id)
            if found is None or found.revoked_at is not None:
                return False
            self._tokens[token_id] = replace(found, revoked_at=as_time(self._clock.now_us()))
            return True
