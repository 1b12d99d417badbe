"""Workers, as operators see them. (What HTTP workers themselves call is in `workers_http`.)"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.store_answers import WORKER, DrainAnswer, WorkerList
from holdfast.errors import WorkerNotFound
from holdfast.server.answers import answer
from holdfast.server.documented import WORKER_ID, documented
from holdfast.server.models.tasks import NoQuery
from holdfast.server.service import service_of
from holdfast.server.shape import Shape

router = APIRouter(tags=["workers"])

PLAIN = Shape(NoQuery)


@router.get("/api/v1/workers", **documented("List workers", answers=WorkerList, query=PLAIN))
async def list_workers(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    client = await service_of(request).verbs()
    return answer({"workers": [WORKER.write(each) for each in await client.workers()]})


@router.post(
    "/api/v1/workers/{worker_id}/drain",
    **documented(
        "Ask a worker to finish what it has and leave",
        answers=DrainAnswer,
        query=PLAIN,
        refuses=(404,),
        paths=WORKER_ID,
    ),
)
async def drain_worker(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    worker_id: str = request.path_params["worker_id"]
    client = await service_of(request).verbs()
    if not await client.ask_to_drain(worker_id):
        raise WorkerNotFound(worker_id)
    return answer({"worker_id": worker_id, "drain_requested": True})
