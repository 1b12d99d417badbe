"""One schedule: all about it, what became of its runs, the next ones, and what can be done."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from holdfast.dashboard.moments import read_local
from holdfast.dashboard.page import READ, STEER, SUBMIT, Again, Done, Form, Page, Shown, View
from holdfast.dashboard.problems import NONE, Problems, problems_of
from holdfast.dashboard.run_cells import took
from holdfast.dashboard.schedule_paths import path_of
from holdfast.errors import InvalidOption
from holdfast.recurrence import PreviewRow
from holdfast.schedules.reading import LONGEST_TEXT
from holdfast.schedules.series import Series, Status
from holdfast.server.models.schedules import RunSearch
from holdfast.server.routes.schedules import not_active
from holdfast.server.shape import Shape

page = Page("/schedules/{name}", "schedule.html", "Schedule", rule=READ)
same = Page("/schedules/{name}/details", "schedule.html", "Schedule", rule=READ)
"""The same page, for a schedule whose name is a path of ours."""

SEARCH: Final = Shape(RunSearch)
RUNS: Final = 25
NEXT: Final = 10
GOES_ON: Final = (Status.ACTIVE, Status.PAUSED)


@page.read
@same.read
async def read(view: View) -> Shown:
    return await shown_of(view)


async def shown_of(view: View, problems: Problems = NONE) -> Shown:
    """All of a schedule; `problems` are those of the form that was sent."""
    reach = await view.schedules()
    series = await reach.get(view.params["name"])
    asked = SEARCH.read_query(view.query)
    after = asked.get("after", "")
    runs, following = await reach.run_page(series, after=after, limit=RUNS)
    state: Any = reach.shown(series)
    return {
        "title": series.about.title or series.id,
        "schedule": state,
        "path": path_of(series.id),
        "runs": runs,
        "took": took,
        "after": after,
        "next": following,
        "coming": await asyncio.to_thread(_coming, series, await (await view.verbs()).now()),
        "may_steer": view.may(STEER),
        "may_fire": view.may(SUBMIT),
        "goes_on": series.status in GOES_ON,
        "problems": problems,
        "given": view.words if isinstance(view, Form) else {},
    }


def _coming(series: Series, now: Any) -> list[tuple[PreviewRow, bool]]:
    """The next runs of the rule, and whether each is left out."""
    if series.status not in GOES_ON:
        return []
    rows = series.rule.preview(NEXT, after=now)
    return [(row, row.utc in series.skips) for row in rows]


def back(form: Form, says: str) -> Done:
    return Done(to=form.url(path_of(form.params["name"])), says=says)


@page.action("/schedules/{name}/pause", rule=STEER)
async def pause(form: Form) -> Done | Again:
    reach, name = await form.schedules(), form.params["name"]
    series = await reach.get(name)
    until, note = form.words.get("until", "").strip(), form.words.get("note", "").strip()
    try:
        at = read_local("until", until, series.rule.tz) if until else None
        if len(note) > LONGEST_TEXT:
            raise InvalidOption("note", f"expected {LONGEST_TEXT:,} characters at most")
        await reach.pause(name, until=at, note=note or None)
    except InvalidOption as error:
        problems = problems_of(not_active(error), ("until", "note"))
        return Again(shown=await shown_of(form, problems))
    return back(form, "Paused until then." if until else "Paused until somebody resumes it.")


@page.action("/schedules/{name}/resume", rule=STEER, back="/schedules/{name}/details")
async def resume(form: Form) -> Done:
    await _steered(form, "resume")
    return back(form, "It goes on from now.")


@page.action("/schedules/{name}/skip", rule=STEER, back="/schedules/{name}/details")
async def skip(form: Form) -> Done:
    await _steered(form, "skip")
    return back(form, "The next run is left out.")


async def _steered(form: Form, verb: str) -> None:
    reach = await form.schedules()
    try:
        await getattr(reach, verb)(form.params["name"])
    except InvalidOption as error:
        raise not_active(error) from None


@page.action("/schedules/{name}/trigger", rule=SUBMIT, back="/schedules/{name}/details")
async def trigger(form: Form) -> Done:
    task_id = await (await form.schedules()).trigger(form.params["name"])
    return back(form, f"It runs now, as task {task_id}.")
