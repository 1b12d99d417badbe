"""Tokens: who may do what over HTTP.

A token's text is `hf_<id>_<secret>`: 16 hex digits to find it by, and 256 random bits that are
shown once and kept only as a SHA-256. So a stolen store opens no door, and there is nothing to
guess. A fast hash is right here: it slows down nobody who has to try 2^256 secrets.

Whether a token is good is judged by the store's clock. A good one is taken at its word for a
second: a revoked token works no longer than that in other processes, and not at all in this one.
When it was last used is noted about once a minute, beside the request and never before its answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Unpack
from uuid import uuid4

from holdfast.bounds import BoundWords, read_bounds
from holdfast.core.duration import Duration
from holdfast.core.record import Changes, Record
from holdfast.core.token import TOKEN, Bounds, Scope, Token, put_of, token_of
from holdfast.definitions.readers import hint, read_duration, read_text
from holdfast.errors import HoldfastError, InvalidOption, RecordConflict
from holdfast.logs import EventLog
from holdfast.ports.records import one_record
from holdfast.ports.store import Store

log = EventLog("holdfast.client")

TRUSTED_FOR = 1.0
"""Seconds that a token found good is not looked up again."""
NOTED_EVERY = 60.0
"""Seconds for which a token's use is not noted again in this process."""
LONGEST_NAME = 200
PAGE = 500

_TEXT: Final = re.compile(r"hf_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)


class CheckedToken(NamedTuple):
    """A token that was found good, and until when (monotonic) it is taken at its word."""

    token: Token
    until: float


class Tokens:
    """The tokens of one store: made, listed, revoked and checked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._good: dict[str, CheckedToken] = {}
        self._revocations = 0
        self._noted: dict[str, float] = {}
        self._noting: set[asyncio.Task[None]] = set()

    async def create(
        self,
        name: str,
        scopes: str | Scope | Collection[str | Scope],
        expires: Duration | None = None,
        *,
        created_by: str | None = None,
        **words: Unpack[BoundWords],
    ) -> tuple[Token, str]:
        """Make a token. Its text is in the answer and nowhere else, now or ever.

        Without `expires` (`"90d"`) it is good until it is revoked. The other words bind it
        (`owner="anna", rate="100/1m"`).
        """
        chosen = read_scopes(scopes)
        bounds = read_bounds(**words)
        _refuse_bounds_without_effect(chosen, bounds)
        named = read_text("name", name, LONGEST_NAME) if name else ""
        lifetime = None if expires is None else read_duration("expires", expires)
        if lifetime == 0:
            raise InvalidOption("expires", f"expected more than 0 seconds, got {expires!r}")
        token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        now = await self._store.now()
        token = Token(
            id=token_id,
            name=named,
            scopes=chosen,
            digest=_digest(secret),
            created_at=now,
            expires_at=None if lifetime is None else _later(now, lifetime),
            bounds=bounds,
            created_by=created_by,
        )
        await self._write(token, version=0)
        log.info("token.created", token_id=token_id, token_name=named, scopes=sorted(chosen))
        return token, f"hf_{token_id}_{secret}"

    async def list(self) -> Sequence[Token]:
        """Every token ever made, newest first, revoked and expired ones too."""
        found: list[Record] = []
        while page := await self._store.records(
            TOKEN, group="", limit=PAGE, after=found[-1] if found else None, newest_first=True
        ):
            found += page
            if len(page) < PAGE:
                break
        return list(map(token_of, found))

    async def revoke(self, token_id: str) -> bool:
        """End a token for ever. False if there is none with that id, or it was revoked before."""
        try:
            revoked_at = await self._store.now()
            revoked = await self._rewrite(token_id, lambda old: _revoked(old, revoked_at))
            if revoked:
                log.info("token.revoked", token_id=token_id)
            return revoked
        finally:
            # Whoever looked it up meanwhile must not bring it back.
            self._revocations += 1
            self._good.pop(token_id, None)

    async def any_valid(self) -> bool:
        """Whether there is a token that opens anything at all."""
        now = await self._store.now()
        return any(token.is_valid(now) for token in await self.list())

    async def check(self, text: str) -> Token | None:
        """The token that this text is, if it is good; None for anything else, without saying why:
        malformed, unknown, wrong, revoked or expired.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            return None
        token_id, digest = match[1], _digest(match[2])
        known = await self._known(token_id)
        expected = b"\0" * len(digest) if known is None else known.token.digest
        is_right = hmac.compare_digest(digest, expected)
        if known is None or not is_right:
            return None
        if time.monotonic() >= self._noted.get(token_id, 0.0):
            self._note(known.token)
        return known.token

    async def get(self, token_id: str) -> Token | None:
        """The token with this id, if it is good at this moment: the store is asked."""
        record = await one_record(self._store, TOKEN, token_id)
        token = None if record is None else token_of(record)
        return token if token is not None and token.is_valid(await self._store.now()) else None

    async def good(self, token_ids: Collection[str]) -> Collection[str]:
        """Those of the tokens with these ids that are good at this moment: the store is asked."""
        now = await self._store.now()
        found = await self._store.records(TOKEN, keys=token_ids, limit=len(token_ids))
        return {token.id for token in map(token_of, found) if token.is_valid(now)}

    async def noted(self) -> None:
        """Wait until every use so far is written down, or could not be."""
        if self._noting:
            await asyncio.wait(self._noting)

    def _note(self, token: Token) -> None:
        """Write down, beside, that it is used."""
        self._noted[token.id] = time.monotonic() + NOTED_EVERY
        noting = asyncio.create_task(self._note_use(token))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)

    async def _note_use(self, token: Token) -> None:
        try:
            used_at = await self._store.now()
            await self._rewrite(token.id, lambda old: replace(old, last_used_at=used_at))
        except HoldfastError:
            self._noted.pop(token.id, None)  # whoever uses it next tries again

    async def _rewrite(self, token_id: str, change: Callable[[Token], Token | None]) -> bool:
        """Change a token, whoever else does meanwhile; False if there was nothing to change."""
        while True:
            record = await one_record(self._store, TOKEN, token_id)
            changed = None if record is None else change(token_of(record))
            if record is None or changed is None:
                return False
            with suppress(RecordConflict):
                await self._write(changed, version=record.version)
                return True

    async def _write(self, token: Token, *, version: int) -> None:
        await self._store.commit(Changes(uuid4().hex, records=[put_of(token, version)]))

    async def _known(self, token_id: str) -> CheckedToken | None:
        known = self._good.get(token_id)
        if known is None or known.until <= time.monotonic():
            known = await self._look_up(token_id)
        return known

    async def _look_up(self, token_id: str) -> CheckedToken | None:
        asked_at, revocations = time.monotonic(), self._revocations
        record = await one_record(self._store, TOKEN, token_id)
        token = None if record is None else token_of(record)
        if token is None or token.revoked_at is not None:
            self._good.pop(token_id, None)
            return None
        left = TRUSTED_FOR
        if token.expires_at is not None:
            left = (token.expires_at - await self._store.now()).total_seconds()
        if left <= 0:
            self._good.pop(token_id, None)
            return None
        good = CheckedToken(token, asked_at + min(left, TRUSTED_FOR))
        if revocations == self._revocations:
            self._good[token_id] = good
        return good


def read_scopes(value: str | Scope | Collection[str | Scope]) -> frozenset[Scope]:
    """Read one scope or several; `InvalidOption` for none and for unknown ones."""
    words = [value] if isinstance(value, str) else list(value)
    known = [scope.value for scope in Scope]
    for word in words:
        if word not in known:
            raise InvalidOption(
                "scopes", f"expected {', '.join(known)}, got {word!r}.{hint(word, known)}"
            )
    if not words:
        raise InvalidOption("scopes", f"expected at least one of {', '.join(known)}, got none")
    return frozenset(map(Scope, words))


def _refuse_bounds_without_effect(scopes: frozenset[Scope], bounds: Bounds) -> None:
    """Refuse to promise what would not hold: `admin` may do everything, and a worker is given
    whatever is in its queues.
    """
    narrow = ("owner", "queues", "names", "max_priority")
    bound = [word for word in narrow if getattr(bounds, word) is not None]
    if Scope.ADMIN in scopes and bound:
        raise InvalidOption(
            bound[0],
            "a token with the scope admin may do everything and cannot be bound; give it some of "
            "submit, read, operate, worker instead",
        )
    if Scope.WORKER in scopes and not {"owner", "names"}.isdisjoint(bound):
        raise InvalidOption(
            "owner" if "owner" in bound else "names",
            "a worker is given whatever is in its queues: bind its token to queues, and make "
            "another for the scope worker",
        )


def _revoked(token: Token, now: datetime) -> Token | None:
    return replace(token, revoked_at=now) if token.revoked_at is None else None


def _later(now: datetime, seconds: float) -> datetime:
    """That much later, or the end of time."""
    try:
        return now + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
