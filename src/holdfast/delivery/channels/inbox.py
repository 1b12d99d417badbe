"""The channel of the web inbox. It needs nobody else: what it does is a record."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.recipient import Recipient
from holdfast.ports.channel import Message


class InboxChannel:
    """Says where an inbox is; `delivering` writes it, as it has the store."""

    is_loud = False

    def missing(self) -> str | None:
        return None

    def addresses(self, recipient: Recipient) -> Sequence[str]:
        return (recipient.owner,)

    def place(self, address: str) -> str:
        return ""

    async def send(self, message: Message, address: str) -> str:
        raise NotImplementedError("an inbox is in the store")
