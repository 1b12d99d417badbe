"""Submitting a task anew with other arguments: a field for each, checked by the rules of a submit.

What is secret was never shown, so it is asked for again: whoever may change where a secret is sent
could read it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson
from starlette.datastructures import QueryParams

from holdfast.core.shown import MASK
from holdfast.core.task import Json, Task
from holdfast.dashboard.page import SUBMIT, Again, Done, Form, Page, Shown, View
from holdfast.dashboard.rendering import pretty
from holdfast.errors import HoldfastError
from holdfast.server.bodies import parse
from holdfast.server.problems import Refused, refusal_of

page = Page(
    "/tasks/{task_id}/edit", "resubmit.html", "Edit and submit anew", rule=SUBMIT, is_live=False
)

BEGINNING: Final = "argument."
MOST_SHOWN: Final = 64 * 1024
"""Characters of one argument that a field can hold well; what is larger is for the API."""
CARRIED: Final = ("queue", "priority", "owner", "tags", "required_capabilities")
"""What a new task takes over from the old one beside its arguments, where the old one has it."""


class Field(NamedTuple):
    """One argument as a text of JSON; `problem` is what is wrong with it."""

    name: str
    text: str
    is_secret: bool
    problem: str = ""


@page.read
async def read(view: View) -> Shown:
    task = await (await view.reach()).get(view.params["task_id"])
    shown = (await view.service.view()).task(task)
    return _shown(task, shown, _fields(shown["parameters"]))


@page.action("/tasks/{task_id}/edit", rule=SUBMIT)
async def submit(form: Form) -> Done | Again:
    reach = await form.reach()
    task = await reach.get(form.params["task_id"])
    shown = (await form.service.view()).task(task)
    fields, values = _read(form.words, shown["parameters"])
    if any(field.problem for field in fields):
        return Again(shown=_shown(task, shown, fields))
    try:
        part = reach.bounded(form.service.submissions.part(_body(shown, values), is_large=True))
        added = (await reach.submit_many([part], None))[0]
    except (HoldfastError, Refused) as error:
        return Again(shown=_with_problems(task, shown, fields, error))
    says = "This is the new task." if added.created else "Its key belongs to this task already."
    return Done(to=form.url(f"/tasks/{added.task_id}"), says=says)


def _shown(task: Task, shown: Mapping[str, Json], fields: list[Field], problem: str = "") -> Shown:
    return {
        "task": shown,
        "title": f"Edit {task.name}",
        "fields": fields,
        "problem": problem,
        "carried": {word: shown[word] for word in CARRIED if shown[word]},
    }


def _fields(parameters: Json) -> list[Field]:
    if not isinstance(parameters, dict):
        raise Refused(409, "unsupported", "the arguments of this task are not JSON by name")
    fields = []
    for name, value in parameters.items():
        text, is_secret = pretty(value), _has_secret(value)
        if len(text) > MOST_SHOWN:
            raise Refused(409, "unsupported", f"{name} is too large to be edited here; use the API")
        fields.append(Field(name, "" if value == MASK else text, is_secret))
    return fields


def _has_secret(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_has_secret, value.values()))
    return any(map(_has_secret, value)) if isinstance(value, list) else value == MASK


def _read(words: QueryParams, parameters: Json) -> tuple[list[Field], dict[str, Json]]:
    """The fields as they were sent, and the values of those that are JSON. Empty is left out."""
    fields, values = [], dict[str, Json]()
    for before in _fields(parameters):
        text = words.get(f"{BEGINNING}{before.name}", "")
        problem = ""
        if text.strip():
            try:
                values[before.name] = parse(text.encode(errors="surrogatepass"))
            except Refused as refused:
                problem = _not_json(refused.detail, text)
        if before.is_secret and not problem and _has_secret(values.get(before.name, MASK)):
            problem = "This is secret and was not shown: type it again."
        fields.append(before._replace(text=text, problem=problem))
    return fields, values


def _not_json(detail: str, text: str) -> str:
    quoted = orjson.dumps(text.strip()).decode() if text.strip().isprintable() else '"…"'
    hint = f" Text needs quotes: {quoted}" if len(quoted) < 80 else " Text needs quotes."
    return detail.removeprefix("the body is ").capitalize() + "." + hint


def _body(shown: Mapping[str, Json], values: dict[str, Json]) -> dict[str, Any]:
    """The submit of the new task, in the words of the API."""
    body = {"task_type": shown["task_type"], "parameters": values}
    for word in CARRIED:
        value = shown[word]
        if value:
            body[word] = list(value) if isinstance(value, tuple) else value
    return body


def _with_problems(
    task: Task, shown: Mapping[str, Json], fields: list[Field], error: HoldfastError | Refused
) -> Shown:
    """The form again: each problem at the field that is to blame, what is left above them."""
    refused = error if isinstance(error, Refused) else refusal_of(error)
    if refused.status >= 500 or refused.status == 403:
        raise error
    found: dict[str, str] = {}
    for problem in refused.extra.get("errors", ()):
        name = problem["field"].removeprefix("parameters.").partition(".")[0].partition("[")[0]
        found.setdefault(name, problem["message"])
    marked = [field._replace(problem=found.pop(field.name, "")) for field in fields]
    is_placed = any(field.problem for field in marked) and not found
    return _shown(task, shown, marked, "" if is_placed else refused.detail)
