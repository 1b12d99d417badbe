"""Links that end a channel for an owner: signed, so that nobody can end another's.

    https://…/unsubscribe?token=<base64url of owner and channel>.<base64url of its HMAC>

They hold for ever: a mail may be old when its reader has had enough.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
from typing import NamedTuple

from holdfast.delivery.channels.web_push_keys import decoded, encoded
from holdfast.settings import Settings

PATH = "/unsubscribe"


class Unsubscription(NamedTuple):
    """Whose, and from which channel."""

    owner: str
    channel: str


def unsubscribe_url(settings: Settings, owner: str | None, channel: str) -> str | None:
    """The link, if the deployment has an address and a secret for it."""
    if settings.public_url is None or settings.delivery_secret is None or owner is None:
        return None
    return f"{settings.public_url}{PATH}?token={token_of(settings.delivery_secret, owner, channel)}"


def token_of(secret: str, owner: str, channel: str) -> str:
    body = encoded(json.dumps([owner, channel]).encode())
    return f"{body}.{encoded(_mac(secret, body))}"


def read_token(secret: str | None, token: str) -> Unsubscription | None:
    """What such a token says; None if it is not one of ours."""
    body, _, mac = token.partition(".")
    if secret is None or not body.isascii() or not mac.isascii():
        return None
    try:
        is_ours = hmac.compare_digest(_mac(secret, body), decoded(mac))
    except (binascii.Error, ValueError):
        return None
    return Unsubscription(*json.loads(decoded(body))) if is_ours else None


def _mac(secret: str, body: str) -> bytes:
    return hmac.new(secret.encode(), f"unsubscribe {body}".encode(), hashlib.sha256).digest()
