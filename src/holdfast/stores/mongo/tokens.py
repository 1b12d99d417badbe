"""Tokens: one document each, `_id` the token's id."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bson import ObjectId
from pymongo import ReturnDocument

from holdfast.core.task import Json
from holdfast.core.token import Scope, Token, from_document
from holdfast.errors import StoreError
from holdfast.stores.columns import as_time, maybe_time, span_us
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.documents import Document
from holdfast.stores.mongo.texts import safe_text


class KeepsTokens(Connected):
    """All of `ports.tokens.TokenStore`."""

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
        async with self._server() as db:
            now = await self._now_us(db)
            fresh: Document = {
                "seq": ObjectId(),
                "name": safe_text(name),
                "scopes": sorted(scope.value for scope in scopes),
                "digest": digest,
                "created_at": now,
                "document": document,
            }
            if expires_in is not None:
                fresh["expires_at"] = now + span_us(expires_in)
            kept = await db.tokens.find_one_and_update(
                {"_id": safe_text(id)},
                {"$setOnInsert": fresh},
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )
            if kept is None:
                raise StoreError(f"{self.url} kept token {id} and did not show it")
            return _token(kept)

    async def rewrite_token(self, token_id: str, document: str) -> None:
        async with self._server() as db:
            change = {"$set": {"document": document}}
            await db.tokens.update_one({"_id": safe_text(token_id)}, change)

    async def token(self, token_id: str) -> Token | None:
        async with self._server() as db:
            found = await db.tokens.find_one({"_id": safe_text(token_id)})
            return None if found is None else _token(found)

    async def tokens(self) -> Sequence[Token]:
        async with self._server() as db:
            found = db.tokens.find({}).sort([("created_at", -1), ("seq", -1)])
            return tuple(_token(each) for each in await found.to_list())

    async def revoke_token(self, token_id: str) -> bool:
        async with self._server() as db:
            done = await db.tokens.update_one(
                {"_id": safe_text(token_id), "revoked_at": {"$exists": False}},
                [{"$set": {"revoked_at": self._now_expression}}],
            )
            return done.matched_count == 1


def _token(found: Mapping[str, Json]) -> Token:
    return Token(
        id=found["_id"],
        name=found["name"],
        scopes=frozenset(Scope(scope) for scope in found["scopes"]),
        digest=found["digest"],
        created_at=as_time(found["created_at"]),
        expires_at=maybe_time(found.get("expires_at")),
        revoked_at=maybe_time(found.get("revoked_at")),
        **from_document(found.get("document")),
    )
