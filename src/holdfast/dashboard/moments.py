"""Times that people type, on the wall of some zone."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from holdfast.errors import InvalidOption


def read_local(field: str, text: str, zone: str) -> datetime:
    """`2026-12-24T18:00` in this zone; with an offset or a Z it is that instant."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidOption(
            field, f"expected a time such as 2026-12-24T18:00, got {text[:60]!r}"
        ) from None
    if at.tzinfo is not None:
        return at
    local = at.replace(tzinfo=ZoneInfo(zone))
    try:
        local.timestamp()
    except (OverflowError, ValueError):
        raise InvalidOption(field, "expected a time within the years 1 to 9999") from None
    return local


def field_text(at: datetime, zone: str) -> str:
    """An instant as a field for local times has it."""
    return f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%dT%H:%M}"
