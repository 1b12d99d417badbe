"""Requests to the assistant."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import Field, StringConstraints, with_config
from typing_extensions import TypedDict

from holdfast.assistant.requests import LONGEST_TEXT
from holdfast.server.models import words
from holdfast.server.models.schedules import Zone
from holdfast.server.shape import CLOSED

MOST_MESSAGES = 100


@with_config(CLOSED)
class ChatMessage(TypedDict, total=False):
    """One message. With an `id` it may be sent again: it is answered as before."""

    role: Literal["user", "assistant"]
    content: Required[
        Annotated[str, StringConstraints(max_length=LONGEST_TEXT, pattern=words.NO_NUL)]
    ]
    id: words.Key


@with_config(CLOSED)
class NewMessages(TypedDict, total=False):
    """What was said, the request last. `confirm`: true carries out what was shown before, false
    only shows what would be done. `now` is the user's time, the store's unless given.
    """

    chat_id: Required[words.Key]
    messages: Annotated[list[ChatMessage], Field(max_length=MOST_MESSAGES)]
    timezone: Required[Zone]
    now: words.Instant
    owner: words.Key
    confirm: bool
