"""The JSON of recipients, inbox items and deliveries; see `task_answers`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from typing_extensions import TypedDict

from holdfast.core.delivery import Delivery
from holdfast.core.json_form import From, JsonForm
from holdfast.core.task import State
from holdfast.core.task_answers import Count, ErrorAnswer, exact


@exact
class DeliveryAnswer(TypedDict):
    """A delivery: a task that brings a run's result to its owner by one channel. `execution` is the
    run, null for a notice that belongs to none. `error` is that of the last attempt that ended.
    """

    delivery_id: Annotated[str, From("id")]
    channel: str
    execution: str | None
    schedule: str | None
    owner: str | None
    status: State
    attempt: Count
    error: ErrorAnswer | None
    created_at: datetime
    next_try_at: datetime | None
    finished_at: datetime | None


DELIVERY = JsonForm(DeliveryAnswer, Delivery)


@exact
class DeliveryList(TypedDict):
    """Deliveries, newest first. `next`, sent as `after`, brings older ones."""

    deliveries: list[DeliveryAnswer]
    next: str | None


@exact
class InboxItemAnswer(TypedDict):
    """What was delivered to an inbox. `number` is its place among its owner's, from 1."""

    item_id: str
    number: Count
    owner: str | None
    title: str
    content: str
    is_failure: bool
    execution: str | None
    schedule: str | None
    created_at: datetime
    read_at: datetime | None


@exact
class InboxList(TypedDict):
    """Items, newest first. `next`, sent as `before`, brings older ones."""

    items: list[InboxItemAnswer]
    next: Count | None


@exact
class PushKeysAnswer(TypedDict):
    """With what a push is encrypted for a browser."""

    p256dh: str
    auth: str


@exact
class SubscriptionAnswer(TypedDict):
    """A browser's push subscription."""

    endpoint: str
    keys: PushKeysAnswer


@exact
class RecipientAnswer(TypedDict):
    """Where an owner's deliveries go. `webhook_secret` is what they are signed with, for those who
    may set the URL; `vapid_public_key` is what a browser subscribes with.
    """

    owner: str
    email: str | None
    webhook_url: str | None
    devices: list[str]
    web_push: list[SubscriptionAnswer]
    timezone: str | None
    language: str | None
    quiet_hours: dict[Literal["from", "to"], str] | None
    unsubscribed: list[str]
    webhook_secret: str | None
    vapid_public_key: str | None
