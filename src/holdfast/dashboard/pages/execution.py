"""One execution: what it made, what it said meanwhile, what it used, and who got its result."""

from __future__ import annotations

from typing import Any, Final

from holdfast.core.task import State, TaskId
from holdfast.dashboard.page import READ, STEER_ONE, Done, Form, Page, Shown, View
from holdfast.dashboard.pages.executions import took
from holdfast.errors import TaskNotFound
from holdfast.server.reach import Reach

page = Page("/executions/{execution_id}", "execution.html", "Execution", rule=READ)

GIVEN_UP: Final = (State.DEAD_LETTER, State.FAILED, State.CANCELLED)


@page.read
async def read(view: View) -> Shown:
    found: Any = await (await view.agents()).execution(view.params["execution_id"])
    reach = await view.reach()
    replayable = set()
    for each in found["deliveries"]:
        if each["status"] in GIVEN_UP and await _may_replay(view, reach, each["task_id"]):
            replayable.add(each["task_id"])
    return {
        "title": found["title"] or found["schedule"],
        "execution": found,
        "took": took(found),
        "replayable": replayable,
    }


@page.action("/executions/{execution_id}/deliveries/{task_id}/replay", rule=STEER_ONE)
async def replay(form: Form) -> Done:
    execution_id, task_id = form.params["execution_id"], form.params["task_id"]
    found: Any = await (await form.agents()).execution(execution_id)
    if task_id not in {each["task_id"] for each in found["deliveries"]}:
        raise TaskNotFound(TaskId(task_id))
    await (await form.reach()).retry(task_id)
    back = form.url(f"/executions/{found['id']}")
    return Done(to=back, says="It is delivered again as soon as a worker is free.")


async def _may_replay(view: View, reach: Reach, task_id: str) -> bool:
    """Whether this token may, and the delivery is there for it."""
    if not (view.may(STEER_ONE) and reach.may_steer(task_id)):
        return False
    try:
        await reach.get(task_id)
    except TaskNotFound:
        return False
    return True
