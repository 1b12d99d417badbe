"""Reads lengths of time, and sizes, the way people write them.

Durations: `30`, `1.5`, `"30s"`, `"10m"`, `"1h30m"`, `"2d"`, `"PT10M"`, `"P1DT2H"`, `timedelta`.
A number alone is seconds. Months and years are refused: they have no fixed length.
Sizes: `1048576`, `"512KiB"`, `"1MiB"`, `"2GB"`. A number alone is bytes.

Both raise `ValueError` with "expected …, got …"; the caller adds which option or setting it was.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta

Duration = float | str | timedelta
"""What a caller may write for a length of time."""

Size = int | str
"""What a caller may write for a number of bytes."""

LONGEST = 100 * 365 * 86_400.0
"""A century: beyond it instants overflow somewhere, and nobody means it."""

_UNITS = {
    unit: seconds
    for seconds, units in {
        0.001: "ms",
        1.0: "s sec secs second seconds",
        60.0: "m min mins minute minutes",
        3600.0: "h hr hrs hour hours",
        86_400.0: "d day days",
        604_800.0: "w week weeks",
    }.items()
    for unit in units.split()
}
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|\.[0-9]+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
_ISO = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def parse_duration(value: object) -> float:
    """Read a length of time, in seconds; never negative."""
    seconds = _seconds(value)
    if seconds is None:
        raise ValueError(
            'expected a duration such as 30, "30s", "10m", "1h30m", "2d" or "PT10M", '
            f"got {_shown(value)}"
        )
    if not 0 <= seconds <= LONGEST:
        raise ValueError(f"expected a duration of 0 seconds to 100 years, got {_shown(value)}")
    return seconds


def parse_size(value: object) -> int:
    """Read a number of bytes."""
    size = _bytes(value)
    if size is None or size < 0:
        raise ValueError(
            f'expected a size in bytes such as 1048576, "512KiB" or "1MiB", got {_shown(value)}'
        )
    return size


def _seconds(value: object) -> float | None:
    match value:
        case bool():
            return None
        case int():
            return float(min(max(value, -1), int(LONGEST) * 2))
        case float():
            return None if math.isnan(value) else value
        case timedelta():
            return value.total_seconds()
        case str():
            return _spelled(value.strip())
        case _:
            return None


def _spelled(text: str) -> float | None:
    if _NUMBER.fullmatch(text):
        return float(text)
    if text.startswith("P"):
        return _iso(text)
    total, end = 0.0, 0
    for part in _PART.finditer(text):
        if part.start() != end or part[2] not in _UNITS:
            return None
        total += float(part[1]) * _UNITS[part[2]]
        end = part.end()
    return total if 0 < end == len(text) else None


def _iso(text: str) -> float | None:
    match = _ISO.fullmatch(text)
    if match is None or text.endswith(("P", "T")):
        return None
    return sum(float(number) * _UNITS[unit] for unit, number in match.groupdict("0").items())


def _bytes(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    step = 1024 if match[3] else 1000
    return int(float(match[1]) * step ** " kmgt".index(match[2].lower() or " "))


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write out an integer of thousands of digits
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}…"
