"""Knows the calls of a Google service account by the token that Cloud Tasks sends along (OIDC).

A good token is signed by Google, not expired, for our audience, and of the account that `timer_url`
names: any of Google's customers can have tokens made for any audience, but not in that name.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Mapping
from typing import Final

from google.auth import jwt
from google.auth.exceptions import GoogleAuthError

from holdfast.errors import TimerUnavailable
from holdfast.timers.address import TimerAddress
from holdfast.timers.signing import TokenRefused

ISSUERS: Final = frozenset({"accounts.google.com", "https://accounts.google.com"})
KEPT_FOR: Final = 3600.0
"""Seconds that Google's keys are remembered; they change every few days."""
NOT_BEFORE: Final = 60.0
"""Seconds until they are asked for again because of a token that names another."""
SKEW: Final = 10
PATIENCE: Final = 5.0


class OidcVerifier:
    """Checks bearer tokens. Of one event loop."""

    def __init__(self, address: TimerAddress) -> None:
        self._address = address
        self._certs: Mapping[str, str] = {}
        self._fetched: float | None = None

    async def verify(self, text: str) -> None:
        """`TokenRefused` unless this is a good token; `TimerUnavailable` if Google's keys cannot be
        had.
        """
        try:
            header = jwt.decode_header(text)  # type: ignore[no-untyped-call] # theirs
            certs = await self._keys(str(header.get("kid")))
            claims = jwt.decode(  # type: ignore[no-untyped-call] # theirs
                text, certs=certs, audience=self._address.audience, clock_skew_in_seconds=SKEW
            )
        except (GoogleAuthError, ValueError) as error:
            raise _refused(str(error)) from None
        if claims.get("iss") not in ISSUERS:
            raise _refused(f"issued by {claims.get('iss')!r}")
        if claims.get("email") != self._address.oidc or claims.get("email_verified") is not True:
            raise _refused(f"of the account {claims.get('email')!r}, not of {self._address.oidc!r}")

    async def _keys(self, key_id: str) -> Mapping[str, str]:
        age = KEPT_FOR if self._fetched is None else time.monotonic() - self._fetched
        if age >= KEPT_FOR or (key_id not in self._certs and age >= NOT_BEFORE):
            try:
                self._certs = await asyncio.to_thread(_fetch, self._address.certs)
            except (OSError, ValueError) as error:
                raise TimerUnavailable(
                    f"the keys of {self._address.certs} cannot be had: {error}"
                ) from error
            self._fetched = time.monotonic()
        return self._certs


def _fetch(url: str) -> Mapping[str, str]:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 - an operator's setting
        found = json.load(answer)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object of certificates")
    return found


def _refused(why: str) -> TokenRefused:
    return TokenRefused(
        "invalid_timer_identity", f"the bearer token of this call does not hold: {why}"
    )
