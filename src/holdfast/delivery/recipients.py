"""Recipients as they are kept: where each owner's deliveries go."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from datetime import time
from typing import Any, Unpack
from uuid import uuid4

import orjson

from holdfast.core.recipient import RECIPIENT, QuietHours, Recipient, Subscription
from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.core.task import Json
from holdfast.definitions.readers import read_key
from holdfast.delivery.recipient_reading import RecipientKeywords, read_words
from holdfast.errors import RecordConflict
from holdfast.ports.records import one_record
from holdfast.ports.store import Store


@dataclass(frozen=True, slots=True)
class Recipients:
    """The recipients of one store. `channels` are the names that may be unsubscribed from."""

    store: Store
    channels: Collection[str]
    allowed_hosts: Collection[str]

    async def get(self, owner: str) -> Recipient | None:
        """Where this owner's deliveries go; None if nothing was said of it."""
        record = await one_record(self.store, RECIPIENT, owner)
        return None if record is None else load_recipient(record)

    async def put(self, owner: str, **words: Unpack[RecipientKeywords]) -> Recipient:
        """Say all of it: what is left out is gone, but for what the owner has unsubscribed from."""
        return await self._write(owner, words, lambda old: Recipient(
            owner=old.owner, unsubscribed=old.unsubscribed))  # fmt: skip

    async def patch(self, owner: str, **words: Unpack[RecipientKeywords]) -> Recipient:
        """Change what is given, keep the rest."""
        return await self._write(owner, words, lambda old: old)

    async def delete(self, owner: str) -> bool:
        """Forget a recipient; whether there was one."""
        record = await one_record(self.store, RECIPIENT, owner)
        if record is not None:
            gone = Delete(RECIPIENT, record.key)
            await self.store.commit(Changes(uuid4().hex, records=[gone]))
        return record is not None

    async def unsubscribe(self, owner: str, channel: str) -> Recipient:
        """Deliver to this owner by this channel no more. Idempotent."""

        def change(old: Recipient) -> Recipient:
            if channel in old.unsubscribed:
                return old
            return replace(old, unsubscribed=(*old.unsubscribed, channel))

        return await self.change(owner, change)

    async def forget_address(self, owner: str, address: str) -> None:
        """Take off a device or a browser that is no more."""

        def change(old: Recipient) -> Recipient:
            return replace(
                old,
                devices=tuple(each for each in old.devices if each != address),
                web_push=tuple(each for each in old.web_push if each.address != address),
            )

        await self.change(owner, change)

    async def change(self, owner: str, change: Callable[[Recipient], Recipient]) -> Recipient:
        """Write what `change` makes of it. Who loses a race reads again."""
        while True:
            record = await one_record(self.store, RECIPIENT, owner)
            old = Recipient(owner=owner) if record is None else load_recipient(record)
            new = change(old)
            if new == old and record is not None:
                return new
            version = 0 if record is None else record.version
            try:
                await self.store.commit(Changes(uuid4().hex, records=[put_recipient(new, version)]))
            except RecordConflict:
                continue
            return new

    async def _write(
        self,
        owner: str,
        words: RecipientKeywords,
        base: Callable[[Recipient], Recipient],
    ) -> Recipient:
        name = read_key("owner", owner)
        found = read_words(words, self.channels, self.allowed_hosts)
        return await self.change(name, lambda old: replace(base(old), **found))


def shown_recipient(recipient: Recipient) -> dict[str, Json]:
    """A recipient as JSON: what `put` takes."""
    quiet = recipient.quiet_hours
    return {
        "owner": recipient.owner,
        "email": recipient.email,
        "webhook_url": recipient.webhook_url,
        "devices": list(recipient.devices),
        "web_push": [
            {"endpoint": one.endpoint, "keys": {"p256dh": one.p256dh, "auth": one.auth}}
            for one in recipient.web_push
        ],
        "timezone": recipient.timezone,
        "language": recipient.language,
        "quiet_hours": quiet and {"from": f"{quiet.begin:%H:%M}", "to": f"{quiet.end:%H:%M}"},
        "unsubscribed": list(recipient.unsubscribed),
    }


def put_recipient(recipient: Recipient, version: int) -> Put:
    document = orjson.dumps(shown_recipient(recipient)).decode()
    return Put(RECIPIENT, recipient.owner, document, version, sort=recipient.owner)


def load_recipient(record: Record) -> Recipient:
    """What `put_recipient` wrote. It was checked then, and is not again: rules may have changed."""
    said: dict[str, Any] = orjson.loads(record.document)
    quiet = said["quiet_hours"]
    known = {each.name for each in fields(Recipient)}
    return Recipient(
        **{name: value for name, value in said.items() if name in known}
        | {
            "devices": tuple(said["devices"]),
            "web_push": tuple(
                Subscription(one["endpoint"], one["keys"]["p256dh"], one["keys"]["auth"])
                for one in said["web_push"]
            ),
            "unsubscribed": tuple(said["unsubscribed"]),
            "quiet_hours": quiet
            and QuietHours(time.fromisoformat(quiet["from"]), time.fromisoformat(quiet["to"])),
        }
    )
