"""Random rules of every shape that RFC 5545 allows, dense enough to run within their span."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import strategies as st

from .reference import DAYS

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Beirut",
    "Europe/Dublin",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "America/Nuuk",
)
SPANS = {
    "YEARLY": 4500,
    "MONTHLY": 1500,
    "WEEKLY": 500,
    "DAILY": 200,
    "HOURLY": 12,
    "MINUTELY": 5,
    "SECONDLY": 5,
}
"""Days for which the reference looks; hours for SECONDLY."""

CHANGES = (
    datetime(2011, 12, 28, 22),
    datetime(2018, 2, 16, 20),
    datetime(2018, 11, 3, 12),
    datetime(2024, 3, 29, 20),
    datetime(2024, 4, 5, 12),
    datetime(2024, 10, 4, 20),
    datetime(2024, 10, 25, 20),
    datetime(2025, 2, 22, 20),
    datetime(2025, 3, 29, 20),
    datetime(2025, 4, 5, 20),
)
"""Shortly before a clock change in one of the zones."""


@dataclass(frozen=True)
class Case:
    text: str
    dtstart: datetime
    tz: str
    gap: str
    overlap: str

    @property
    def days(self) -> int:
        return SPANS[self.text.split(";")[0].removeprefix("FREQ=")]


@st.composite
def cases(draw: st.DrawFn, freqs: tuple[str, ...] = tuple(SPANS), end: bool = True) -> Case:
    freq = draw(st.sampled_from(freqs))
    parts = [f"FREQ={freq}", *draw(_BY_FREQ[freq])]
    elapsed = freq in ("HOURLY", "MINUTELY", "SECONDLY")
    interval = draw(st.integers(1, 40 if elapsed else 4))
    if interval > 1:
        parts.append(f"INTERVAL={interval}")
    if any(part.startswith("BY") for part in parts) and draw(st.integers(0, 3)) == 0:
        places = st.integers(-6, 6).filter(bool)
        parts.append(_listed("BYSETPOS", draw(st.sets(places, min_size=1, max_size=3))))
    if draw(st.booleans()):
        parts.append(f"WKST={draw(st.sampled_from(DAYS))}")
    dtstart = draw(_starts(elapsed))
    if end:
        parts += draw(_ends(dtstart, SPANS[freq], freq))
    gap = draw(st.sampled_from(("shift", "shift", "skip")))
    overlap = draw(st.sampled_from(("first", "first", "second", "both")))
    if any(part.startswith("UNTIL") for part in parts):
        overlap = "first"
    if elapsed:
        gap, overlap = "shift", "first"
    return Case(";".join(parts), dtstart, draw(st.sampled_from(ZONES)), gap, overlap)


def _listed(name: str, values: set[int]) -> str:
    return f"{name}={','.join(map(str, sorted(values)))}"


def _some(
    name: str, low: int, high: int, *, signed: bool = False, most: int = 4
) -> st.SearchStrategy[str]:
    values = st.integers(low, high)
    if signed:
        values = values | st.integers(-high, -low)
    return st.sets(values, min_size=1, max_size=most).map(lambda each: _listed(name, each))


def _plain_days() -> st.SearchStrategy[str]:
    return st.sets(st.sampled_from(DAYS), min_size=1).map(lambda d: f"BYDAY={','.join(sorted(d))}")


def _numbered_days(most: int) -> st.SearchStrategy[str]:
    number = st.integers(-most, most).map(lambda n: str(n) if n else "")
    day = st.tuples(number, st.sampled_from(DAYS)).map("".join)
    return st.lists(day, min_size=1, max_size=4, unique=True).map(lambda d: f"BYDAY={','.join(d)}")


def _maybe(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    chosen = [part | st.just("") for part in parts]
    return st.tuples(*chosen).map(lambda found: [each for each in found if each])


_HOURS = _some("BYHOUR", 0, 23) | st.just("BYHOUR=1,2,3")
_MINUTES = _some("BYMINUTE", 0, 59)
_MONTHS = _some("BYMONTH", 1, 12, most=8)
_MONTH_DAYS = _some("BYMONTHDAY", 1, 31, signed=True, most=12)
_YEAR_DAYS = _some("BYYEARDAY", 1, 366, signed=True, most=12)
_BY_FREQ: dict[str, st.SearchStrategy[list[str]]] = {
    "YEARLY": _maybe(_MONTHS, _MONTH_DAYS, _numbered_days(53), _HOURS, _MINUTES)
    | _maybe(_MONTHS, _numbered_days(5), _HOURS)
    | _maybe(_YEAR_DAYS, _plain_days(), _HOURS)
    | _maybe(_some("BYWEEKNO", 1, 53, signed=True), _plain_days(), _MONTHS, _MONTH_DAYS),
    "MONTHLY": _maybe(_MONTHS, _MONTH_DAYS, _numbered_days(5), _HOURS, _MINUTES)
    | _maybe(_numbered_days(5), _HOURS),
    "WEEKLY": _maybe(_MONTHS, _plain_days(), _HOURS, _MINUTES),
    "DAILY": _maybe(_MONTHS, _MONTH_DAYS, _plain_days(), _HOURS, _MINUTES)
    | _maybe(_HOURS, _MINUTES),
    "HOURLY": _maybe(_HOURS, _MINUTES, _plain_days()) | _maybe(_MINUTES),
    "MINUTELY": _maybe(_HOURS, _some("BYMINUTE", 0, 59, most=30), _plain_days()),
    "SECONDLY": _maybe(
        _some("BYSECOND", 0, 59, most=20), _some("BYMINUTE", 0, 59, most=40), _HOURS
    ),
}


def _starts(elapsed: bool) -> st.SearchStrategy[datetime]:
    anywhere = st.datetimes(datetime(1950, 1, 1), datetime(2060, 1, 1))
    nearby = st.tuples(st.sampled_from(CHANGES), st.integers(0, 72 * 12)).map(
        lambda pair: pair[0] + timedelta(minutes=5 * pair[1])
    )
    return (nearby | nearby | anywhere if elapsed else nearby | anywhere).map(
        lambda at: at.replace(second=0, microsecond=0)
    )


@st.composite
def _ends(draw: st.DrawFn, dtstart: datetime, days: int, freq: str) -> list[str]:
    match draw(st.integers(0, 5)):
        case 0:
            return [f"COUNT={draw(st.integers(1, 60))}"]
        case 1:
            span = days * (3600 if freq == "SECONDLY" else 86_400)
            at = dtstart + timedelta(seconds=draw(st.integers(86_400 * 2, span + 86_400 * 2)))
            form = draw(st.sampled_from(("%Y%m%d", "%Y%m%dT%H%M%S", "%Y%m%dT%H%M%SZ")))
            return [f"UNTIL={at:{form}}"]
        case _:
            return []
