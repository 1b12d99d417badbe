"""Zones: their names, and the way between the time on the wall and the instant.

Inside this package both are whole seconds since 1970: an *instant* counts in UTC, a *wall time*
counts as if the clock on the wall were UTC. Plain numbers keep the search fast, and make it hard to
mix them up with datetimes of another zone.

Where the clock jumps, the two part ways. In a *gap* (spring) a wall time never comes; it is read
with the offset that held before, so 02:30 becomes 03:30 (RFC 5545, 3.3.5). In an *overlap* (autumn)
a wall time comes twice.
"""

from __future__ import annotations

import difflib
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Final, Literal, get_args

from holdfast.errors import InvalidOption

Gap = Literal["shift", "skip"]
"""What becomes of a wall time that does not exist: it moves behind the gap, or it is left out."""

Overlap = Literal["first", "second", "both"]
"""Which one of a wall time that comes twice is meant."""

DAY: Final = 86_400
NEAR: Final = 25 * 3600
"""A clock change further away than this changes nothing: the longest gap is a whole day (Apia)."""

EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - wall times are naive on purpose
_UTC_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
FIRST_INSTANT: Final = (datetime(1, 1, 4, tzinfo=UTC) - _UTC_EPOCH) // _SECOND
LAST_INSTANT: Final = (datetime(9999, 12, 29, tzinfo=UTC) - _UTC_EPOCH) // _SECOND
"""Between these two every zone's arithmetic stays inside the years that Python has."""

_ABBREVIATIONS: Final = {
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "EST5EDT": "America/New_York",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "CST6CDT": "America/Chicago",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "MST7MDT": "America/Denver",
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "PST8PDT": "America/Los_Angeles",
    "HST": "Pacific/Honolulu",
    "GMT": "Europe/London",
    "BST": "Europe/London",
    "WET": "Europe/Lisbon",
    "CET": "Europe/Berlin",
    "CEST": "Europe/Berlin",
    "MET": "Europe/Berlin",
    "EET": "Europe/Athens",
    "EEST": "Europe/Athens",
    "MSK": "Europe/Moscow",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "AEST": "Australia/Sydney",
}
"""Abbreviations that people write for zones. Some are in the tz database too, but as fixed offsets
or with the rules of one country: whoever writes them means a place."""

_NO_PLACES: Final = ("posix/", "right/", "localtime", "posixrules", "Factory")
"""Loadable on some systems; `right/` even counts leap seconds, and `localtime` is another one on
each machine."""


class Zone:
    """One zone's offsets, as numbers."""

    __slots__ = ("info", "name")

    def __init__(self, name: str, info: zoneinfo.ZoneInfo) -> None:
        self.name = name
        self.info = info

    def offset(self, instant: int) -> int:
        """Seconds east of UTC at an instant."""
        bounded = min(max(instant, FIRST_INSTANT), LAST_INSTANT)
        delta = datetime.fromtimestamp(bounded, self.info).utcoffset()
        assert delta is not None
        return delta.days * DAY + delta.seconds

    def wall(self, instant: int) -> int:
        """What the wall shows at an instant."""
        return instant + self.offset(instant)

    def offsets(self, wall: int) -> tuple[int, int]:
        """The offsets that a wall time may have: equal, or before and after a clock change."""
        local = (EPOCH + timedelta(seconds=wall)).replace(tzinfo=self.info)
        before, after = local.utcoffset(), local.replace(fold=1).utcoffset()
        assert before is not None
        assert after is not None
        return before.days * DAY + before.seconds, after.days * DAY + after.seconds

    def instants(self, wall: int, gap: Gap, overlap: Overlap) -> tuple[int, ...]:
        """The instants that a wall time stands for: one, none in a gap, or two in an overlap."""
        before, after = self.offsets(wall)
        if before == after:
            return (wall - before,)
        if before < after:
            return () if gap == "skip" else (wall - before,)
        return {
            "first": (wall - before,),
            "second": (wall - after,),
            "both": (wall - before, wall - after),
        }[overlap]

    def shift_near(self, instant: int) -> int:
        """By how much the clock is moved within a good day of an instant; almost always 0."""
        here = self.offset(instant)
        before, after = self.offset(instant - NEAR), self.offset(instant + NEAR)
        return max(abs(here - before), abs(here - after))

    def change_between(self, early: int, late: int) -> int:
        """The first instant with the offset of `late`, given that the offset changes once
        between."""
        target = self.offset(late)
        while late - early > 1:
            middle = (early + late) // 2
            early, late = (early, middle) if self.offset(middle) == target else (middle, late)
        return late

    def day_start(self, day: int) -> int:
        """The first instant of a local day, counted in days since 1970; midnight may be missing."""
        wall = day * DAY
        before, after = self.offsets(wall)
        if before < after:
            return self.change_between(wall - after, wall - before)
        return wall - before


def find_zone(name: object, *, recurring: bool = True, field: str = "tz") -> Zone:
    """The zone of that IANA name; refused with the names that may have been meant."""
    if isinstance(name, zoneinfo.ZoneInfo):
        name = name.key
    if name is UTC:
        name = "UTC"
    if not isinstance(name, str) or not name.strip():
        raise InvalidOption(
            field, f"expected the IANA name of a zone such as Europe/Berlin or UTC, got {name!r}"
        )
    if recurring and name.upper() in _ABBREVIATIONS:
        place = _ABBREVIATIONS[name.upper()]
        raise InvalidOption(
            field,
            f"expected a place, got the abbreviation {name!r}, which does not say when its clocks "
            f"change. Did you mean {place}? UTC is accepted too.",
        )
    return load_zone(name, field)


@lru_cache(maxsize=1024)
def load_zone(name: str, field: str) -> Zone:
    """Read a zone of the tz database, once."""
    try:
        if name.startswith(_NO_PLACES):
            raise ValueError(name)
        return Zone(name, zoneinfo.ZoneInfo(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidOption(
            field,
            "expected the IANA name of a zone such as Europe/Berlin or UTC, "
            f"got {_short(name)}{_suggestion(name)}",
        ) from None


def _suggestion(name: str) -> str:
    names = sorted(_zone_names())
    wanted = name.strip().replace(" ", "_").casefold()
    folded = {each.casefold(): each for each in names}
    near = [each for each in names if each.casefold().rpartition("/")[2] == wanted]
    if wanted in folded:
        near = [folded[wanted]]
    elif name.strip().upper() in _ABBREVIATIONS:
        near = [_ABBREVIATIONS[name.strip().upper()]]
    elif not near and len(wanted) <= 60:
        close = difflib.get_close_matches(wanted, folded, n=3, cutoff=0.7)
        tails = {each.rpartition("/")[2]: folded[each] for each in folded if "/" in each}
        close_tails = difflib.get_close_matches(wanted.rpartition("/")[2], tails, n=2, cutoff=0.8)
        near = [folded[each] for each in close] + [tails[each] for each in close_tails]
    chosen = list(dict.fromkeys(near))[:3]
    return f". Did you mean {' or '.join(chosen)}?" if chosen else ""


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _short(value: str) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def read_gap(value: object) -> Gap:
    """Read the option `gap`."""
    if value == "shift" or value == "skip":
        return value
    raise InvalidOption("gap", f"expected {' or '.join(get_args(Gap))}, got {value!r}")


def read_overlap(value: object) -> Overlap:
    """Read the option `overlap`."""
    if value == "first" or value == "second" or value == "both":
        return value
    raise InvalidOption("overlap", f"expected first, second or both, got {value!r}")


@lru_cache(maxsize=1)
def tz_version() -> str:
    """Which tz database is in use: `2026f` from the package `tzdata`, or `2025b (system)`.

    Python looks at the system's files first (`zoneinfo.TZPATH`); set `PYTHONTZPATH=""` to use the
    package on every machine of a fleet. Runs that were computed ahead are worth computing again
    when this text changes. Read once: zones, too, are read once in a process (`forget_zones`).
    """
    for folder in map(Path, zoneinfo.TZPATH):
        if (folder / "Europe/London").is_file():
            return f"{_system_version(folder)} (system)"
    try:
        return str(import_module("tzdata").IANA_VERSION)
    except ImportError:
        return "unknown"


def _system_version(folder: Path) -> str:
    for name in ("+VERSION", "tzdata.zi"):
        try:
            with (folder / name).open(encoding="ascii", errors="replace") as file:
                return file.readline().removeprefix("# version").strip()
        except OSError:
            continue
    return "unknown"


def to_instant(moment: datetime) -> int:
    """Whole seconds of an aware datetime, rounded down."""
    return (moment - _UTC_EPOCH) // _SECOND


def to_datetime(instant: int) -> datetime:
    """An instant as an aware datetime in UTC."""
    return _UTC_EPOCH + timedelta(seconds=instant)


def to_wall(local: datetime) -> int:
    """Whole seconds of a naive datetime."""
    return (local - EPOCH) // _SECOND


def from_wall(wall: int) -> datetime:
    """A wall time as a naive datetime."""
    return EPOCH + timedelta(seconds=wall)
