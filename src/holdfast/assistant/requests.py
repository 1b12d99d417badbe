"""A message to the assistant, read and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.core.task import Json
from holdfast.definitions.readers import read_key
from holdfast.errors import InvalidOption
from holdfast.ports.planner import Message
from holdfast.recurrence.zones import find_zone

LONGEST_TEXT: Final = 8000
MOST_HISTORY: Final = 20
ROLES: Final = ("user", "assistant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One message of a user. `confirm` True carries out what was shown, False only shows."""

    owner: str | None
    chat_id: str
    text: str
    message_id: str | None
    timezone: str
    now: datetime
    history: tuple[Message, ...] = ()
    confirm: bool | None = None


def read_request(
    messages: Sequence[Mapping[str, Json]],
    *,
    chat_id: str,
    timezone: str,
    owner: str | None,
    now: datetime,
    confirm: bool | None,
) -> Request:
    """The last message of the user, and what was said before. `InvalidOption` names what is wrong
    with it: nothing is stored then.
    """
    read = [_read(number, one) for number, one in enumerate(messages)]
    if confirm is not True and (not read or read[-1][0] != "user"):
        raise InvalidOption("messages", "expected a message of the user as the last one")
    _, text, message_id = read[-1] if read else ("user", "", None)
    if confirm is not True and not text.strip():
        raise InvalidOption("messages", "expected a request in words, got an empty message")
    earlier = [Message(role=said, text=each) for said, each, _ in read[:-1]]  # type: ignore[arg-type] # of ROLES
    return Request(
        owner=None if owner is None else read_key("owner", owner),
        chat_id=read_key("chat_id", chat_id),
        text=text.strip(),
        message_id=message_id,
        timezone=find_zone(timezone, field="timezone").name,
        now=now,
        history=tuple(earlier[-MOST_HISTORY:]),
        confirm=confirm,
    )


def _read(number: int, one: Mapping[str, Json]) -> tuple[str, str, str | None]:
    at = f"messages[{number}]"
    role, text, message_id = one.get("role", "user"), one.get("content"), one.get("id")
    if role not in ROLES:
        raise InvalidOption(f"{at}.role", f"expected {' or '.join(ROLES)}, got {role!r:.40}")
    if not isinstance(text, str) or "\x00" in text:
        raise InvalidOption(f"{at}.content", "expected text")
    if len(text) > LONGEST_TEXT:
        raise InvalidOption(
            f"{at}.content", f"expected {LONGEST_TEXT:,} characters at most, got {len(text):,}"
        )
    return role, text, None if message_id is None else read_key(f"{at}.id", message_id)
