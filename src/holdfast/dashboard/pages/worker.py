"""One worker: how it is, what it runs, and asking it to finish and leave."""

from __future__ import annotations

from holdfast.core.fleet import ALIVE, WorkerInfo, shown_capabilities
from holdfast.core.query import Order, running_on
from holdfast.dashboard.commands import curl
from holdfast.dashboard.page import READ_ALL, STEER_ALL, Done, Form, Page, Shown, View
from holdfast.errors import WorkerNotFound
from holdfast.server.pages import read_page
from holdfast.server.problems import Refused

page = Page("/workers/{worker_id:text}", "worker.html", "Worker", rule=READ_ALL)

MOST = 100


@page.read
async def read(view: View) -> Shown:
    worker = await _worker(view)
    reach = await view.reach()
    which = running_on(worker.id)
    found = await read_page(reach, which, limit=MOST, after=None, order=Order.OLDEST)
    is_alive = worker.status in ALIVE
    return {
        "title": f"Worker {worker.id}",
        "worker": worker,
        "capabilities": shown_capabilities(worker.capabilities),
        "tasks": found.tasks,
        "has_more": found.next is not None,
        "is_alive": is_alive,
        "may_drain": view.may(STEER_ALL) and is_alive and not worker.drain_requested,
        "curl": curl(view, "POST", "/api/v1/workers/{}/drain", worker.id),
    }


@page.action("/workers/{worker_id:text}/drain", rule=STEER_ALL, back="/workers")
async def drain(form: Form) -> Done:
    worker_id = form.params["worker_id"]
    if "\0" in worker_id or not await (await form.verbs()).ask_to_drain(worker_id):
        said = f"no worker {worker_id[:200]!r} is alive, so there is none to drain"
        raise Refused(409, "worker_not_found", said)
    says = f"Worker {worker_id} was asked to finish what it has and leave."
    return Done(to=form.url(f"/workers/{worker_id}"), says=says)


async def _worker(view: View) -> WorkerInfo:
    numbers = await view.service.gauge.numbers(await view.verbs())
    wanted = view.params["worker_id"]
    found = next((each for each in numbers.workers if each.id == wanted), None)
    if found is None:
        raise WorkerNotFound(wanted)
    return found
