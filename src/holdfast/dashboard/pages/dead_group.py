"""One group of dead letters: its tasks, each of which can be started again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import State
from holdfast.dashboard.commands import curl
from holdfast.dashboard.dead_groups import MOST, Group, grouped
from holdfast.dashboard.dead_search import read_dead
from holdfast.dashboard.page import READ, STEER, STEER_ONE, Done, Form, Page, Shown, View
from holdfast.errors import InvalidTransition
from holdfast.server.pages import read_page

page = Page("/dead-letters/{group}", "dead_group.html", "Dead letters", rule=READ)

SHOWN: Final = 100
ENDED_BADLY: Final = (State.DEAD_LETTER, State.FAILED)


@page.read
async def read(view: View) -> Shown:
    search = read_dead(view.query)
    reach = await view.reach()
    group = (await grouped(reach, search.which)).find(view.params["group"])
    tasks = await _tasks(view, group) if group else []
    return {
        "title": "Dead letters of " + group.name if group else "Dead letters",
        "group": group,
        "key": view.params["group"],
        "kept": search.kept,
        "tasks": tasks,
        "steered": {each["task_id"] for each in tasks if reach.may_steer(each["task_id"])},
        "most": MOST,
        "may_act": view.may(STEER),
        "curl": _curl(view, group) if group and not search.with_failed else "",
    }


@page.action("/dead-letters/{group}/{task_id}/replay", rule=STEER_ONE, back="/dead-letters/{group}")
async def replay(form: Form) -> Done:
    reach = await form.reach()
    task = await reach.get(form.params["task_id"])
    if task.state not in ENDED_BADLY:
        raise InvalidTransition(task.id, "replay", task.state, State.DEAD_LETTER)
    await reach.retry(task.id)
    to = form.url(f"/dead-letters/{form.params['group']}", **read_dead(form.query).kept)
    return Done(to=to, says=f"Task {task.id[:13]} starts again as soon as a worker is free.")


async def _tasks(view: View, group: Group) -> Sequence[Shown]:
    which = TaskFilter(ids=tuple(group.ids[:SHOWN]))
    reach = await view.reach()
    found = await read_page(reach, which, limit=SHOWN, after=None, order=Order.LAST_ENDED)
    tasks: Sequence[Shown] = (await view.service.view()).page(found)["tasks"]
    return tasks


def _curl(view: View, group: Group) -> str:
    """The nearest that the API has: of this task with errors of this type."""
    which = {"task_type": group.name, "error_type": group.error_type}
    body = {"filter": {name: text for name, text in which.items() if text}, "pace": 5.0}
    return curl(view, "POST", "/api/v1/dead-letters/replay", body=body)
