"""Tokens, as the writer changes them and readers find them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

import orjson

from holdfast.core.token import Scope, Token, from_document
from holdfast.stores.columns import as_time, maybe_time, span_us
from holdfast.stores.sqlite.queries import TOKENS, as_json
from holdfast.stores.sqlite.values import safe_text
from holdfast.stores.sqlite.writer import Unit


def add(
    unit: Unit,
    token_id: str,
    name: str,
    scopes: Collection[Scope],
    digest: bytes,
    expires_in: float | None,
    document: str,
) -> Token:
    now = unit.now
    expires_at = None if expires_in is None else now + span_us(expires_in)
    words = as_json(sorted(scope.value for scope in scopes))
    values = (token_id, safe_text(name), words, digest, now, expires_at, document)
    unit.db.execute(TOKENS["add"], values)
    (token,) = _tokens(unit.db, TOKENS["get"], token_id)
    return token


def rewrite(unit: Unit, token_id: str, document: str) -> None:
    unit.db.execute(TOKENS["rewrite"], (document, safe_text(token_id)))


def get(db: sqlite3.Connection, token_id: str) -> Token | None:
    found = _tokens(db, TOKENS["get"], safe_text(token_id))
    return found[0] if found else None


def newest(db: sqlite3.Connection) -> Sequence[Token]:
    return _tokens(db, TOKENS["all"])


def revoke(unit: Unit, token_id: str) -> bool:
    values = {"id": safe_text(token_id), "now": unit.now}
    return unit.db.execute(TOKENS["revoke"], values).rowcount == 1


def _tokens(db: sqlite3.Connection, sql: str, *values: str) -> list[Token]:
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return [_token_of(row) for row in cursor.execute(sql, values)]


def _token_of(row: sqlite3.Row) -> Token:
    return Token(
        id=row["id"],
        name=row["name"],
        scopes=frozenset(map(Scope, orjson.loads(row["scopes"]))),
        digest=row["digest"],
        created_at=as_time(row["created_at"]),
        expires_at=maybe_time(row["expires_at"]),
        revoked_at=maybe_time(row["revoked_at"]),
        **from_document(row["document"]),
    )
