"""How a receiver knows that a callback or a delivery is ours and new.

    Holdfast-Signature: t=1767225600,v1=<hex of HMAC-SHA256(secret, "1767225600." + body)>

The receiver computes the same over the bytes it got, compares in constant time, and refuses what is
older than a few minutes, so that nothing can be played back later. There is one `v1` for each
secret that holds, and one of them has to be right. While the secret is changed, those are the new
one and the one before; and each token has a secret of its own, so that its holder can know its
callbacks without being able to sign those of others.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from holdfast.settings import Settings

HEADER = "Holdfast-Signature"


def secrets_for(
    settings: Settings, signer: str | None = None, *, owner: str | None = None
) -> list[str]:
    """What is signed with, the newest last; also with the secrets of that token, or owner."""
    given = (settings.callback_previous_secret, settings.callback_secret)
    known = [secret for secret in given if secret is not None]
    own = [] if signer is None else [secret_of(signer, secret) for secret in known]
    own += [] if owner is None else [secret_of_owner(owner, secret) for secret in known]
    return own + known


def secret_of(token_id: str, secret: str) -> str:
    """A token's own secret. Made, not kept: whoever has the server's can make it again."""
    return hmac.new(secret.encode(), f"token {token_id}".encode(), hashlib.sha256).hexdigest()


def secret_of_owner(owner: str, secret: str) -> str:
    """What an owner's deliveries are signed with: its receiver cannot sign those of others."""
    return hmac.new(secret.encode(), f"owner {owner}".encode(), hashlib.sha256).hexdigest()


def own_secret(settings: Settings, token_id: str) -> str | None:
    """What a token's holder is told, if there are callbacks at all."""
    secret = settings.callback_secret
    return None if secret is None else secret_of(token_id, secret)


def sign(secrets: Sequence[str], body: bytes, at: int) -> str:
    """The value of the header for this body, at this time (Unix seconds)."""
    return ",".join([f"t={at}", *(f"v1={_digest(secret, body, at)}" for secret in secrets)])


def is_signed(secret: str, body: bytes, header: str, *, now: float, tolerance: float = 300) -> bool:
    """Whether the header is right for the body and not too old: what a receiver should check."""
    parts = [part.partition("=")[::2] for part in header.split(",")]
    at = dict(parts).get("t", "")
    if not at.isdecimal() or abs(now - int(at)) > tolerance:
        return False
    expected = _digest(secret, body, int(at)).encode()
    given = [value for word, value in parts if word == "v1"]
    return any(hmac.compare_digest(value.encode(), expected) for value in given)


def _digest(secret: str, body: bytes, at: int) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
