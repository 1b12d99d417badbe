"""How a receiver knows that a callback is ours and new.

    Holdfast-Signature: t=1767225600,v1=<hex of HMAC-SHA256(secret, "1767225600." + body)>

The receiver computes the same over the bytes it got, compares in constant time, and refuses what is
older than a few minutes, so that nothing can be played back later.
"""

from __future__ import annotations

import hashlib
import hmac

HEADER = "Holdfast-Signature"


def sign(secret: str, body: bytes, at: int) -> str:
    """The value of the header for this body, at this time (Unix seconds)."""
    return f"t={at},v1={_digest(secret, body, at)}"


def is_signed(secret: str, body: bytes, header: str, *, now: float, tolerance: float = 300) -> bool:
    """Whether the header is right for the body and not too old: what a receiver should check."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at = parts.get("t", "")
    if not at.isdecimal() or abs(now - int(at)) > tolerance:
        return False
    return hmac.compare_digest(
        parts.get("v1", "").encode(), _digest(secret, body, int(at)).encode()
    )


def _digest(secret: str, body: bytes, at: int) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
