"""Numbers and times in words for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def duration(seconds: float | None) -> str:
    """A length of time in one unit, two above an hour: `4 ms`, `2.5 s`, `12 min`, `3 h 20 min`."""
    if seconds is None:
        return ""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    (size, unit), (small, part) = (_UNITS[0], _UNITS[1]) if seconds >= 86_400 else _UNITS[1:]
    whole, rest = divmod(seconds, size)
    return f"{whole:,.0f} {unit}" + (f" {rest // small:.0f} {part}" if rest >= small else "")


def number(value: float) -> str:
    """`1,234`, `0.5`."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}".rstrip("0")


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def sentence(text: str) -> str:
    """What an error says, as a sentence of a page."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", "`", "…")) else ".")


def instant(at: datetime) -> str:
    """For machines: RFC 3339 with a Z."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc(at: datetime) -> str:
    """For people who have no script to tell it in their own zone."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def local_words(text: str) -> str:
    """A local time of JSON: `Mon 02 Mar 2026 09:00:00`."""
    return f"{datetime.fromisoformat(text):%a %d %b %Y %H:%M:%S}"


def money(value: float) -> str:
    """`0.0043`, `1,204.50`; nothing for none."""
    if not value:
        return ""
    return f"{value:,.2f}" if value >= 1 else f"{value:.6f}".rstrip("0")
