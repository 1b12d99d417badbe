"""Who may do what over HTTP: a token as it is kept, never as it was given out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Scope(StrEnum):
    """What a token allows. `admin` allows everything."""

    ADMIN = "admin"
    SUBMIT = "submit"
    READ = "read"
    WORKER = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token without its secret. `digest` is the SHA-256 of that; `id` (16 hex digits) is in the
    token's text, so that it is found without comparing digests. Times are the store's.
    """

    id: str
    name: str
    scopes: frozenset[Scope]
    digest: bytes
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired at this instant of the store's clock."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
