"""Runs one delivery: what is there to say, may it be said now, and to whom.

It ends well if everybody at the channel's addresses has it. If only some have, these are noted in a
record, so that the next attempt goes to the others alone.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final
from uuid import uuid4

import orjson

from holdfast.client import Client
from holdfast.core.delivery import NAME, QUEUE, RETRIES, TIMEOUT
from holdfast.core.fleet import delivers
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.recipient import Recipient
from holdfast.core.record import Changes, Delete, Put
from holdfast.core.retry import exponential
from holdfast.core.task import State, Task
from holdfast.definitions.built_in import BuiltIn
from holdfast.definitions.context import Context
from holdfast.delivery.content import content_of
from holdfast.delivery.inbox import Inbox
from holdfast.delivery.phrases import phrase
from holdfast.delivery.recipients import Recipients
from holdfast.delivery.setup import DeliverySetup
from holdfast.delivery.templates import one_line
from holdfast.delivery.unsubscribing import unsubscribe_url
from holdfast.errors import Fatal, HoldfastError, Retry, Snooze, TaskNotFound
from holdfast.ports.channel import AddressGone, Channel, Message
from holdfast.ports.records import one_record

RETRY: Final = exponential("5s", 2, cap="1h")
PER_PLACE: Final = 16
"""How many are sent to one host at a time by one process: there may be more owners who have their
receivers there than a process has room for."""
AT_A_TIME: Final = 8
"""How many addresses of one recipient are tried at a time."""
STAND_ASIDE: Final = 3.0
"""Seconds after which a delivery to a busy host is tried again; nothing is charged."""
PARTS: Final = "delivery_part"
"""The kind of the records that say which addresses have had a delivery. The key is the delivery."""
KEPT: Final = 30 * 86_400.0


class NotAllReached(HoldfastError):
    """Some have had it, some have not yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A delivery as its payload says it."""

    channel: str
    title: str
    task_id: str | None = None
    schedule: str | None = None
    content: str | None = None


def delivery_tasks_of(client: Client, setup: DeliverySetup) -> BuiltIn:
    """What delivers, by the channels that are set up in this process."""
    runner = DeliveryRunner(client, setup)

    async def deliver(
        ctx: Context,
        channel: str,
        title: str,
        task_id: str | None = None,
        schedule: str | None = None,
        content: str | None = None,
        end: int = 0,
    ) -> str:
        wanted = Wanted(
            channel=channel, title=title, task_id=task_id, schedule=schedule, content=content
        )
        return await runner.run(ctx.id, wanted)

    return BuiltIn(
        name=NAME,
        queue=QUEUE,
        capabilities=frozenset(map(delivers, setup.usable)),
        handler=deliver,
        options={"max_retries": RETRIES, "timeout": TIMEOUT, "retry": RETRY},
    )


class DeliveryRunner:
    """Delivers for one process."""

    def __init__(self, client: Client, setup: DeliverySetup) -> None:
        self._client = client
        self._setup = setup
        self._places = Counter[str]()
        self._inbox = Inbox(client.store, client.settings.inbox_retention)
        self._recipients = Recipients(
            client.store, tuple(setup.channels), client.settings.callback_hosts
        )

    async def run(self, delivery_id: str, wanted: Wanted) -> str:
        """Deliver it; what came of it, in a few words."""
        client = self._client
        try:
            own = await client.get(delivery_id)
            run = None if wanted.task_id is None else await client.get(wanted.task_id)
        except TaskNotFound:
            return "nothing to deliver: the run is not kept any more, or was never stored"
        if run is not None and (run.state not in TERMINAL or run.finished_at is None):
            raise Snooze("it was started again: behind its next end", after=0.0)
        if run is not None and run.state is State.CANCELLED:
            return "nothing to deliver: the run was cancelled"
        channel = self._setup.channels.get(wanted.channel)
        if channel is None:
            raise Fatal(f"there is no channel {wanted.channel!r} in this deployment")
        recipient = await self._recipient(own.owner)
        if wanted.channel in recipient.unsubscribed:
            return "nothing to deliver: the recipient has unsubscribed"
        await self._wait_for_the_morning(channel, recipient)
        message = self._message(own, wanted, run, recipient)
        if wanted.channel == "inbox":
            return "in the inbox" if await self._inbox.add(message) else "in the inbox already"
        return await self._send(channel, message, recipient)

    async def _recipient(self, owner: str | None) -> Recipient:
        found = None if owner is None else await self._recipients.get(owner)
        return found or Recipient(owner=owner or "")

    async def _wait_for_the_morning(self, channel: Channel, recipient: Recipient) -> None:
        if channel.is_loud and recipient.quiet_hours is not None:
            now = await self._client.store.now()
            end = recipient.quiet_until(now)
            if end is not None:
                wait = (end - now).total_seconds()
                raise Snooze(f"quiet hours until {end.isoformat()}", after=wait)

    def _message(
        self, own: Task, wanted: Wanted, run: Task | None, recipient: Recipient
    ) -> Message:
        settings, language = self._client.settings, recipient.language
        ended: datetime | None = own.created_at if run is None else run.finished_at
        said = wanted.content or "" if run is None else content_of(run, language)
        return Message(
            id=own.id,
            channel=wanted.channel,
            owner=own.owner,
            title=one_line(wanted.title) or phrase("title", language),
            content=said,
            is_failure=run is not None and run.state is not State.COMPLETED,
            at=ended or own.created_at,
            execution=None if run is None else run.id,
            schedule=wanted.schedule,
            language=language,
            unsubscribe_url=unsubscribe_url(settings, own.owner, wanted.channel),
        )

    async def _send(self, channel: Channel, message: Message, recipient: Recipient) -> str:
        addresses = channel.addresses(recipient)
        if not addresses:
            raise Fatal(f"the recipient has no address for {message.channel}")
        had = await self._had(message) if len(addresses) > 1 else set[str]()
        left = [address for address in addresses if _digest(address) not in had]
        with self._room({channel.place(address) for address in left}):
            turns = asyncio.Semaphore(AT_A_TIME)
            outcomes = await asyncio.gather(
                *(self._send_one(channel, message, address, recipient, turns) for address in left)
            )
        problems = [each for each in outcomes if isinstance(each, Exception)]
        had |= {
            _digest(address)
            for address, each in zip(left, outcomes, strict=True)
            if isinstance(each, str)
        }
        await self._note(message, had, problems, len(addresses))
        return _end([each for each in outcomes if isinstance(each, str)], problems, had)

    async def _send_one(
        self,
        channel: Channel,
        message: Message,
        address: str,
        recipient: Recipient,
        turns: asyncio.Semaphore,
    ) -> str | Exception:
        try:
            async with turns:
                return await channel.send(message, address)
        except AddressGone as error:
            await self._recipients.forget_address(recipient.owner, address)
            return Fatal(f"the address is gone: {error}")
        except Exception as error:  # noqa: BLE001 - the others are to have it all the same
            return error

    @contextmanager
    def _room(self, places: set[str]) -> Iterator[None]:
        """A place in the line of every host; else stand aside, uncharged."""
        for place in places:
            if self._places[place] >= PER_PLACE:
                wait = STAND_ASIDE * random.uniform(0.5, 1.5)  # noqa: S311 - jitter, no secret
                raise Snooze(f"{PER_PLACE} deliveries to {place!r} are under way", after=wait)
        self._places.update(places)
        try:
            yield
        finally:
            self._places.subtract(places)
            for place in places:
                if not self._places[place]:
                    del self._places[place]

    async def _had(self, message: Message) -> set[str]:
        record = await one_record(self._client.store, PARTS, message.id)
        return set() if record is None else set(orjson.loads(record.document))

    async def _note(
        self, message: Message, had: set[str], problems: list[Exception], addresses: int
    ) -> None:
        """Remember who has had it, if there will be another attempt; else forget that."""
        if addresses == 1:
            return
        again = any(not isinstance(each, Fatal) for each in problems)
        change = (
            Put(PARTS, message.id, orjson.dumps(sorted(had)).decode(), due_in=KEPT)
            if again
            else Delete(PARTS, message.id)
        )
        with suppress(HoldfastError):  # then they have it twice, with the same id
            await self._client.store.commit(Changes(uuid4().hex, records=[change]))


def _end(notes: list[str], problems: list[Exception], had: set[str]) -> str:
    """How an attempt ends: what is worth another attempt comes first."""
    worth_more = [each for each in problems if not isinstance(each, Fatal)]
    if len(worth_more) == 1 and not had:
        raise worth_more[0]
    if worth_more:
        if all(isinstance(each, Snooze) for each in worth_more):
            raise worth_more[0]
        waits = [each.after for each in worth_more if isinstance(each, Retry) and each.after]
        text = one_line("; ".join(map(str, worth_more)), 500)
        raise Retry(text, after=max(waits)) if waits else NotAllReached(text)
    if problems and not had:
        raise problems[0]
    return "; ".join(dict.fromkeys(notes)) or "delivered"


def _digest(address: str) -> str:
    return sha256(address.encode()).hexdigest()[:24]
