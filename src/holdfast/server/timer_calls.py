"""Knows the calls of our own timers from everybody else's (`timers.signing`).

They come without a token of ours: a queue of Cloud Tasks would have to keep one for weeks, where
whoever may list its tasks can read it. What they come with is good for one key and one day.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.server.problems import Refused
from holdfast.settings import Settings
from holdfast.timers.address import TimerAddress, parse_timer_url
from holdfast.timers.signing import TokenRefused, read

if TYPE_CHECKING:
    from holdfast.timers.oidc import OidcVerifier


class TimerCalls:
    """Checks what a call says it is."""

    def __init__(self, settings: Settings) -> None:
        self._secrets = settings.timer_secrets
        url = settings.timer_url
        self._address: TimerAddress | None = None if url is None else parse_timer_url(url)

    async def key_of(
        self, text: str, authorization: str, now: Callable[[], Awaitable[datetime]]
    ) -> str:
        """What the call is about. `Refused` with 401 if it is not from a timer of ours, or too old;
        only then is the store asked for the time.
        """
        try:
            token = read(self._secrets, text)
            if not token.is_signed:
                await self._identify(authorization)
            token.check_expiry(await now())
        except TokenRefused as error:
            challenge = {"WWW-Authenticate": "Bearer"}
            raise Refused(401, error.code, str(error), field="token", headers=challenge) from None
        return token.key

    async def _identify(self, authorization: str) -> None:
        """`TokenRefused` unless an unsigned call comes from the account that may make such."""
        if self._address is None or self._address.oidc is None:
            raise TokenRefused(
                "unsigned_timer",
                "this call is not signed, and this server knows no account whose calls need not "
                "be (`timer_url`, &oidc=…).",
            )
        kind, _, text = authorization.partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            raise TokenRefused(
                "unsigned_timer",
                f"this call is neither signed nor does it come with a bearer token of "
                f"{self._address.oidc}.",
            )
        await self._verifier.verify(text.strip())

    @cached_property
    def _verifier(self) -> OidcVerifier:
        from holdfast.timers.oidc import OidcVerifier  # noqa: PLC0415 - needs the extra `gcloud`

        assert self._address is not None
        return OidcVerifier(self._address)
