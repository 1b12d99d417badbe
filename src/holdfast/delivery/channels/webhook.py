"""A signed POST to a URL of the owner's, made as callbacks are, so that it can do no harm here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import orjson

from holdfast.core.recipient import Recipient
from holdfast.core.task import Json
from holdfast.errors import Fatal, HoldfastError
from holdfast.ports.channel import Message
from holdfast.settings import Settings
from holdfast.webhooks.posting import NotCalled, host_of, post
from holdfast.webhooks.signing import HEADER, secrets_for, sign

GONE: Final = 410


class NotAccepted(HoldfastError):
    """The receiver did not answer with a 2xx."""


class WebhookChannel:
    """Signs with the owner's own secret and with the deployment's (`webhooks.signing`)."""

    is_loud = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def missing(self) -> str | None:
        return "set `callback_secret`" if self._settings.callback_secret is None else None

    def addresses(self, recipient: Recipient) -> Sequence[str]:
        return () if recipient.webhook_url is None else (recipient.webhook_url,)

    def place(self, address: str) -> str:
        return host_of(address)

    async def send(self, message: Message, address: str) -> str:
        body = orjson.dumps(told(message))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "holdfast",
            "Holdfast-Delivery": message.id,
            HEADER: sign(secrets_for(self._settings, owner=message.owner), body, int(time.time())),
        }
        try:
            status = await post(address, body, headers, allowed_hosts=self._settings.callback_hosts)
        except NotCalled as problem:
            raise Fatal(str(problem)) from None
        if status == GONE:
            raise Fatal(f"the receiver answered with status {status}")
        if not 200 <= status < 300:
            raise NotAccepted(f"the receiver answered with status {status}")
        return f"status {status}"


def told(message: Message) -> Json:
    """What a receiver is told."""
    return {
        "delivery": message.id,
        "owner": message.owner,
        "execution": message.execution,
        "schedule": message.schedule,
        "title": message.title,
        "content": message.content,
        "is_failure": message.is_failure,
        "at": message.at.isoformat(),
    }
