"""Carries out an update on a task that is there: one verb of schedules for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from holdfast.assistant.drafts import WORDS, channels_of, rule_of_plan
from holdfast.core.task import Json
from holdfast.errors import InvalidOption
from holdfast.recurrence import Kind
from holdfast.schedules.book import Book
from holdfast.schedules.series import Series, Status


async def update(book: Book, series: Series, result: Mapping[str, Json]) -> Series:
    """Do to this task what a plan says; the task as it is then. `InvalidOption` if it cannot be."""
    match result["op"]:
        case "reschedule":
            return await book.update(series.id, rule=rule_of_plan(_with_zone(result, series)))
        case "pause":
            return await book.pause(series.id, until=_instant(result.get("until"), series))
        case "resume":
            return await book.resume(series.id)
        case "cancel":
            await book.delete(series.id)
            return series
        case "run_now":
            await book.trigger(series.id)
            return series
        case "skip":
            for each in result.get("exdate") or (None,):
                series = await book.skip(series.id, _instant(each, series))
            return series
        case "deliver":
            return await book.update(series.id, channels=list(channels_of(result["delivery"])))
        case "rename":
            title = str(result["title"])
            return await book.update(series.id, title=title, delivery_title=title)
        case unknown:
            raise InvalidOption("op", f"expected an operation, got {unknown!r}")


def told(series: Series) -> dict[str, Json]:
    """A task as planners are told of it: no owner, no address, no arguments."""
    rule = series.rule
    said = rule.to_json()
    upcoming = series.next_at or rule.next_after(series.created_at)
    start = upcoming.astimezone(ZoneInfo(rule.tz)) if upcoming else None
    found: dict[str, Json] = {
        "id": series.id,
        "title": series.about.title or series.id,
        "status": series.status.value.upper(),
        "tz": rule.tz,
        "delivery": [WORDS.get(name, name.upper()) for name in series.about.channels],
        "dtstart": said.get("dtstart") if start is None else _wall(start),
    }
    if rule.kind is Kind.RRULE and rule.rules:
        found["rrule"] = rule.rules[0] if len(rule.rules) == 1 else list(rule.rules)
    elif rule.kind is Kind.INTERVAL:
        found["rrule"] = f"FREQ=SECONDLY;INTERVAL={rule.step}"
    return found


def is_over(series: Series) -> bool:
    """Whether nothing is to come of it: such tasks are not talked about any more."""
    return series.status in (Status.COMPLETED, Status.FAILED)


def needs_a_yes(op: str, targets: Sequence[Series]) -> bool:
    """Whether to ask first: what ends several tasks at once cannot be taken back."""
    return op == "cancel" and len(targets) > 1


def _with_zone(result: Mapping[str, Json], series: Series) -> Mapping[str, Json]:
    return {**result, "tz": result.get("tz") or series.rule.tz}


def _instant(text: str | None, series: Series) -> datetime | None:
    if text is None:
        return None
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=ZoneInfo(series.rule.tz))


def _wall(at: datetime) -> str:
    return at.replace(tzinfo=None).isoformat(timespec="seconds")
