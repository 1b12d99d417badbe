"""Tokens, as they are kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.core.token import Scope, Token, from_document
from holdfast.stores.columns import as_time, maybe_time, span_us
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.values import Row, safe_text


async def add(
    db: Connection,
    sql: Queries,
    *,
    token_id: str,
    name: str,
    scopes: Collection[Scope],
    digest: bytes,
    expires_in: float | None,
    document: str,
    now: int | None,
) -> Token:
    words = sorted(scope.value for scope in scopes)
    span = None if expires_in is None else span_us(expires_in)
    given = (token_id, safe_text(name), words, digest, span, document, now)
    await db.execute(sql["add_token"], *given)
    (row,) = await db.fetch(sql["token"], token_id)
    return _token_of(row)


async def get(db: Connection, sql: Queries, token_id: str) -> Token | None:
    row = await db.fetchrow(sql["token"], safe_text(token_id))
    return None if row is None else _token_of(row)


async def newest(db: Connection, sql: Queries) -> Sequence[Token]:
    return [_token_of(row) for row in await db.fetch(sql["tokens"])]


def _token_of(row: Row) -> Token:
    return Token(
        id=row["id"],
        name=row["name"],
        scopes=frozenset(map(Scope, row["scopes"])),
        digest=row["digest"],
        created_at=as_time(row["created_at"]),
        expires_at=maybe_time(row["expires_at"]),
        revoked_at=maybe_time(row["revoked_at"]),
        **from_document(row["document"]),
    )
