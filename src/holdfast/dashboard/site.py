"""The pages as an ASGI app: who asks, may they, what do they see, what do they want done.

From the outside in: headers, failures as pages, limits on bodies, then the router. Every page and
every form has a rule; a request that no session stands behind ends at the login.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from holdfast.core.token import Scope as TokenScope
from holdfast.core.token import Token
from holdfast.dashboard import cookies, login
from holdfast.dashboard.failures import Failures
from holdfast.dashboard.forms import read_form, refuse_forged, refuse_strangers
from holdfast.dashboard.headers import PageHeaders
from holdfast.dashboard.live import LivePages
from holdfast.dashboard.navigation import current, ways
from holdfast.dashboard.overview import Trends
from holdfast.dashboard.page import Action, Again, Done, Form, Page, Shown, View, url
from holdfast.dashboard.pages import PAGES
from holdfast.dashboard.rendering import fragments, whole
from holdfast.dashboard.sessions import Session, Sessions
from holdfast.dashboard.static_files import get_static
from holdfast.dashboard.streams import Streams
from holdfast.errors import HoldfastError
from holdfast.server.access import refuse_token
from holdfast.server.events import LONGEST
from holdfast.server.limits import Limits
from holdfast.server.problems import Refused, refusal_of
from holdfast.server.service import Service

LIVE: Final = "/live"
SAID_ON_THE_PAGE: Final = (409, 422)
"""Refusals that are no page of their own: whoever pressed the button sees them where it was."""


class Site:
    """The dashboard of one served app."""

    def __init__(
        self,
        service: Service,
        trends: Trends,
        stopping: Callable[[], asyncio.Event],
        *,
        longest_stream: float = LONGEST,
    ) -> None:
        self.service = service
        self.trends = trends
        self.sessions = Sessions(service.verbs)
        self.live = LivePages()
        self.pages = {page.path: page for page in PAGES}
        self._streams = Streams(self, stopping, longest_stream)
        router = Router(self._routes(), redirect_slashes=False, default=_nothing_here)
        limited = Limits(router, service.settings, service.windows)
        self._app = PageHeaders(Failures(limited))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    def _routes(self) -> list[Route]:
        routes = [Route("/static/{name}", get_static), *login.routes(self)]
        for page in PAGES:
            for action in page.actions:
                act = partial(self._act, page, action)
                routes.append(Route(action.path, act, methods=["POST"]))
            routes.append(Route(page.path, partial(self._show, page)))
            if page.is_live:
                routes.append(Route(LIVE + page.path, partial(self._streams.answer, page)))
        return routes

    async def session_of(self, request: Request) -> Session | None:
        secret = cookies.secret_of(request)
        return None if secret is None else await self.sessions.find(secret)

    def view(self, request: Request, token: Token, kind: type[View] = View, **more: Any) -> View:
        """What somebody looks at with this request."""
        return kind(
            service=self.service,
            token=token,
            trends=self.trends,
            root=request.scope.get("root_path", ""),
            host=request.headers.get("host", ""),
            params=request.path_params,
            query=request.query_params,
            **more,
        )

    def admit(self, token: Token, page: Page | Action) -> None:
        """`Refused` unless the token may come in, and has not come too often."""
        refuse_token(token, page.rule)
        self.service.windows.ask(token)

    async def _show(self, page: Page, request: Request) -> Response:
        session = await self.session_of(request)
        if session is None:
            return login.to_login(request)
        self.admit(session.token, page)
        view = self.view(request, session.token)
        shown = await page.reader(view)
        if isinstance(shown, Done):
            return self._done(request, session, shown)
        return self._whole(request, session, page, view, shown)

    async def _act(self, page: Page, action: Action, request: Request) -> Response:
        refuse_strangers(request)
        session = await self.session_of(request)
        words = await read_form(request)
        if session is None:
            return RedirectResponse(url(request.scope.get("root_path", ""), "/login"), 303)
        refuse_forged(request, words, session)
        self.admit(session.token, action)
        form = self.view(request, session.token, Form, words=words)
        assert isinstance(form, Form)
        try:
            done = await action.act(form)
        except (HoldfastError, Refused) as error:
            done = _said_there(error, action, form)
        self.service.gauge.forget()  # whoever changed something wants to see it
        self.live.forget()
        if isinstance(done, Again):
            return self._whole(request, session, page, form, {"status": 422, **done.shown})
        return self._done(request, session, done)

    def _done(self, request: Request, session: Session, done: Done) -> Response:
        response = RedirectResponse(done.to, 303)
        if done.says:
            cookies.give_flash(response, request, session, cookies.Flash(done.says, done.is_bad))
        return response

    def _whole(
        self, request: Request, session: Session, page: Page, view: View, shown: Shown
    ) -> Response:
        frame = {
            **self.common(page, view),
            "token": session.token,
            "csrf": session.csrf,
            "flash": cookies.flash_of(request, session),
            "ways": list(ways(view, self.pages)),
            "current": current(page.path),
            "live": _live_path(request, page) if page.is_live else None,
        }
        response = HTMLResponse(whole(page.template, frame | shown), shown.get("status", 200))
        cookies.take_flash(response, request)
        return response

    def common(self, page: Page, view: View) -> Shown:
        """What every template has, those of fragments too."""
        return {
            "url": view.url,
            "title": page.title,
            "view": view,
            "may_submit": view.token.may(TokenScope.SUBMIT),
            "may_operate": view.token.may(TokenScope.OPERATE),
            "pages": self.pages,
        }

    def fragments(self, page: Page, view: View, shown: Shown) -> dict[str, str]:
        return dict(fragments(page.template, self.common(page, view) | shown))


def _live_path(request: Request, page: Page) -> str:
    root = request.scope.get("root_path", "")
    path: str = request.scope["path"].removeprefix(root)  # a URL made of it would end at a `?`
    query = request.url.query
    return url(root, LIVE + path) + (f"?{query}" if query else "")


def _said_there(error: HoldfastError | Refused, action: Action, form: Form) -> Done:
    """What went wrong, to be said on the page where the button was."""
    refused = error if isinstance(error, Refused) else refusal_of(error)
    if refused.status not in SAID_ON_THE_PAGE:
        raise error
    back = form.url(action.back.format_map(form.params))
    return Done(to=back, says=refused.detail, is_bad=True)


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    raise Refused(404, "not_found", "there is no such page")
