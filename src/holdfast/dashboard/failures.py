"""What goes wrong, as a page that says what to do next; for scripts, as the API's problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.dashboard.page import url
from holdfast.dashboard.rendering import whole
from holdfast.server.problems import Ended, Gone, Refused, response_of, told

COME_BACK: Final = 5
"""Seconds after which the page of a store that is away asks again by itself."""

ADVICE: Final[Mapping[int, tuple[str, str]]] = {
    400: ("This request makes no sense", "Go back and try again."),
    403: ("Not with this token", "Log in with a token that may do this."),
    404: ("There is nothing here", "It may have been forgotten, or never been there."),
    405: ("Not like this", "Open the page anew, and use its buttons."),
    409: ("This is not possible now", "Go back, reload, and look how it stands."),
    413: ("This is too large", "Send less at once."),
    422: ("This cannot be read", "Go back and change what is named above."),
    429: ("Too many requests", "Wait a moment, and try again."),
    503: ("The store is away", "This page asks again by itself, every few seconds."),
}
UNEXPECTED: Final = (
    "Something went wrong here",
    "It may help to try again. The log of the server has it under the id above.",
)


class Failures:
    """Middleware: whatever is raised further in becomes a page, and is logged with its id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Gone:
            return
        except Exception as error:
            refused, problem_id = told(_as_ours(error), scope)
            if started and isinstance(error, Ended):
                await send({"type": "http.response.body", "body": b""})
                return
            if started:
                raise
            request = Request(scope)
            if wants_html(request):
                await page_of(request, refused, problem_id)(scope, receive, send)
                return
            for message in response_of(refused, problem_id):
                await send(message)


def wants_html(request: Request) -> bool:
    """Whether whoever asks is a person's browser, and not a script of our own."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted or accepted in ("", "*/*")


def page_of(request: Request, refused: Refused, problem_id: str) -> Response:
    """The page of a refusal; whoever is not logged in is asked to."""
    root = request.scope.get("root_path", "")
    if refused.status == 401:
        return RedirectResponse(url(root, "/login"), status_code=303)
    title, advice = ADVICE.get(refused.status, UNEXPECTED)
    is_away = refused.status == 503
    shown = {
        "url": lambda path: url(root, path),
        "title": title,
        # Which store it is, and why it is away, is nothing for strangers.
        "says": "" if is_away else refused.detail,
        "advice": advice,
        "problem_id": problem_id,
        "status": refused.status,
        "again_in": COME_BACK if is_away and request.method == "GET" else None,
    }
    headers = {name: text for name, text in refused.headers.items() if name != "WWW-Authenticate"}
    return HTMLResponse(whole("failure.html", shown), refused.status, headers)


def _as_ours(error: Exception) -> Exception:
    """What the router refuses by itself, in our form."""
    if isinstance(error, HTTPException):
        detail = str(error.detail)
        return Refused(error.status_code, "refused", detail, headers=dict(error.headers or {}))
    return error
