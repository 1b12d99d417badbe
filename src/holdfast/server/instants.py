"""Reads RFC 3339 instants, the whole range of them.

Python's clock ends at the years 1 and 9999. What lies beyond is as long ago, or as far away, as
anything can be: it becomes the first or the last instant there is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from holdfast.errors import InvalidOption

FIRST: Final = datetime.min.replace(tzinfo=UTC)
LAST: Final = datetime.max.replace(tzinfo=UTC)


def read_instant(field: str, text: str) -> datetime:
    """Read text that has the shape of an instant (`words.INSTANT`)."""
    if text.startswith("0000"):
        return FIRST
    # A leap second has no place in our calendars; it is the end of its minute.
    spelled = text[:17] + "59" + text[19:] if text[17:19] == "60" else text
    try:
        moment = datetime.fromisoformat(spelled.upper())
    except ValueError:
        raise InvalidOption(field, f"there is no such day: {text!r}") from None
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return FIRST if moment.year == 1 else LAST
