"""What was said in the chat that a run belongs to, for its agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import orjson

from holdfast.core.task import Json
from holdfast.ports.records import RecordStore, one_record

CONVERSATION: Final = "conversation"
"""The kind of the records of conversations."""


class Message(NamedTuple):
    """One message of a chat. `role` is `user`, `assistant` or what else its writer says; `at` is an
    instant (ISO 8601), if that is known.
    """

    role: str
    content: str
    at: str | None = None


class ContextReader(Protocol):
    """Finds what was said in a chat: `@app.agent(context=reader)`."""

    async def read(
        self, store: RecordStore, owner: str | None, chat_id: str, most: int
    ) -> Sequence[Message]:
        """The last messages, oldest first; none if there is no such chat."""
        ...


class RecordedConversations:
    """Reads the conversations that the assistant keeps."""

    async def read(
        self, store: RecordStore, owner: str | None, chat_id: str, most: int
    ) -> Sequence[Message]:
        record = await one_record(store, CONVERSATION, conversation_key(owner, chat_id))
        said: Json = {} if record is None else orjson.loads(record.document)
        messages = said.get("messages") if isinstance(said, dict) else None
        kept = [each for each in messages or () if isinstance(each, dict)]
        return [
            Message(str(each.get("role", "")), str(each.get("content", "")), each.get("at"))
            for each in kept[-most:]
        ]


def conversation_key(owner: str | None, chat_id: str) -> str:
    """Of one owner's chat: another owner's of the same id is another one."""
    return orjson.dumps([owner, chat_id]).decode()
