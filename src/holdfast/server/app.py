"""The service as an ASGI app.

    app = create_app(holdfast)      # uvicorn module:app

From the outside in: security headers, problems, access, limits, then FastAPI's router. All of it is
plain ASGI, so that streams and long polls pass through untouched. Nothing runs in the background
and nothing is opened before the first request: `running` does that for `holdfast server`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from holdfast.app import Holdfast
from holdfast.server import events, openapi
from holdfast.server.access import Access
from holdfast.server.answers import answer
from holdfast.server.headers import Headers
from holdfast.server.limits import Limits
from holdfast.server.problems import Problems, Refused
from holdfast.server.routes import (
    actions,
    assistant,
    budgets,
    calendars,
    dead_letters,
    deliveries,
    emit,
    execute,
    executions,
    health,
    inbox,
    limits,
    metrics,
    queues,
    recipients,
    schedules,
    submit,
    tasks,
    tokens,
    workers,
    workers_http,
)
from holdfast.server.service import Service
from holdfast.timers.arming import Fire
from holdfast.worker.maintenance.loop import Agent
from holdfast.worker.version import version

ROUTERS = (
    submit.routes.router,  # first: it is asked for most
    actions.routes.router,
    tasks.routes.router,
    events.routes.router,
    queues.routes.router,
    limits.routes.router,
    calendars.routes.router,
    schedules.routes.router,
    assistant.routes.router,
    executions.routes.router,
    budgets.routes.router,
    workers.routes.router,
    workers_http.routes.router,
    dead_letters.routes.router,
    deliveries.routes.router,
    inbox.routes.router,
    recipients.routes.router,
    recipients.router,
    emit.routes.router,
    execute.routes.router,
    tokens.routes.router,
    metrics.routes.router,
    health.router,
)


def create_app(holdfast: Holdfast, *, execute: Fire | None = None) -> FastAPI:
    """Serve an app: its tasks can be submitted and seen, its store's workers can work.

    `execute` does what is due under the key that a timer called with; by default what the app's
    own `wake_ups` know of.

    `app.state.holdfast` is the app, `app.state.stopping` an event that ends long polls and streams,
    `app.state.beside` are agents that whoever runs it keeps at work beside the maintenance.
    """
    holdfast.load_tasks()
    service = Service(holdfast, execute)
    app = FastAPI(
        title="Holdfast",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(Headers),
            Middleware(Problems),
            Middleware(Access, check=service.check, good=service.good, brake=service.brake),
            Middleware(Limits, settings=holdfast.settings, windows=service.windows),
        ],
        exception_handlers={HTTPException: _refuse_http, RequestValidationError: _refuse_form},
    )
    app.state.holdfast = holdfast
    app.state.service = service
    app.state.stopping = asyncio.Event()
    app.state.beside = list[Agent]()
    for router in ROUTERS:
        # Not `include_router`: they have full paths, and need no second matching.
        app.router.routes.extend(router.routes)
    _add_page(app, holdfast)
    return app


def _add_page(app: FastAPI, holdfast: Holdfast) -> None:
    """`/openapi.json`, made when it is first asked for: by then the app's tasks are defined."""
    made: dict[int, dict[str, Any]] = {}

    def page() -> dict[str, Any]:
        known = len(holdfast.registry)
        if known not in made:
            made[known] = openapi.page(app, holdfast, version())
        return made[known]

    async def get_page(request: Request) -> Response:
        return answer(page())

    app.openapi = page  # type: ignore[method-assign] # as FastAPI documents it
    app.add_route("/openapi.json", get_page, methods=["GET"], include_in_schema=False)


async def _refuse_http(request: Request, error: Exception) -> Response:
    """What the framework itself refuses, in our form."""
    assert isinstance(error, HTTPException)
    raise Refused(error.status_code, "refused", str(error.detail), headers=error.headers) from None


async def _refuse_form(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:])
    raise Refused(422, "invalid_request", f"{field}: {first['msg']}", field=field) from None
