"""What the two kinds of push have in common: little room, and JSON."""

from __future__ import annotations

from typing import Final

from holdfast.core.task import Json
from holdfast.delivery.content import shortened
from holdfast.delivery.templates import Templates, one_line
from holdfast.errors import HoldfastError
from holdfast.ports.channel import Message

LONGEST_TITLE: Final = 100
LONGEST_BODY: Final = 600
"""Characters. A push holds 4 kB, all that surrounds it included, and a character up to 6 bytes."""


class PushNotTaken(HoldfastError):
    """The push service did not take it this time."""


def push_text(templates: Templates, message: Message) -> dict[str, Json]:
    """A message as a push says it."""
    return {
        "title": one_line(templates.render("push.title.txt", message), LONGEST_TITLE),
        "body": shortened(templates.render("push.body.txt", message).strip(), LONGEST_BODY),
        "delivery": message.id,
        "execution": message.execution or "",
        "schedule": message.schedule or "",
        "link": message.link or "",
    }
