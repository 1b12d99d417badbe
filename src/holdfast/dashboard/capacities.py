"""Setting how many may pass a limit, from what somebody typed."""

from __future__ import annotations

from holdfast.client import Client
from holdfast.dashboard.words import number
from holdfast.definitions.limits import MOST
from holdfast.server.problems import Refused


async def change(client: Client, name: str, text: str) -> str:
    """Set it, and what to say of that; `Refused` (422) if the text is no capacity."""
    done = await client.set_limit(name, read_capacity(text))
    if not done.changed:
        return f"It was so before: {number(done.capacity or 0)} may pass {name}."
    if not done.capacity:
        return f"Nobody may pass {name} now."
    return f"Now {number(done.capacity)} may pass {name}, until that is taken back."


def read_capacity(text: str) -> int:
    """Read a whole number from 0 on."""
    typed = text.strip()
    is_number = typed.isascii() and typed.isdigit() and len(typed) <= len(str(MOST))
    if not is_number or int(typed) > MOST:
        shown = repr(typed if len(typed) <= 40 else f"{typed[:40]}…") if typed else "nothing"
        said = f"expected a whole number from 0 to {MOST:,}, got {shown}; nothing was changed"
        raise Refused(422, "invalid_request", said, field="capacity")
    return int(typed)
