"""Requests about recipients, inboxes and deliveries."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import Field, StringConstraints, WithJsonSchema, with_config
from typing_extensions import TypedDict

from holdfast.delivery.recipient_reading import (
    LONGEST_DEVICE,
    LONGEST_LANGUAGE,
    MOST_DEVICES,
    MOST_SUBSCRIPTIONS,
)
from holdfast.filters import MOST_PER_PAGE
from holdfast.server.models import words
from holdfast.server.shape import CLOSED, SPELLED

CLOCK = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
ID = "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$"
PageSize = Annotated[int, Field(ge=1, le=MOST_PER_PAGE)]


Email = Annotated[
    str,
    StringConstraints(min_length=1, max_length=254, pattern=words.NO_NUL, strict=True),
    WithJsonSchema({"type": "string", "format": "email", "maxLength": 254}),
]
Zone = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, pattern=words.NO_NUL, strict=True),
    Field(examples=["Europe/Berlin"]),
]
Language = Annotated[
    str,
    StringConstraints(
        max_length=LONGEST_LANGUAGE, pattern="^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$", strict=True
    ),
]
Device = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_DEVICE, pattern=words.NO_NUL, strict=True),
]
Clock = Annotated[str, StringConstraints(pattern=CLOCK, strict=True)]
QuietWords = TypedDict("QuietWords", {"from": Required[Clock], "to": Required[Clock]})
QuietWords.__doc__ = "From one wall time of the recipient's zone to another, past midnight or not."
with_config(CLOSED)(QuietWords)


@with_config(CLOSED)
class PushKeys(TypedDict):
    """With what a push is encrypted for a browser: both in base64url."""

    p256dh: Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_-]{87}=?$", strict=True)]
    auth: Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_-]{22}(==)?$", strict=True)]


@with_config(CLOSED)
class PushSubscription(TypedDict, total=False):
    """A push subscription, as browsers write it."""

    endpoint: Required[words.Url]
    keys: Required[PushKeys]
    expirationTime: float | None


@with_config(CLOSED)
class RecipientWords(TypedDict, total=False):
    """Where an owner's deliveries go, and when they may make a noise."""

    email: Email | None
    webhook_url: words.Url | None
    devices: Annotated[list[Device], Field(max_length=MOST_DEVICES)] | None
    web_push: Annotated[list[PushSubscription], Field(max_length=MOST_SUBSCRIPTIONS)] | None
    timezone: Zone | None
    language: Language | None
    quiet_hours: QuietWords | None
    unsubscribed: Annotated[list[words.Name], Field(max_length=50)] | None


@with_config(SPELLED)
class InboxSearch(TypedDict, total=False):
    """The query of an inbox. Without an `owner`: the token's, or of what has none."""

    owner: words.Key
    before: Annotated[int, Field(ge=1, le=10**11)]
    limit: PageSize
    unread: words.YesNo


@with_config(SPELLED)
class InboxStream(TypedDict, total=False):
    """The query of a stream of inbox items. Without an `owner`: as with the list."""

    owner: words.Key


@with_config(CLOSED)
class ReadMark(TypedDict):
    """Whether an item was read."""

    read: bool


@with_config(SPELLED)
class DeliverySearch(TypedDict, total=False):
    """The query of a list of deliveries: of one run, of one schedule, of one owner."""

    execution: words.Uuid
    schedule: words.Name
    owner: words.Key
    status: Literal["queued", "running", "retrying", "blocked", "completed", "failed",
                    "cancelled", "dead_letter"]  # fmt: skip
    limit: PageSize
    after: Annotated[str, StringConstraints(pattern=ID)]
