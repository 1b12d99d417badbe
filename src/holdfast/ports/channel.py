"""What a channel must promise: it brings a message to an address.

class Sms:
    is_loud = True

    def missing(self) -> str | None: return None
    def addresses(self, recipient): return numbers_of(recipient.owner)
    def place(self, address): return "sms.example"
    async def send(self, message, address): ...

app.channel("sms", Sms())
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from holdfast.core.recipient import Recipient


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is delivered.

    `id` is the same whenever this is sent by this channel: a receiver can tell by it that it has
    had it already. `content` is plain or markdown-like text that others wrote: escape it. `title`
    is one line. Of a notice without a run, `execution` and `schedule` are None. `unsubscribe_url`
    ends this channel for its owner, if the deployment can say where that is.
    """

    id: str
    channel: str
    owner: str | None
    title: str
    content: str
    is_failure: bool
    at: datetime
    execution: str | None = None
    schedule: str | None = None
    language: str | None = None
    link: str | None = None
    unsubscribe_url: str | None = None


class AddressGone(Exception):
    """Nobody is at this address any more: it is taken off the recipient, and not tried again."""


class Channel(Protocol):
    """One way of delivering. Made once per process; used by many deliveries at once."""

    @property
    def is_loud(self) -> bool:
        """Whether it can wake somebody up: then it waits for the end of quiet hours."""
        ...

    def missing(self) -> str | None:
        """What must be set up before it can be used, as a sentence; None if nothing."""
        ...

    def addresses(self, recipient: Recipient) -> Sequence[str]:
        """Where it reaches this recipient; none if it cannot."""
        ...

    def place(self, address: str) -> str:
        """Who answers for this address, a host say: only so many go to one at a time."""
        ...

    async def send(self, message: Message, address: str) -> str:
        """Send it, and say in a few words what came of it.

        It may be called again for what was sent already, if a process died in between. `Fatal` and
        `AddressGone` are final; `Retry` says when to try again; everything else is tried again with
        the backoff of deliveries.
        """
        ...
