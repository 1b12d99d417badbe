"""What people see before they agree to a schedule: the next runs, and what is odd about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from holdfast.recurrence.rules import Freq, Rule
from holdfast.recurrence.runs import Runs
from holdfast.recurrence.wall_rule import month_of
from holdfast.recurrence.year_days import first_day, month_length, year_of
from holdfast.recurrence.zones import DAY, Zone, from_wall, to_datetime, to_wall

MOVED: Final = "moved_by_gap"
FIRST_OF_TWO: Final = "first_of_two"
SECOND_OF_TWO: Final = "second_of_two"
SKIPPED_MONTHS: Final = "skipped_months"
SKIPPED_YEARS: Final = "skipped_years"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRow:
    """One run. `local` is in the zone that was asked for.

    `meant` is the wall time that the rule meant if the clock skips it. `skipped` lists the months
    (`2026-02`) or years before this run that have no such day, for example no 31st.
    """

    local: datetime
    utc: datetime
    abbreviation: str
    flags: tuple[str, ...] = ()
    meant: datetime | None = None
    skipped: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The row as plain JSON."""
        return {
            "local": self.local.isoformat(),
            "utc": self.utc.isoformat().replace("+00:00", "Z"),
            "abbreviation": self.abbreviation,
            "flags": list(self.flags),
            "meant": None if self.meant is None else self.meant.isoformat(),
            "skipped": list(self.skipped),
        }


def preview_rows(
    runs: Runs, after: int, number: int, shown: Zone, rule: Rule | None, start: datetime
) -> list[PreviewRow]:
    """The next runs as rows; `rule` is the only rule of the schedule, spelled out, if there is
    one.
    """
    rows: list[PreviewRow] = []
    while len(rows) < number and (run := runs.next_after(after)) is not None:
        after = run.instant
        utc = to_datetime(run.instant)
        local = utc.astimezone(shown.info)
        flag, skipped = _skipped(rule, run.wall, start) if rule is not None else ("", ())
        flags = [MOVED] if run.moved else _passes(runs.zone, run.instant)
        rows.append(
            PreviewRow(
                local=local,
                utc=utc,
                abbreviation=local.tzname() or "",
                flags=(*flags, *([flag] if skipped else [])),
                meant=from_wall(run.wall) if run.moved else None,
                skipped=skipped,
            )
        )
    return rows


def _passes(zone: Zone, instant: int) -> list[str]:
    before, after = zone.offsets(zone.wall(instant))
    if before <= after:
        return []
    return [FIRST_OF_TWO if zone.offset(instant) == before else SECOND_OF_TWO]


def _skipped(rule: Rule, wall: int, start: datetime) -> tuple[str, tuple[str, ...]]:
    """The periods right before a run that lack the day that the rule names."""
    if rule.byday or not rule.bymonthday or min(abs(day) for day in rule.bymonthday) <= 28:
        return "", ()
    if rule.freq is Freq.MONTHLY:
        return SKIPPED_MONTHS, _skipped_months(rule, wall, start)
    if rule.freq is Freq.YEARLY and rule.bymonth:
        return SKIPPED_YEARS, _skipped_years(rule, wall, start)
    return "", ()


def _skipped_months(rule: Rule, wall: int, start: datetime) -> tuple[str, ...]:
    found: list[str] = []
    month, first = month_of(wall // DAY) - rule.interval, month_of(to_wall(start) // DAY)
    while month >= first and len(found) < 48:
        year, number = divmod(month, 12)
        wanted = not rule.bymonth or number + 1 in rule.bymonth
        if wanted and _has_a_day(rule, year, number + 1):
            break
        if wanted:
            found.append(f"{year:04}-{number + 1:02}")
        month -= rule.interval
    return tuple(reversed(found))


def _skipped_years(rule: Rule, wall: int, start: datetime) -> tuple[str, ...]:
    found: list[str] = []
    year = year_of(wall // DAY) - rule.interval
    while year >= start.year and len(found) < 48:
        if any(_has_a_day(rule, year, month) for month in rule.bymonth):
            break
        found.append(f"{year:04}")
        year -= rule.interval
    return tuple(reversed(found))


def _has_a_day(rule: Rule, year: int, month: int) -> bool:
    length = month_length(from_wall(first_day(year) * DAY).date().replace(month=month))
    return any(abs(day) <= length for day in rule.bymonthday)
