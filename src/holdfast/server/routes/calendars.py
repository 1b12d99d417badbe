"""Schedules as a calendar, and of a calendar."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, cast

from starlette.responses import Response

from holdfast.core.schedule_answers import ImportAnswer
from holdfast.core.task import Json
from holdfast.errors import InvalidOption
from holdfast.schedules.calendar_reading import Unread, read_calendar
from holdfast.schedules.calendar_writing import calendar_of
from holdfast.schedules.importing import import_entries
from holdfast.schedules.series import Status
from holdfast.server.access import SCHEDULES
from holdfast.server.answers import answer
from holdfast.server.bodies import JSON, parse, read_body, require
from holdfast.server.models.schedules import (
    LONGEST_CALENDAR,
    CalendarQuery,
    Import,
    ImportQuery,
)
from holdfast.server.models.tasks import Submit
from holdfast.server.problems import Refused
from holdfast.server.routes.schedules import reach_of
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape

routes = Routes("schedules")

CALENDAR: Final = "text/calendar"
IMPORT: Final = Shape(Import, nullable=True)
_TEXT: Final[Json] = {"schema": {"type": "string", "description": "An iCalendar (RFC 5545)."}}


def _answers_calendar(described: dict[str, Any]) -> None:
    described["responses"][200] = {
        "description": "The calendar.", "content": {CALENDAR: _TEXT}
    }  # fmt: skip


def _takes_calendar(described: dict[str, Any]) -> None:
    described["openapi_extra"]["requestBody"]["content"][CALENDAR] = _TEXT


@routes(
    "GET",
    f"{SCHEDULES}/calendar.ics",
    "Every active schedule as a calendar",
    says="An entry for each, in its own zone, of one `owner` or of all. What no rule of a calendar "
    "says is there with its next 100 runs.",
    answers=None,
    query=Shape(CalendarQuery),
    amend=_answers_calendar,
)
async def get_calendar(request: ApiRequest[CalendarQuery]) -> Response:
    reach = await reach_of(request)
    now = await (await request.verbs()).now()
    active = [
        series
        async for series in reach.every(request.words.get("owner"))
        if series.status is Status.ACTIVE
    ]
    text = await asyncio.to_thread(calendar_of, active, now)
    headers = {"Content-Disposition": 'inline; filename="calendar.ics"'}
    return Response(text, headers=headers, media_type=f"{CALENDAR}; charset=utf-8")


@routes(
    "POST",
    f"{SCHEDULES}/import",
    "Make schedules of a calendar",
    says="A calendar (`text/calendar`, with the other words in the query), or an object that has "
    "it. Each VEVENT becomes a schedule of the task `task_type`. If one cannot be read, nothing is "
    "made and 422 lists why, unless `unread=skip`. What is cancelled, or no VEVENT, is passed "
    "over.",
    answers=ImportAnswer,
    status=201,
    body=IMPORT,
    query=Shape(ImportQuery),
    refuses=(409,),
    example={"task_type": "remind", "calendar": "BEGIN:VCALENDAR\r\n…", "tz": "Europe/Berlin"},
    amend=_takes_calendar,
)
async def import_calendar(request: ApiRequest[ImportQuery]) -> Response:
    wanted = await _wanted(request)
    reach = await reach_of(request)
    task = {word: wanted[word] for word in ("task_type", "parameters", "queue") if word in wanted}
    call = reach.bounded(request.service.submissions.call(cast("Submit", task)))
    words = {"owner": wanted["owner"]} if "owner" in wanted else {}
    words |= reach.owned(words)
    entries = await asyncio.to_thread(read_calendar, wanted["calendar"], wanted.get("tz"))
    book = (await request.verbs()).schedules
    skips = wanted.get("unread") == "skip"
    done = await import_entries(book, entries, book.template(call), words, skip_unread=skips)
    if not done.made:
        raise _nothing_made(done.unread)
    made = [reach.brief(series) for series in done.made]
    return answer({"schedules": made, "unread": [_unread(each) for each in done.unread]}, 201)


async def _wanted(request: ApiRequest[ImportQuery]) -> Import:
    """The calendar and what goes with it, whichever way it was sent."""
    kind = require(request, CALENDAR, JSON)
    body = await read_body(request)
    if len(body) > LONGEST_CALENDAR:
        raise Refused(
            413, "body_too_large", f"expected {LONGEST_CALENDAR:,} bytes at most for this request"
        )
    if kind == JSON:
        return IMPORT.read(parse(body))
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidOption("calendar", "expected text in UTF-8") from None
    return IMPORT.read({**request.words, "calendar": text})


def _unread(each: Unread) -> Json:
    return {
        "event": each.number,
        "uid": each.uid,
        "summary": each.summary,
        "field": each.field,
        "reason": each.reason,
    }


def _nothing_made(unread: Sequence[Unread]) -> Refused:
    problems = [
        {"field": f"events[{each.number}].{each.field}", "message": each.reason} for each in unread
    ]
    listed = "; ".join(f"{each['field']}: {each['message']}" for each in problems[:5])
    return Refused(
        422,
        "unreadable_calendar",
        f"nothing was made: {listed}",
        field=problems[0]["field"],
        errors=problems,
        unread=[_unread(each) for each in unread],
    )
