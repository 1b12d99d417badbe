"""Reads points in time. A point in time has an offset, or a zone is named beside it; anything else
would mean another moment on every machine, and is refused.
"""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from holdfast.errors import InvalidOption


def read_instant(option: str, value: object, zone: str | None = None) -> datetime:
    """Read an instant as aware UTC.

    With a `zone`, the value is wall time there: a time skipped by a clock change moves forward, a
    doubled one means its first coming.
    """
    moment = _moment(option, value)
    if zone is not None:
        if moment.tzinfo is not None:
            raise InvalidOption("timezone", f"{option} has an offset already; drop one of the two")
        moment = moment.replace(tzinfo=read_zone(zone))
    if moment.utcoffset() is None:
        raise InvalidOption(
            option,
            f"expected a time with an offset, got the naive {moment.isoformat()}. "
            "Use datetime(…, tzinfo=UTC), write the offset ('2030-01-01T10:00:00+02:00'), or name "
            "the zone with timezone='Europe/Berlin'.",
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidOption(option, f"{moment.isoformat()} is out of range in UTC") from None


def read_zone(name: object) -> ZoneInfo:
    """Read an IANA zone name."""
    try:
        if isinstance(name, str):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    close = get_close_matches(str(name), sorted(available_timezones()), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InvalidOption(
        "timezone", f"expected an IANA zone such as 'Europe/Berlin', got {name!r}.{hint}"
    )


def _moment(option: str, value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            pass
    raise InvalidOption(
        option, f"expected a datetime or text such as '2030-01-01T10:00:00+02:00', got {value!r}"
    )
