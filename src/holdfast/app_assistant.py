"""The assistant of an app: `app.assistant.ask(…)`, `await app.assistant.ask_async(…)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from holdfast.assistant.assistant import Assistant, Tell, silent
from holdfast.assistant.making import assistant_of
from holdfast.core.assistant_answers import AssistantAnswer
from holdfast.core.task import Json
from holdfast.delivery.choosing import channels_for
from holdfast.delivery.setup import DeliverySetup
from holdfast.sync_facade import ClientOwner


class AppAssistant:
    """Both verbs, for sync and for async code."""

    def __init__(self, owner: ClientOwner, delivery: DeliverySetup) -> None:
        self.owner = owner
        self._delivery = delivery

    async def verbs(self) -> Assistant:
        """The assistant, with its store open."""
        client = await self.owner.verbs()
        return assistant_of(client.schedules, partial(channels_for, client.store, self._delivery))

    async def message_async(
        self,
        messages: Sequence[Mapping[str, Json]],
        *,
        chat_id: str,
        timezone: str,
        owner: str | None = None,
        now: datetime | None = None,
        confirm: bool | None = None,
        tell: Tell = silent,
    ) -> AssistantAnswer:
        """What `POST /api/v1/assistant/messages` does: understand the last of these messages
        (`{"role": "user", "content": …, "id": …}`) and do what it says. `tell` hears what is being
        done meanwhile.
        """
        assistant = await self.verbs()
        return await assistant.message(
            messages, chat_id=chat_id, timezone=timezone, owner=owner, now=now, confirm=confirm,
            tell=tell,
        )  # fmt: skip

    def message(
        self,
        messages: Sequence[Mapping[str, Json]],
        *,
        chat_id: str,
        timezone: str,
        owner: str | None = None,
        now: datetime | None = None,
        confirm: bool | None = None,
    ) -> AssistantAnswer:
        return self.owner.wait_for(
            self.message_async(
                messages, chat_id=chat_id, timezone=timezone, owner=owner, now=now, confirm=confirm
            )
        )

    async def ask_async(
        self,
        text: str,
        *,
        timezone: str,
        chat_id: str = "default",
        owner: str | None = None,
        now: datetime | None = None,
        confirm: bool | None = None,
    ) -> AssistantAnswer:
        """One message in plain words."""
        return await self.message_async(
            [{"role": "user", "content": text}], chat_id=chat_id, timezone=timezone, owner=owner,
            now=now, confirm=confirm,
        )  # fmt: skip

    def ask(
        self,
        text: str,
        *,
        timezone: str,
        chat_id: str = "default",
        owner: str | None = None,
        now: datetime | None = None,
        confirm: bool | None = None,
    ) -> AssistantAnswer:
        return self.owner.wait_for(
            self.ask_async(
                text, timezone=timezone, chat_id=chat_id, owner=owner, now=now, confirm=confirm
            )
        )
