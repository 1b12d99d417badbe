"""Logging in with a token, and out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from holdfast.core.token import Scope, Token
from holdfast.dashboard import cookies
from holdfast.dashboard.forms import read_form, refuse_forged, refuse_strangers
from holdfast.dashboard.page import url
from holdfast.dashboard.rendering import whole

if TYPE_CHECKING:
    from holdfast.dashboard.site import Site

LONGEST: Final = 200
UNKNOWN: Final = (
    "This token opens nothing: it is malformed, unknown, expired or revoked. "
    "A token looks like hf_… and was shown once, when it was made."
)
BLIND: Final = (
    "This token has no scope read, and the dashboard is for looking. "
    "Make one: holdfast token create --scope read --scope operate"
)


def routes(site: Site) -> list[Route]:
    """`/login` and `/logout`."""

    async def get_login(request: Request) -> Response:
        if await site.session_of(request) is not None:
            return RedirectResponse(_next(request, request.query_params.get("next", "")), 303)
        return _page(request, request.query_params.get("next", ""))

    async def post_login(request: Request) -> Response:
        refuse_strangers(request)
        form = await read_form(request)
        token = await _token(site, form.get("token", ""))
        if token is None:
            site.service.brake.failed(request.client.host if request.client else "")
            return _page(request, form.get("next", ""), UNKNOWN, 401)
        if not token.may(Scope.READ):
            return _page(request, form.get("next", ""), BLIND, 403)
        await _end(site, request)
        response = RedirectResponse(_next(request, form.get("next", "")), 303)
        cookies.give_session(response, request, await site.sessions.begin(token))
        return response

    async def post_logout(request: Request) -> Response:
        refuse_strangers(request)
        form = await read_form(request)
        session = await site.session_of(request)
        if session is not None:
            refuse_forged(request, form, session)
            await site.sessions.end(session)
        response = RedirectResponse(url(_root(request), "/login"), 303)
        cookies.take_session(response, request)
        return response

    return [
        Route("/login", get_login, methods=["GET"]),
        Route("/login", post_login, methods=["POST"]),
        Route("/logout", post_logout, methods=["POST"]),
    ]


def to_login(request: Request) -> Response:
    """Where somebody is sent who is not logged in; from there they come back.

    A link on another site's page comes without our cookie, for it is SameSite=Strict; a page of
    our own that leads to the same place comes with it. So that one is shown first.
    """
    root = _root(request)
    if request.headers.get("sec-fetch-site") == "cross-site":
        return HTMLResponse(whole("moment.html", {"url": lambda path: url(root, path)}))
    path = request.url.path.removeprefix(root)
    wanted = path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(url(root, "/login", next=wanted if wanted != "/" else None), 303)


async def _token(site: Site, text: str) -> Token | None:
    text = text.strip()
    is_one = len(text) <= LONGEST and text.isascii()
    return await site.service.check(text) if is_one else None


async def _end(site: Site, request: Request) -> None:
    """Whoever logs in anew leaves no open session behind."""
    before = await site.session_of(request)
    if before is not None:
        await site.sessions.end(before)


def _page(request: Request, wanted: str, problem: str = "", status: int = 200) -> Response:
    root = _root(request)
    shown = {
        "url": lambda path: url(root, path),
        "title": "Log in",
        "next": wanted,
        "problem": problem,
    }
    return HTMLResponse(whole("login.html", shown), status)


def _next(request: Request, wanted: str) -> str:
    """The page that somebody wanted before they logged in: one of ours, or the first."""
    is_ours = wanted.startswith("/") and wanted.isprintable()
    is_elsewhere = wanted.startswith(("//", "/\\")) or "\\" in wanted
    return f"{_root(request)}{wanted}" if is_ours and not is_elsewhere else f"{_root(request)}/"


def _root(request: Request) -> str:
    root: str = request.scope.get("root_path", "")
    return root
