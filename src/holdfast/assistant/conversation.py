"""A conversation as it is kept: what was said, what it is about, and what is still open.

One record for each (owner, chat). It is written over the version that was read, so of two messages
at once none is lost. What a run produced is never a message: only people and the assistant speak
here. Conversations that nobody goes on with are forgotten after `KEPT`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

import orjson

from holdfast.agents.conversation import CONVERSATION, conversation_key
from holdfast.core.record import Put, Record
from holdfast.core.task import Json
from holdfast.ports.records import RecordStore, one_record

KEPT: Final = 90 * 86_400.0
MOST_MESSAGES: Final = 50
MOST_ANSWERS: Final = 20
LONGEST_KEPT: Final = 4000
"""Characters of one message that are kept; the planner has read all of it."""


class Said(NamedTuple):
    """One message. `at` is when it was said, ISO 8601."""

    role: str
    content: str
    at: str
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """What the next message is expected to be about.

    A `question` was asked because of `fields`: its answer continues `text`. For a `confirmation`,
    `result` is the plan that is carried out by a yes.
    """

    kind: Literal["question", "confirmation"]
    text: str
    timezone: str
    message_id: str | None = None
    fields: tuple[str, ...] = ()
    result: Mapping[str, Json] = field(default_factory=dict)
    title: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """`focus` is the task last talked about. `answers` are those to the last messages, by the id
    of the message: asked again, it is answered again and nothing is done twice.
    """

    owner: str | None
    chat_id: str
    messages: tuple[Said, ...] = ()
    focus: str | None = None
    open: Open | None = None
    answers: Mapping[str, Json] = field(default_factory=dict)
    version: int = 0

    def saying(self, *more: Said) -> Conversation:
        """The conversation with these messages, the oldest forgotten."""
        short = [one._replace(content=one.content[:LONGEST_KEPT]) for one in more]
        return replace(self, messages=(*self.messages, *short)[-MOST_MESSAGES:])

    def answering(self, message_id: str | None, answer: Json) -> Conversation:
        """The conversation that remembers this answer."""
        if message_id is None:
            return self
        kept = {**self.answers, message_id: answer}
        newest = list(kept)[-MOST_ANSWERS:]
        return replace(self, answers={name: kept[name] for name in newest})

    def put(self) -> Put:
        """Write it over the version that was read."""
        document = {
            "owner": self.owner,
            "chat_id": self.chat_id,
            "messages": [one._asdict() for one in self.messages],
            "focus": self.focus,
            "open": self.open,
            "answers": self.answers,
        }
        return Put(
            CONVERSATION,
            conversation_key(self.owner, self.chat_id),
            orjson.dumps(document).decode(),
            version=self.version,
            group=self.owner or "",
            sort=self.chat_id,
            due_in=KEPT,
        )


async def read_conversation(store: RecordStore, owner: str | None, chat_id: str) -> Conversation:
    """The conversation so far; an empty one if there is none."""
    record = await one_record(store, CONVERSATION, conversation_key(owner, chat_id))
    if record is None:
        return Conversation(owner=owner, chat_id=chat_id)
    return _load(record)


def _load(record: Record) -> Conversation:
    said: dict[str, Json] = orjson.loads(record.document)
    pending = said["open"]
    if pending is not None:
        pending = Open(**{**pending, "fields": tuple(pending["fields"])})
    return Conversation(
        owner=said["owner"],
        chat_id=said["chat_id"],
        messages=_messages(said["messages"]),
        focus=said["focus"],
        open=pending,
        answers=said["answers"],
        version=record.version,
    )


def _messages(said: Sequence[Mapping[str, Json]]) -> tuple[Said, ...]:
    return tuple(Said(**one) for one in said)
