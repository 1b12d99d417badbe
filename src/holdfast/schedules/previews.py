"""The runs of a rule, for people to look at before they agree to it."""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.core.task import Json
from holdfast.errors import InvalidOption
from holdfast.recurrence import PreviewRow, Schedule
from holdfast.recurrence.zones import find_zone


def preview_of(
    rule: Schedule,
    number: int,
    *,
    after: datetime,
    begin: datetime | None = None,
    end: datetime | None = None,
    tz: str | None = None,
    zone_word: str = "tz",
) -> Json:
    """The next runs after an instant, or those from `begin` up to `end`, which is not inside."""
    if begin is not None and end is not None:
        if begin >= end:
            raise InvalidOption("between", "expected the second time to be after the first")
        after = begin - timedelta(seconds=1) if begin.year > 1 else begin
    shown = None if tz is None else find_zone(tz, recurring=False, field=zone_word).name
    rows = rule.preview(number + 1, after=after, tz=shown)
    inside = [row for row in rows if (begin is None or begin <= row.utc) and _is_before(row, end)]
    return {
        "kind": rule.kind.value,
        "words": rule.words,
        "tz": rule.tz,
        "shown_tz": shown or rule.tz,
        "rule": rule.to_json(),
        "runs": [row.to_json() for row in inside[:number]],
        "is_complete": len(inside) <= number,
    }


def _is_before(row: PreviewRow, end: datetime | None) -> bool:
    return end is None or row.utc < end
