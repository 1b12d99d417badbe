"""The dashboard as an app: in front of the API, or mounted in an app of somebody else's."""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.app import Holdfast
from holdfast.dashboard.fleet_trends import FleetTrends
from holdfast.dashboard.overview import Trends
from holdfast.dashboard.sessions import SessionKeeper
from holdfast.dashboard.site import Site
from holdfast.server import app as api
from holdfast.server.access import methods_of
from holdfast.server.service import Service
from holdfast.worker.maintenance.loop import Agent, keep_ticking

FOR_PROGRAMS: Final = ("/api/", "/internal/", "/v1/")
"""Below these everything is the API's, also what is not there: programs want their own answers."""
MOUNTED_STREAM: Final = 15.0
"""Seconds that a stream lasts in somebody else's app: nobody tells us when that is to stop."""


def create_app(holdfast: Holdfast, *, trends: Trends | None = None) -> FastAPI:
    """The API with the dashboard at `/`. Without `trends`, the fleet's are told."""
    app = api.create_app(holdfast)
    site, agents = _site(app.state.service, trends, lambda: app.state.stopping)
    app.state.beside += agents
    app.add_middleware(PagesFirst, pages=site)
    return app


def holdfast_dashboard(holdfast: Holdfast, *, trends: Trends | None = None) -> ASGIApp:
    """The dashboard alone, to be mounted: `app.mount("/tasks", holdfast_dashboard(my_app))`."""
    holdfast.load_tasks()
    stopping = asyncio.Event()
    site, agents = _site(Service(holdfast), trends, lambda: stopping, longest_stream=MOUNTED_STREAM)
    return _WithAgents(site, agents)


def _site(
    service: Service, trends: Trends | None, stopping: object, **words: float
) -> tuple[Site, list[Agent]]:
    agents: list[Agent] = [SessionKeeper(service.verbs)]
    if trends is None:
        trends = fleet = FleetTrends(service)
        agents.append(fleet)
    return Site(service, trends, stopping, **words), agents  # type: ignore[arg-type]


class PagesFirst:
    """Middleware: what is not the API's is a page's."""

    def __init__(self, app: ASGIApp, pages: ASGIApp) -> None:
        self._app = app
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_page = (
            scope["type"] == "http"
            and not path.startswith(FOR_PROGRAMS)
            and methods_of(path) is None
        )
        await (self._pages if is_page else self._app)(scope, receive, send)


class _WithAgents:
    """The site, and its agents from the first request on: a mounted app hears of no start."""

    def __init__(self, site: ASGIApp, agents: list[Agent]) -> None:
        self._site = site
        self._agents = agents
        self._ticking: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._ticking:
            self._ticking = [asyncio.ensure_future(keep_ticking(each)) for each in self._agents]
        await self._site(scope, receive, send)
