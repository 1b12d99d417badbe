"""Who is logged in: a browser has a random secret, and the store a record of what it stands for.

The secret is in a cookie and nowhere else; the record's key is its SHA-256, so a stolen store opens
no door. A session ends when its time is over, at a logout, and at once when its token is revoked or
expires: the token is looked up at every request, and for every stream that is open.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from holdfast.client import Client
from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.core.token import Token
from holdfast.errors import RecordConflict
from holdfast.ports.records import one_record

SESSION: Final = "session"
"""The kind of their records: the key is the digest of the secret, the group is the token's id."""
LIFETIME: Final = timedelta(hours=12)
REST: Final = 60.0
AT_A_TIME: Final = 500

Verbs = Callable[[], Awaitable[Client]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A login. `csrf` is what a form must bring along to be believed."""

    id: str
    token: Token
    csrf: str = field(repr=False)


class Sessions:
    """The sessions of one store."""

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs

    async def begin(self, token: Token) -> str:
        """Log a token in; the secret for the cookie."""
        client, secret = await self._verbs(), secrets.token_urlsafe(32)
        now = await client.now()
        document = {
            "token_id": token.id,
            "csrf": secrets.token_urlsafe(32),
            "created_at": now.isoformat(),
            # Not only `due`: whoever takes what is due to forget it makes it due a little later.
            "expires_at": (now + LIFETIME).isoformat(),
        }
        put = Put(
            SESSION, digest(secret), json.dumps(document), 0, group=token.id,
            due_in=LIFETIME.total_seconds(),
        )  # fmt: skip
        await client.store.commit(Changes(uuid4().hex, records=[put]))
        return secret

    async def find(self, secret: str) -> Session | None:
        """The session of a secret; None if there is none, or its time or its token's is over."""
        client = await self._verbs()
        record = await one_record(client.store, SESSION, digest(secret))
        if record is None or _is_over(record, await client.now()):
            return None
        document = json.loads(record.document)
        token = await client.tokens.get(document["token_id"])
        if token is None:
            return None
        return Session(id=record.key, token=token, csrf=document["csrf"])

    async def end(self, session: Session) -> None:
        """Log out."""
        client = await self._verbs()
        gone = Delete(SESSION, session.id)
        await client.store.commit(Changes(uuid4().hex, records=[gone]))

    async def good(self, ids: Collection[str]) -> Collection[str]:
        """Those of these sessions that are good at this moment, and so are their tokens."""
        client = await self._verbs()
        now = await client.now()
        found = await client.store.records(SESSION, keys=ids, limit=len(ids))
        tokens = {
            record.key: json.loads(record.document)["token_id"]
            for record in found
            if not _is_over(record, now)
        }
        good = await client.tokens.good(set(tokens.values())) if tokens else ()
        return {key for key, token_id in tokens.items() if token_id in good}


class SessionKeeper:
    """A maintenance agent: forgets sessions whose time is over."""

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs

    async def tick(self) -> float:
        store = (await self._verbs()).store
        due = await store.take_due(SESSION, limit=AT_A_TIME, lease=REST)
        gone = [Delete(SESSION, record.key, record.version) for record in due.records]
        if gone:
            with suppress(RecordConflict):  # somebody logged out just now
                await store.commit(Changes(uuid4().hex, records=gone))
        return 0.1 if len(gone) == AT_A_TIME else REST


def digest(secret: str) -> str:
    """The key of a secret's record. No slow hash: there are 256 random bits to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _is_over(record: Record, now: datetime) -> bool:
    return now >= datetime.fromisoformat(json.loads(record.document)["expires_at"])
