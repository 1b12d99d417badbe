"""Web push: encrypted for one browser (RFC 8291), signed by our key (RFC 8292).

The endpoint is a URL that a browser gave, so it is called as callbacks are. `Topic` is the
delivery: a push that is sent again replaces the first one as long as the browser has not had it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import orjson

from holdfast.core.recipient import Recipient, Subscription
from holdfast.delivery.channels.drivers import without_driver
from holdfast.delivery.channels.pushed import PushNotTaken, push_text
from holdfast.delivery.channels.web_push_keys import decoded, encoded
from holdfast.delivery.templates import Templates
from holdfast.errors import Fatal
from holdfast.ports.channel import AddressGone, Message
from holdfast.settings import Settings
from holdfast.webhooks.posting import NotCalled, host_of, post

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

TTL: Final = 86_400
"""Seconds that a push service keeps it for a browser that is not there."""
JWT_LIFE: Final = 12 * 3600
GONE: Final = frozenset({404, 410})


class WebPushChannel:
    """Speaks to the push services of browsers."""

    is_loud = True

    def __init__(self, settings: Settings, templates: Templates) -> None:
        self._settings = settings
        self._templates = templates

    def missing(self) -> str | None:
        if self._settings.vapid_private_key is None:
            return "set `vapid_private_key`"
        if self._settings.vapid_subject is None:
            return "set `vapid_subject`"
        return without_driver("http_ece", "cryptography")

    def addresses(self, recipient: Recipient) -> Sequence[str]:
        return tuple(one.address for one in recipient.web_push)

    def place(self, address: str) -> str:
        return host_of(_subscription(address).endpoint)

    async def send(self, message: Message, address: str) -> str:
        one = _subscription(address)
        headers = {
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL),
            "Urgency": "normal",
            "Topic": message.id.replace("-", "")[:32],
            "Authorization": f"vapid t={self.jwt(one.endpoint)}, k={self.public_key}",
        }
        body = self.encrypted(message, one)
        try:
            status = await post(
                one.endpoint, body, headers, allowed_hosts=self._settings.callback_hosts
            )
        except NotCalled as problem:
            raise Fatal(str(problem)) from None
        if status in GONE:
            raise AddressGone(f"the push service answered with status {status}")
        if status == 413 or status in {400, 401, 403}:
            raise Fatal(f"the push service answered with status {status}")
        if not 200 <= status < 300:
            raise PushNotTaken(f"the push service answered with status {status}")
        return f"status {status}"

    def encrypted(self, message: Message, one: Subscription) -> bytes:
        """What only this browser can read."""
        import http_ece  # noqa: PLC0415 - of the extra `delivery`
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

        return bytes(
            http_ece.encrypt(
                orjson.dumps(push_text(self._templates, message)),
                private_key=ec.generate_private_key(ec.SECP256R1()),
                dh=decoded(one.p256dh),
                auth_secret=decoded(one.auth),
                version="aes128gcm",
            )
        )

    def jwt(self, endpoint: str) -> str:
        """What tells a push service who we are; good for its origin only."""
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415

        parts = urlsplit(endpoint)
        claims = {
            "aud": f"{parts.scheme}://{parts.netloc}",
            "exp": int(time.time()) + JWT_LIFE,
            "sub": self._settings.vapid_subject,
        }
        head = encoded(orjson.dumps({"typ": "JWT", "alg": "ES256"}))
        signed = f"{head}.{encoded(orjson.dumps(claims))}"
        der = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        r, s = utils.decode_dss_signature(der)
        return f"{signed}.{encoded(r.to_bytes(32) + s.to_bytes(32))}"

    @cached_property
    def public_key(self) -> str:
        """What a browser must be told when it subscribes (`applicationServerKey`)."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - as above

        return encoded(
            self._key.public_key().public_bytes(
                serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
            )
        )

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - as above

        number = int.from_bytes(decoded((self._settings.vapid_private_key or "").rstrip("=")))
        return ec.derive_private_key(number, ec.SECP256R1())


def _subscription(address: str) -> Subscription:
    return Subscription(*orjson.loads(address))
