"""Workers, as operators see them. (What HTTP workers themselves call is in `workers_http`.)"""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.store_answers import WORKER, DrainAnswer, WorkerList
from holdfast.errors import WorkerNotFound
from holdfast.server.answers import answer
from holdfast.server.models.tasks import NoQuery
from holdfast.server.routing import ApiRequest, Routes

routes = Routes("workers")

WORKERS = "/api/v1/workers"


@routes("GET", WORKERS, "List workers", answers=WorkerList)
async def list_workers(request: ApiRequest[NoQuery]) -> Response:
    client = await request.verbs()
    return answer({"workers": [WORKER.write(each) for each in await client.workers()]})


@routes(
    "POST",
    f"{WORKERS}/{{worker_id}}/drain",
    "Ask a worker to finish what it has and leave",
    answers=DrainAnswer,
)
async def drain_worker(request: ApiRequest[NoQuery]) -> Response:
    client, worker_id = await request.verbs(), request.named
    if not await client.ask_to_drain(worker_id):
        raise WorkerNotFound(worker_id)
    return answer({"worker_id": worker_id, "drain_requested": True})
