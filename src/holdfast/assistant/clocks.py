"""Times of day: from what was written to hours of a 24-hour clock.

An English hour without am or pm is a guess that everybody makes alike: 1 to 6 is the afternoon, 7
to 11 the morning. A part of the day decides instead where one is named, and one 24-hour time in a
list or range makes the whole of it 24-hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from holdfast.assistant.plan import Refused
from holdfast.assistant.slots import Clock, Half, Part

PARTS: Final[dict[Part, int]] = {
    "morning": 9,
    "noon": 12,
    "afternoon": 15,
    "evening": 18,
    "night": 21,
    "midnight": 0,
    "end_of_day": 17,
    "business_hours": 9,
}
_HALF_OF: Final[dict[Part, Half]] = {
    "morning": "am",
    "afternoon": "pm",
    "evening": "pm",
    "noon": "pm",
}


@dataclass(frozen=True, order=True)
class Time:
    """A time of day; `days` is 1 for a time after the midnight that ends its day."""

    days: int
    hour: int
    minute: int = 0
    second: int = 0

    @property
    def minutes(self) -> int:
        """Minutes since the midnight that begins its day."""
        return (self.days * 24 + self.hour) * 60 + self.minute

    def on(self, day: datetime) -> datetime:
        """The wall time on a day, given by its midnight."""
        return day + timedelta(
            days=self.days, hours=self.hour, minutes=self.minute, seconds=self.second
        )


NINE: Final = Time(0, 9)


def from_minutes(minutes: int) -> Time:
    """The time so many minutes after midnight."""
    days, rest = divmod(minutes, 24 * 60)
    return Time(days, rest // 60, rest % 60)


def resolve(clocks: Sequence[Clock], *, half: Half | None = None) -> tuple[Time, ...]:
    """The times of a list or range; `half` is that of the time which they replace."""
    written = any(_is_written(each) for each in clocks)
    found = [_resolve(each, written=written, half=half) for each in clocks]
    return tuple(dict.fromkeys(found))


def _is_written(clock: Clock) -> bool:
    hour = clock.hour
    if hour is None or clock.half is not None:
        return False
    return clock.written or hour == 0 or hour > 12


def _resolve(clock: Clock, *, written: bool, half: Half | None) -> Time:
    if clock.hour is None:
        assert clock.part is not None
        return Time(0, PARTS[clock.part])
    if not 0 <= clock.hour <= 24 or not 0 <= clock.minute <= 59:
        raise Refused("impossible_time")
    hour = _hour(clock, clock.hour, written=written, half=half)
    if hour >= 24:
        if hour == 24 and clock.minute and clock.part is None:
            raise Refused("impossible_time")
        return Time(1, hour - 24, clock.minute, clock.second)
    return Time(0, hour, clock.minute, clock.second)


def _hour(clock: Clock, hour: int, *, written: bool, half: Half | None) -> int:
    if clock.half is not None:
        return _halved(clock, hour, clock.half)
    if clock.part is not None and clock.part in PARTS:
        return _of_part(clock.part, hour)
    if written:
        return hour
    if half is not None and 1 <= hour <= 11:
        return hour + (12 if half == "pm" else 0)
    return hour + 12 if 1 <= hour <= 6 else hour


def _halved(clock: Clock, hour: int, half: Half) -> int:
    if hour > 12 and half == "am":
        raise Refused("impossible_time")
    if clock.part is not None and _HALF_OF.get(clock.part, half) != half:
        raise Refused("contradiction", "time")
    if hour > 12:
        return hour
    found = hour % 12 + (12 if half == "pm" else 0)
    if clock.part == "night":
        if 12 <= found < 17:
            raise Refused("contradiction", "time")
        return found + 24 if found < 6 else found
    return found


def _of_part(part: Part, hour: int) -> int:
    """The hour that a part of the day fixes; 24 and more are after midnight."""
    if part == "morning":
        if hour > 12:
            raise Refused("contradiction", "time")
        return hour % 12
    if part == "night":
        if 13 <= hour <= 17:
            raise Refused("contradiction", "time")
        if hour in (12, 24):
            return 24
        return hour + 24 if hour <= 5 else hour + 12 if hour <= 11 else hour
    if part == "evening" and hour in (12, 24):
        return 24
    if part == "noon" and hour in (10, 11):
        return hour
    if part == "midnight":
        return 24 if hour in (12, 24) else hour
    if part in ("end_of_day", "business_hours"):
        return hour + 12 if 1 <= hour <= 6 else hour
    if hour == 0:
        raise Refused("contradiction", "time")
    return hour + 12 if hour < 12 else hour
