"""Reads what people say of a schedule: the rule in any of its spellings, and how it behaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.definitions.readers import (
    LONGEST_NAME,
    hint,
    read_duration,
    read_name,
    read_text,
    read_word,
    several,
)
from holdfast.errors import InvalidOption
from holdfast.recurrence import Schedule
from holdfast.schedules.series import DEFAULT_CATCH_UP, About, CatchUp, CatchUpMode, Overlap

EVERY: Final = "every "
MOST_CAUGHT_UP: Final = 10_000
LONGEST_TEXT: Final = 10_000
RESERVED: Final = ("preview", "import", "calendar.ics", ".", "..")


_POLICIES: Final = (
    "overlap", "catch_up", "catch_up_most", "catch_up_window", "jitter", "pause_after_failures",
)  # fmt: skip
_ABOUT: Final = tuple(each.name for each in fields(About))


def read_schedule_name(value: object) -> str:
    """The name of a schedule. Servers have it in their paths, beside a few words of their own."""
    name = read_name("name", value)
    if "/" in name or name in RESERVED:
        raise InvalidOption(
            "name", f"expected no slash, and none of {', '.join(RESERVED)}, got {name!r}"
        )
    return name


def read_rule(value: object, tz: str | None = None) -> Schedule:
    """A rule: one that was made, its JSON, or text: a cron line, an RRULE, `every 90m`, a time."""
    if isinstance(value, Schedule):
        if tz is not None and tz != value.tz:
            raise InvalidOption("tz", f"expected it in the rule, which says {value.tz}, got {tz!r}")
        return value
    if isinstance(value, Mapping):
        said = {**value} if tz is None else {"tz": tz, **value}
        return Schedule.from_json(said)
    if isinstance(value, datetime):
        return Schedule.once(value, tz=tz)
    if isinstance(value, timedelta):
        return Schedule.every(value, tz=tz)
    if not isinstance(value, str) or not value.strip():
        raise InvalidOption(
            "rule",
            "expected a cron line ('0 9 * * 1-5'), an RRULE ('FREQ=WEEKLY;BYDAY=MO'), 'every 90m', "
            f"or a time ('2026-12-24T18:00'), got {value!r}",
        )
    word, text = spelling(value)
    match word:
        case "every":
            return Schedule.every(text, tz=tz)
        case "rrule":
            return Schedule.rrule(text, tz=tz)
        case "at":
            return Schedule.once(text, tz=tz)
        case _:
            return Schedule.cron(text, tz=tz or "UTC")


def spelling(value: str) -> tuple[str, str]:
    """How a rule is spelled that is text (`every`, `rrule`, `at` or `cron`), and what it says."""
    text = value.strip()
    if text.lower().startswith(EVERY):
        return "every", text[len(EVERY) :].strip()
    if "FREQ=" in text.upper() or "\n" in text:
        return "rrule", text
    return ("at" if _is_time(text) else "cron"), text


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def read_behaviour(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a series that these words set, checked."""
    for name in given:
        if name not in (*_POLICIES, *_ABOUT):
            known = hint(name, (*_POLICIES, *_ABOUT))
            raise InvalidOption(name, f"no option of a schedule has this name{known}")
    found: dict[str, Any] = {}
    if "overlap" in given:
        found["overlap"] = read_word(Overlap, "overlap", given["overlap"])
    if "jitter" in given:
        found["jitter"] = read_duration("jitter", given["jitter"])
    if "pause_after_failures" in given:
        found["pause_after_failures"] = _whole("pause_after_failures", given, 1_000_000)
    return found


def check_words(given: Mapping[str, Any]) -> None:
    """Refuse words that no schedule can have."""
    read_behaviour(given)
    read_catch_up(given, DEFAULT_CATCH_UP)
    read_about(given, About())


def read_catch_up(given: Mapping[str, Any], before: CatchUp) -> CatchUp:
    """How runs are made up for, where these words say something else than before."""
    mode, most, window = before
    if "catch_up" in given:
        mode = read_word(CatchUpMode, "catch_up", given["catch_up"])
    if "catch_up_most" in given:
        most = _whole("catch_up_most", given, MOST_CAUGHT_UP) or before.most
    if "catch_up_window" in given:
        said = given["catch_up_window"]
        window = None if said is None else read_duration("catch_up_window", said)
    return CatchUp(mode, most, window)


def read_about(given: Mapping[str, Any], before: About) -> About:
    """What people want to know of it, where these words say something else than before."""
    said = {name: getattr(before, name) for name in _ABOUT}
    for name in _ABOUT:
        if name in given:
            said[name] = _read_about(name, given[name])
    return About(**said)


def _read_about(name: str, value: object) -> object:
    if name == "channels":
        return several(name, value, lambda place, one: read_text(place, one, LONGEST_NAME))
    if value is None:
        return None
    if name == "estimated_units":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise InvalidOption(name, f"expected a number >= 0, got {value!r}")
        return float(value)
    if name == "owner":
        return read_name(name, value)
    return read_text(name, value, LONGEST_TEXT)


def _whole(name: str, given: Mapping[str, Any], most: int) -> int | None:
    value = given[name]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidOption(name, f"expected a whole number from 1 to {most:,}, got {value!r}")
    return value
