"""How the server knows that a call is from a timer of its own.

    v1.<key id>.<expires, Unix seconds>.<what, base64url>.<HMAC-SHA256, hex>

The token says what the call is about and nothing more: whoever may list the timers of a project
reads their bodies. The key id says which secret signed it, so that while the secret is changed
timers that were armed with the one before still hold. A timer that proves by other means who it is
(OIDC) sends the same without a signature, with `-` as the key id.

This is another form than that of callbacks (`webhooks.signing`), which sign a body of their
own and live for minutes; a timer waits for weeks, so its token has an end and names its key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from holdfast.errors import HoldfastError

VERSION: Final = "v1"
UNSIGNED: Final = "-"
GRACE: Final = timedelta(days=1)
"""How long after its time a call holds: a service tries again for hours if we are away."""
LONGEST: Final = 2000
"""Characters of a token."""
_FORM: Final = re.compile(
    r"(v1\.([0-9a-f]{8}|-)\.([0-9]{1,12})\.([\w-]*))\.([0-9a-f]{64}|)", re.ASCII
)


class TokenRefused(HoldfastError):
    """A call that is not from a timer of ours, or too old. `code` says which, for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Token(NamedTuple):
    """What a call says, and whether one of the secrets has signed it."""

    key: str
    expires_at: int
    is_signed: bool

    def check_expiry(self, now: datetime) -> None:
        """`TokenRefused` if it is too old."""
        if now.timestamp() >= self.expires_at:
            raise TokenRefused(
                "expired_timer",
                "the token of this timer has expired: it came more than a day after its time. "
                "Whatever is still to be done is armed anew by the next sweep.",
            )


def sign(secrets: Sequence[str], key: str, at: datetime) -> str:
    """The token of a call at that instant, by the first of the secrets; unsigned if there is none.
    The same for the same (key, at).
    """
    expires = int((at + GRACE).timestamp())
    what = urlsafe_b64encode(key.encode()).decode().rstrip("=")
    if not secrets:
        return f"{VERSION}.{UNSIGNED}.{expires}.{what}."
    said = f"{VERSION}.{key_id(secrets[0])}.{expires}.{what}"
    return f"{said}.{_digest(secrets[0], said)}"


def read(secrets: Sequence[str], text: str) -> Token:
    """What a token says. `TokenRefused` if it is no token, or wrongly signed; one without any
    signature is read, and whoever takes it must know by other means whose it is.
    """
    found = _FORM.fullmatch(text) if len(text) <= LONGEST else None
    if found is None:
        raise _no_token()
    said, signer, expires, what, given = found.groups()
    try:
        key = urlsafe_b64decode(what + "=" * (-len(what) % 4)).decode()
    except ValueError:
        raise _no_token() from None
    if signer == UNSIGNED and not given:
        return Token(key, int(expires), is_signed=False)
    expected = [_digest(secret, said) for secret in secrets if key_id(secret) == signer]
    if not any(hmac.compare_digest(each, given) for each in expected):
        raise TokenRefused(
            "invalid_timer_signature",
            "this call is signed by none of the secrets of this server. If `timer_secret` was "
            "changed, set `timer_previous_secret` to the one before for as long as timers wait.",
        )
    return Token(key, int(expires), is_signed=True)


def key_id(secret: str) -> str:
    """What a secret is called in a token. It gives nothing of it away."""
    return _digest(secret, "key id")[:8]


def _digest(secret: str, text: str) -> str:
    # Not the bare text: the same secret may sign other things elsewhere.
    return hmac.new(secret.encode(), f"holdfast timer {text}".encode(), hashlib.sha256).hexdigest()


def _no_token() -> TokenRefused:
    return TokenRefused("invalid_timer_token", f"expected the token of a timer ({VERSION}.…)")
