"""Making and editing a schedule, with its next runs before anything is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from holdfast.core.task import Json
from holdfast.dashboard.page import STEER, SUBMIT, Again, Done, Form, Page, Shown, View
from holdfast.dashboard.pages.schedules import has_agent
from holdfast.dashboard.problems import NONE, Problems
from holdfast.dashboard.schedule_form import (
    DEFAULTS,
    EDIT,
    NEW,
    Part,
    changed_body,
    fields_of,
    known_tasks,
    new_body,
    problems_in,
    rule_body,
    texts_in,
    texts_of,
)
from holdfast.dashboard.schedule_paths import path_of
from holdfast.errors import HoldfastError
from holdfast.recurrence import Schedule
from holdfast.schedules.previews import preview_of
from holdfast.schedules.rule_words import rule_of
from holdfast.server.models.schedules import ChangedSchedule, NewSchedule
from holdfast.server.problems import Refused
from holdfast.server.routes.schedules import changed, created
from holdfast.server.shape import Shape

create = Page("/schedules/new", "schedule_edit.html", "New schedule", rule=SUBMIT, is_live=False)
edit = Page(
    "/schedules/{name}/edit", "schedule_edit.html", "Edit schedule", rule=STEER, is_live=False
)

MAKE: Final = Shape(NewSchedule)
CHANGE: Final = Shape(ChangedSchedule)
SHOWN: Final = 10

Texts = Mapping[str, str]


@create.read
async def read_new(view: View) -> Shown:
    texts = {field.name: DEFAULTS.get(field.name, "") for field in fields_of(NEW)}
    return _new(view, texts | {name: view.query[name] for name in texts if name in view.query})


@create.action("/schedules/new", rule=SUBMIT)
async def make(form: Form) -> Done | Again:
    texts = texts_in(form.words, NEW)
    body, problems = new_body(texts)
    if not problems:
        try:
            series = await created(form.service, await form.schedules(), MAKE.read(body))
        except (HoldfastError, Refused) as error:
            problems = problems_in(error, NEW)
        else:
            says = "This is the new schedule. It runs from now on."
            return Done(to=form.url(path_of(series.id)), says=says)
    return Again(shown=_new(form, texts, problems))


@create.action("/schedules/new/preview", rule=SUBMIT)
async def preview_new(form: Form) -> Again:
    texts = texts_in(form.words, NEW)
    preview, problems = await previewed(form, texts, NEW)
    shown = _new(form, texts, problems) | {"preview": preview}
    return Again(shown=shown | {"status": 422 if problems else 200})


@edit.read
async def read_edit(view: View) -> Shown:
    _, texts = await _before(view)
    return _edit(view, texts)


@edit.action("/schedules/{name}/edit", rule=STEER)
async def change(form: Form) -> Done | Again:
    name, (_, before) = form.params["name"], await _before(form)
    texts = texts_in(form.words, EDIT)
    body, problems = changed_body(texts, before)
    if not body and not problems:
        return Done(to=form.url(path_of(name)), says="Nothing was changed.")
    if not problems:
        try:
            await changed(form.service, await form.schedules(), name, CHANGE.read(body))
        except (HoldfastError, Refused) as error:
            problems = problems_in(error, EDIT)
        else:
            return Done(to=form.url(path_of(name)), says="Changed. It goes on from now.")
    return Again(shown=_edit(form, texts, problems))


@edit.action("/schedules/{name}/edit/preview", rule=STEER)
async def preview_edit(form: Form) -> Again:
    before, _ = await _before(form)
    texts = texts_in(form.words, EDIT)
    preview, problems = await previewed(form, texts, EDIT, before)
    shown = _edit(form, texts, problems) | {"preview": preview}
    return Again(shown=shown | {"status": 422 if problems else 200})


async def previewed(
    view: View, texts: Texts, parts: Sequence[Part], before: Schedule | None = None
) -> tuple[Json, Problems]:
    """The next runs of the rule in these fields, or what is wrong with it."""
    body, problems = rule_body(texts)
    if problems:
        return None, problems
    now = await (await view.verbs()).now()
    try:
        rule = await asyncio.to_thread(partial(rule_of, CHANGE.read(body), before=before))
        return await asyncio.to_thread(partial(preview_of, rule, SHOWN, after=now)), NONE
    except (HoldfastError, Refused) as error:
        return None, problems_in(error, parts)


async def _before(view: View) -> tuple[Schedule, dict[str, str]]:
    """The rule as it stands, and all of the schedule in the fields."""
    reach = await view.schedules()
    series = await reach.get(view.params["name"])
    shown: Any = reach.shown(series)
    return series.rule, texts_of(shown, series.rule)


def _new(view: View, texts: Texts, problems: Problems = NONE) -> Shown:
    return _shown(view, NEW, texts, problems) | {
        "name": None,
        "action": "/schedules/new",
        "back": "/schedules",
        "has_agent": has_agent(view),
    }


def _edit(view: View, texts: Texts, problems: Problems = NONE) -> Shown:
    name = view.params["name"]
    return _shown(view, EDIT, texts, problems) | {
        "name": name,
        "action": f"/schedules/{name}/edit",
        "back": path_of(name),
        "has_agent": False,
    }


def _shown(view: View, parts: Sequence[Part], texts: Texts, problems: Problems) -> Shown:
    hidden = {"owner"} if view.token.bounds.owner is not None else set()
    return {
        "parts": [
            part._replace(fields=[field for field in part.fields if field.name not in hidden])
            for part in parts
        ],
        "open_parts": [part.title for part in parts if _is_used(part, texts, problems)],
        "texts": texts,
        "problems": problems,
        "preview": None,
        "known_tasks": known_tasks(_names(view)),
    }


def _is_used(part: Part, texts: Texts, problems: Problems) -> bool:
    """Whether something is said in it, or is wrong."""
    names = [field.name for field in part.fields]
    return any(
        texts[name] not in ("", DEFAULTS.get(name)) or name in problems.fields for name in names
    )


def _names(view: View) -> Sequence[str]:
    """Tasks to choose from; what there is beside its own is nothing for a bound token."""
    bounds = view.token.bounds
    if bounds.is_narrow:
        return sorted(bounds.names or ())
    return view.service.holdfast.registry.names()
