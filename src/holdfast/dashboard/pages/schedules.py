"""Schedules: what runs when, how it went lately, and the next two weeks of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from holdfast.dashboard import calendar
from holdfast.dashboard.page import READ, SUBMIT, Page, Shown, View
from holdfast.dashboard.problems import NONE, problems_of
from holdfast.dashboard.run_cells import MOST, Cell, cells
from holdfast.dashboard.schedule_search import STATUSES, Search, find, read_search
from holdfast.errors import HoldfastError
from holdfast.recurrence.zones import find_zone
from holdfast.schedules.series import Series
from holdfast.schedules.showing import next_run
from holdfast.server.problems import Refused

page = Page("/schedules", "schedules.html", "Schedules", rule=READ)

IN_CALENDAR: Final = 50
"""Schedules whose next days are shown: those of the page and some after it."""
FIELDS: Final = ("owner", "status", "text", "zone")


class Row(NamedTuple):
    """One schedule of the list."""

    series: Series
    next_at: datetime | None
    runs: Sequence[Cell]


@page.read
async def read(view: View) -> Shown:
    shown: Shown = {
        "statuses": STATUSES,
        "given": view.query,
        "may_make": view.may(SUBMIT),
        "has_agent": has_agent(view),
        "problems": NONE,
        "search": Search(),
        "rows": [],
        "next": None,
        "zone": "UTC",
        "days": [],
    }
    try:
        zone = find_zone(view.query.get("zone") or "UTC", recurring=False, field="zone").name
        search = read_search(view.query)
        return shown | {"zone": zone, "search": search} | await _found(view, search, zone)
    except (Refused, HoldfastError) as error:
        return shown | {"problems": problems_of(error, FIELDS), "status": 422}


async def _found(view: View, search: Search, zone: str) -> Shown:
    reach, now = await view.schedules(), await (await view.verbs()).now()
    found = await find(reach, search.wider(max(IN_CALENDAR, search.limit)))
    listed = found.schedules[: search.limit]
    is_more = len(found.schedules) > len(listed)
    runs = await reach.last_runs(listed, MOST)
    days = await asyncio.to_thread(calendar.days_of, found.schedules, now, zone)
    return {
        "rows": [Row(each, next_run(each), cells(runs[each.id])) for each in listed],
        "next": listed[-1].id if is_more else found.next,
        "days": days,
        "in_calendar": len(found.schedules),
    }


def has_agent(view: View) -> bool:
    """Whether there is somebody to do what people ask for in words."""
    service = view.service
    return (service.settings.agent or service.holdfast.registry.default_agent) is not None
