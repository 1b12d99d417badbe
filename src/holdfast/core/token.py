"""Who may do what over HTTP: a token as it is kept, never as it was given out."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.core.query import TaskFilter
from holdfast.core.record import Put, Record
from holdfast.core.task import Priority, Task


class Scope(StrEnum):
    """What a token allows. `admin` allows everything; `operate` is steering tasks of others."""

    ADMIN = "admin"
    SUBMIT = "submit"
    READ = "read"
    OPERATE = "operate"
    WORKER = "worker"


class RateLimit(NamedTuple):
    """So many requests in any stretch of that many seconds."""

    requests: int
    seconds: int

    def __str__(self) -> str:
        sizes = {"h": 3600, "m": 60, "s": 1}
        unit, size = next(each for each in sizes.items() if self.seconds % each[1] == 0)
        return f"{self.requests}/{self.seconds // size}{unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a token is bound to; None is no bound. For a token that is bound to an owner, queues or
    names (`is_narrow`), no other task is there.
    """

    owner: str | None = None
    queues: frozenset[str] | None = None
    names: frozenset[str] | None = None
    max_priority: Priority | None = None
    rate: RateLimit | None = None

    @property
    def is_narrow(self) -> bool:
        return not (self.owner is None and self.queues is None and self.names is None)

    def cover(self, task: Task) -> bool:
        """Whether the task is there for such a token."""
        return (
            (self.owner is None or task.owner == self.owner)
            and (self.queues is None or task.queue in self.queues)
            and (self.names is None or task.name in self.names)
        )

    def within(self, which: TaskFilter) -> TaskFilter:
        """The same filter, for tasks that are there for such a token."""
        if self.owner is not None and which.owner not in (None, self.owner):
            return replace(which, ids=())
        return replace(
            which,
            owner=self.owner or which.owner,
            queues=_both(self.queues, which.queues),
            names=_both(self.names, which.names),
        )


NO_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token without its secret. `digest` is the SHA-256 of that; `id` (16 hex digits) is in the
    token's text, so that it is found without comparing digests. Times are the store's.

    `created_by` is the id of the token that it was made with, or `cli`. `last_used_at` is written
    now and then: it may be some minutes behind.
    """

    id: str
    name: str
    scopes: frozenset[Scope]
    digest: bytes
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    bounds: Bounds = NO_BOUNDS
    created_by: str | None = None
    last_used_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired at this instant of the store's clock."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def may(self, *scopes: Scope) -> bool:
        """Whether it has one of these scopes."""
        return Scope.ADMIN in self.scopes or not self.scopes.isdisjoint(scopes)


TOKEN = "token"  # noqa: S105 - a word
"""The kind of their records. The key is the id; they are listed by the time they were made."""


def put_of(token: Token, version: int) -> Put:
    """The record of a token, to replace that version of it. JSON in ASCII."""
    bounds = token.bounds
    kept = {
        "name": token.name,
        "scopes": sorted(token.scopes),
        "digest": token.digest.hex(),
        "created_at": _text(token.created_at),
        "expires_at": _text(token.expires_at),
        "revoked_at": _text(token.revoked_at),
        "owner": bounds.owner,
        "queues": _sorted(bounds.queues),
        "names": _sorted(bounds.names),
        "max_priority": bounds.max_priority,
        "rate": bounds.rate,
        "created_by": token.created_by,
        "last_used_at": _text(token.last_used_at),
    }
    document = json.dumps({word: value for word, value in kept.items() if value is not None})
    return Put(TOKEN, token.id, document, version, sort=_text(token.created_at) or "")


def token_of(record: Record) -> Token:
    """The token that a record is about."""
    kept = json.loads(record.document)
    rate, highest = kept.get("rate"), kept.get("max_priority")
    return Token(
        id=record.key,
        name=kept["name"],
        scopes=frozenset(map(Scope, kept["scopes"])),
        digest=bytes.fromhex(kept["digest"]),
        created_at=datetime.fromisoformat(kept["created_at"]),
        expires_at=_time(kept.get("expires_at")),
        revoked_at=_time(kept.get("revoked_at")),
        bounds=Bounds(
            owner=kept.get("owner"),
            queues=_set(kept.get("queues")),
            names=_set(kept.get("names")),
            max_priority=highest and Priority(highest),
            rate=rate and RateLimit(*rate),
        ),
        created_by=kept.get("created_by"),
        last_used_at=_time(kept.get("last_used_at")),
    )


def _text(instant: datetime | None) -> str | None:
    """An instant as text of one length, which sorts as instants do."""
    return None if instant is None else instant.astimezone(UTC).isoformat(timespec="microseconds")


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _both(some: frozenset[str] | None, others: frozenset[str] | None) -> frozenset[str] | None:
    if some is None or others is None:
        return others if some is None else some
    return some & others


def _sorted(words: frozenset[str] | None) -> list[str] | None:
    return None if words is None else sorted(words)


def _set(words: list[str] | None) -> frozenset[str] | None:
    return None if words is None else frozenset(words)
