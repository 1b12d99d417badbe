"""The keys of web push: a browser's, and our own of VAPID (RFC 8291, RFC 8292)."""

from __future__ import annotations

import base64
import binascii

from holdfast.core.recipient import Subscription
from holdfast.errors import InvalidOption

POINT = 65
"""Bytes of an uncompressed point of P-256."""
AUTH = 16


def decoded(text: str) -> bytes:
    """base64url, with or without its padding."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def encoded(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def check_subscription(name: str, one: Subscription) -> None:
    """Refuse keys that nothing can be encrypted for."""
    for key, value, length in (("p256dh", one.p256dh, POINT), ("auth", one.auth, AUTH)):
        try:
            data = decoded(value)
        except (binascii.Error, ValueError):
            data = b""
        if len(data) != length or (length == POINT and data[0] != 4):
            raise InvalidOption(f"{name}.{key}", f"expected {length} bytes in base64url")
