"""Mobile push through Firebase Cloud Messaging, HTTP v1.

A service account signs a request for an access token, which holds for an hour. The collapse keys
are the delivery: a push that is sent again replaces the first one on the device.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from holdfast.core.recipient import Recipient
from holdfast.core.task import Json
from holdfast.delivery.channels.drivers import without_driver
from holdfast.delivery.channels.pushed import PushNotTaken, push_text
from holdfast.delivery.templates import Templates, one_line
from holdfast.errors import ConfigError, Fatal, Retry
from holdfast.ports.channel import AddressGone, Message
from holdfast.settings import Settings
from holdfast.webhooks.posting import host_of

if TYPE_CHECKING:
    import httpx

SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TIME_LIMIT: Final = 15.0
EARLY: Final = 120.0
"""Seconds before its end at which an access token is not used any more."""
GONE: Final = frozenset({"UNREGISTERED", "SENDER_ID_MISMATCH"})
LONGEST_WAIT: Final = 3600.0


class MobilePushChannel:
    """Speaks to FCM for one project."""

    is_loud = True

    def __init__(self, settings: Settings, templates: Templates) -> None:
        self._settings = settings
        self._templates = templates
        self._token: tuple[str, float] | None = None

    def missing(self) -> str | None:
        if self._settings.fcm_credentials is None:
            return "set `fcm_credentials`"
        return without_driver("httpx", "google.auth")

    def addresses(self, recipient: Recipient) -> Sequence[str]:
        return recipient.devices

    def place(self, address: str) -> str:
        return host_of(self._settings.fcm_url)

    async def send(self, message: Message, address: str) -> str:
        import httpx  # noqa: PLC0415 - of the extra `delivery`

        project = self._account["project_id"]
        url = f"{self._settings.fcm_url}/v1/projects/{project}/messages:send"
        try:
            async with httpx.AsyncClient(timeout=TIME_LIMIT) as client:
                token = await self._access_token(client)
                headers = {"Authorization": f"Bearer {token}"}
                answer = await client.post(
                    url, json={"message": self.pushed(message, address)}, headers=headers
                )
        except httpx.HTTPError as error:
            raise PushNotTaken(f"{type(error).__name__}: {one_line(str(error))}") from None
        return self._judged(answer)

    def pushed(self, message: Message, address: str) -> Json:
        """The message in FCM's words."""
        said = push_text(self._templates, message)
        title, body = said.pop("title"), said.pop("body")
        tag = message.id.replace("-", "")
        return {
            "token": address,
            "notification": {"title": title, "body": body},
            "data": said,
            "android": {"collapse_key": tag, "notification": {"tag": tag}},
            "apns": {"headers": {"apns-collapse-id": tag}},
            "webpush": {"headers": {"Topic": tag}},
        }

    def _judged(self, answer: httpx.Response) -> str:
        if answer.is_success:
            return str(_json(answer).get("name", "sent"))
        error = _json(answer).get("error")
        error = error if isinstance(error, Mapping) else {}
        code = _error_code(error)
        text = one_line(f"FCM answered {answer.status_code} {code}: {error.get('message', '')}")
        if code in GONE or _is_bad_token(code, error):
            raise AddressGone(text)
        if answer.status_code == 401:
            self._token = None  # revoked before its time
            raise PushNotTaken(text)
        if answer.status_code == 429 or answer.status_code >= 500:
            raise _later(text, answer.headers.get("retry-after"))
        raise Fatal(text)

    async def _access_token(self, client: httpx.AsyncClient) -> str:
        if self._token is not None and time.monotonic() < self._token[1]:
            return self._token[0]
        assertion = await asyncio.to_thread(self._assertion)
        answer = await client.post(
            self._account["token_uri"], data={"grant_type": GRANT, "assertion": assertion}
        )
        said = _json(answer)
        if not answer.is_success or "access_token" not in said:
            raise PushNotTaken(
                f"no access token for FCM: status {answer.status_code} {said.get('error', '')}"
            )
        token, life = str(said["access_token"]), float(said.get("expires_in", 3600))
        self._token = (token, time.monotonic() + life - EARLY)
        return token

    def _assertion(self) -> str:
        from google.auth import crypt, jwt  # noqa: PLC0415 - of the extra `delivery`

        now = int(time.time())
        claims = {
            "iss": self._account["client_email"],
            "aud": self._account["token_uri"],
            "scope": SCOPE,
            "iat": now,
            "exp": now + 3600,
        }
        signer = crypt.RSASigner.from_service_account_info(self._account)  # type: ignore[no-untyped-call] # google-auth has no types
        made: bytes = jwt.encode(signer, claims)  # type: ignore[no-untyped-call] # likewise
        return made.decode()

    @cached_property
    def _account(self) -> Mapping[str, str]:
        """The service account, from the setting itself or from the file that it names."""
        given = self._settings.fcm_credentials or ""
        try:
            text = given if given.lstrip().startswith("{") else Path(given).read_text("utf-8")
            account: Mapping[str, str] = orjson.loads(text)
            missing = {"project_id", "client_email", "private_key", "token_uri"} - set(account)
        except (OSError, ValueError, TypeError):
            missing = {"all of it"}
        if missing:
            raise ConfigError(
                "fcm_credentials",
                "fcm_credentials: expected the JSON of a service account, or the path of a file "
                f"with it; missing: {', '.join(sorted(missing))}",
            )
        return account


def _json(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        said = orjson.loads(answer.content)
    except ValueError:
        return {}
    return said if isinstance(said, Mapping) else {}


def _error_code(error: Mapping[str, Any]) -> str:
    """FCM's own word if there is one, else that of all Google services."""
    for detail in error.get("details", ()):
        if isinstance(detail, Mapping) and "errorCode" in detail:
            return str(detail["errorCode"])
    return str(error.get("status", ""))


def _is_bad_token(code: str, error: Mapping[str, Any]) -> bool:
    """Whether what is invalid is the device, and not what is said to it."""
    fields = [
        violation.get("field")
        for detail in error.get("details", ())
        if isinstance(detail, Mapping)
        for violation in detail.get("fieldViolations", ())
    ]
    return code == "INVALID_ARGUMENT" and "message.token" in fields


def _later(text: str, after: str | None) -> Exception:
    if after is not None and after.isdecimal():
        return Retry(text, after=min(float(after), LONGEST_WAIT))
    return PushNotTaken(text)
