"""Whether the process lives, and whether it can serve. Open to everybody, and so without details.

`ready` is about what this server needs to do its own work: the store, with the right schema. What a
whole service needs beside that (somebody to run tasks, wake-ups) is named in `missing` and does not
make a load balancer turn away: submits are safe without a worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.fleet import ALIVE, for_tasks
from holdfast.core.task import Json
from holdfast.errors import HoldfastError, SchemaMismatch
from holdfast.server.answers import answer
from holdfast.server.documented import schema_of
from holdfast.server.models.answers import Health, Readiness
from holdfast.server.service import Service

router = APIRouter(tags=["health"])

PATIENCE: Final = 5.0
"""A store that takes longer to answer is as good as away."""
ABSENT: Final[Mapping[str, Json]] = {
    "ready": False,
    "missing": ["store"],
    "store": "unavailable",
    "schema_version": None,
    "dispatcher": None,
    "workers_alive": 0,
}


@router.get(
    "/healthz",
    operation_id="healthz",
    summary="The process answers",
    response_model=None,
    responses={200: {"content": {"application/json": {"schema": schema_of(Health)}}}},
)
async def healthz(request: Request) -> Response:
    return answer({"status": "ok"})


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="The store can be reached, and what else is missing",
    response_model=None,
    responses={
        code: {
            "description": text,
            "content": {"application/json": {"schema": schema_of(Readiness)}},
        }
        for code, text in {200: "It can serve.", 503: "It cannot."}.items()
    },
)
async def readyz(request: Request) -> Response:
    service: Service = request.app.state.service
    found = await service.readiness.get(lambda: look(service))
    return answer(found, 200 if found["ready"] else 503)


async def look(service: Service) -> Mapping[str, Json]:
    """What there is and what is missing."""
    try:
        async with asyncio.timeout(PATIENCE):
            client = await service.verbs()
            now, lease = await client.now(), client.settings.lease
            workers = [
                w.seen(now=now, lease=lease) for w in for_tasks(await client.store.workers())
            ]
            version, dispatcher = await client.schema_version(), await client.dispatcher.mode()
    except SchemaMismatch as error:
        wrong = {"missing": ["schema"], "store": "schema_mismatch", "schema_version": error.found}
        return {**ABSENT, **wrong}
    except (HoldfastError, TimeoutError):
        return ABSENT
    alive = sum(worker.status in ALIVE for worker in workers)
    missing = [*_missing_wake_ups(dispatcher, service), *([] if alive else ["workers"])]
    return {
        "ready": True,
        "missing": missing,
        "store": "ok",
        "schema_version": version,
        "dispatcher": dispatcher,
        "workers_alive": alive,
    }


def _missing_wake_ups(mode: str, service: Service) -> list[Json]:
    """`redis` if workers are to be woken through it and are not; `wake_ups` if they only look."""
    redis = service.settings.redis_url is not None and mode != "redis"
    return [*(["redis"] if redis else []), *(["wake_ups"] if mode == "poll" else [])]
