"""Running a schedule for a range that has passed: first how many runs that would be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from starlette.datastructures import QueryParams

from holdfast.dashboard.moments import read_local
from holdfast.dashboard.page import SUBMIT, Again, Done, Form, Page, Shown, View
from holdfast.dashboard.problems import NONE, Problems, problems_of
from holdfast.dashboard.schedule_paths import path_of
from holdfast.dashboard.words import plural
from holdfast.errors import HoldfastError, InvalidOption
from holdfast.schedules.book import MOST_BACKFILLED
from holdfast.schedules.series import Series
from holdfast.server.problems import Refused

page = Page(
    "/schedules/{name}/backfill", "schedule_backfill.html", "Backfill", rule=SUBMIT, is_live=False
)

FIELDS: Final = ("begin", "end")
EXAMPLES: Final = 5


class Range(NamedTuple):
    """From an instant up to another, which is not inside."""

    begin: datetime
    end: datetime


@page.read
async def read(view: View) -> Shown:
    series = await (await view.schedules()).get(view.params["name"])
    shown = _shown(series, view.query)
    if not any(view.query.get(name) for name in FIELDS):
        return shown
    try:
        runs = await _runs(view, series, _range(series, view.query))
    except InvalidOption as error:
        return shown | {"problems": problems_of(error, FIELDS), "status": 422}
    return shown | {"is_counted": True, "count": len(runs), "runs": runs[:EXAMPLES],
                    "last": runs[-1] if runs else None}  # fmt: skip


@page.action("/schedules/{name}/backfill", rule=SUBMIT)
async def fire(form: Form) -> Done | Again:
    reach, name = await form.schedules(), form.params["name"]
    series = await reach.get(name)
    try:
        asked = _range(series, form.words)
        made = await reach.backfill(name, asked.begin, asked.end, MOST_BACKFILLED)
    except (HoldfastError, Refused) as error:
        problems = problems_of(error, FIELDS)
        return Again(shown=_shown(series, form.words, problems))
    says = f"{plural(len(made), 'run')} fired." if made else "No run was fired: each had been."
    return Done(to=form.url(path_of(name)), says=says)


def _shown(series: Series, given: QueryParams, problems: Problems = NONE) -> Shown:
    return {
        "name": series.id,
        "title": f"Backfill {series.about.title or series.id}",
        "called": series.about.title or series.id,
        "words": series.rule.words,
        "tz": series.rule.tz,
        "path": path_of(series.id),
        "given": {name: given.get(name, "") for name in FIELDS},
        "problems": problems,
        "is_counted": False,
        "count": 0,
        "runs": [],
        "last": None,
    }


def _range(series: Series, words: QueryParams) -> Range:
    begin, end = (read_local(name, words.get(name, ""), series.rule.tz) for name in FIELDS)
    if begin >= end:
        raise InvalidOption("end", "expected a time after the first")
    return Range(begin, end)


async def _runs(view: View, series: Series, asked: Range) -> Sequence[datetime]:
    """What the rule says for the range, up to now."""
    now = await (await view.verbs()).now()
    end = max(asked.begin, min(asked.end, now))
    most = MOST_BACKFILLED + 1
    runs = await asyncio.to_thread(series.rule.between, asked.begin, end, limit=most)
    if len(runs) == most:
        said = f"there are more than {MOST_BACKFILLED:,} runs in this range; choose a shorter one"
        raise InvalidOption("end", said)
    return runs
