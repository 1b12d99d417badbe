"""Finds a task by its id, by how that begins, or by its key."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from holdfast.core.ids import is_task_id, just_before
from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import Task
from holdfast.dashboard.page import READ, Done, Page, Shown, View
from holdfast.definitions.readers import LONGEST_KEY
from holdfast.server.reach import Reach

page = Page("/find", "find.html", "Find", rule=READ, is_live=False)

SHORTEST: Final = 8
"""Fewer digits of an id are a time of more than a minute, and no id."""
MOST: Final = 20

_BEGINNING: Final = re.compile(rf"[0-9a-f]{{{SHORTEST},32}}", re.ASCII).fullmatch


@page.read
async def read(view: View) -> Shown | Done:
    wanted = view.query.get("q", "").strip()
    if is_task_id(wanted.lower()):
        return Done(to=view.url(f"/tasks/{wanted.lower()}"))
    found = await _found(await view.reach(), wanted)
    if len(found) == 1:
        return Done(to=view.url(f"/tasks/{found[0].id}"))
    tasks = [(await view.service.view()).task(task) for task in found]
    return {"wanted": wanted, "tasks": tasks}


async def _found(reach: Reach, wanted: str) -> list[Task]:
    if not wanted or len(wanted) > LONGEST_KEY or "\0" in wanted:
        return []
    digits = wanted.lower().replace("-", "")
    found = await _beginning_with(reach, digits) if _BEGINNING(digits) else []
    return found or await _with_key(reach, wanted)


async def _beginning_with(reach: Reach, digits: str) -> list[Task]:
    """Ids are in order: those that begin so are the first after the last that could not."""
    page = await reach.list(
        TaskFilter(), limit=MOST, after=f"oldest-{just_before(digits)}", order=Order.OLDEST
    )
    return [task for task in page.tasks if task.id.replace("-", "").startswith(digits)]


async def _with_key(reach: Reach, key: str) -> list[Task]:
    ways = TaskFilter(idempotency_key=key), TaskFilter(unique_key=key)
    pages = await asyncio.gather(
        *(reach.list(way, limit=MOST, after=None, order=Order.NEWEST) for way in ways)
    )
    return next((list(page.tasks) for page in pages if page.tasks), [])
