"""Headers: those that make browsers careful with what we answer, and the one that names a trace.

The API is for programs: nothing of it may be framed, sniffed, cached or read by another site's
script. There is no CORS header, on purpose.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.core.trace import read_traceparent
from holdfast.definitions.tracing import current_traceparent

SECURITY: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


def traceparent_of(request: Request) -> str | None:
    """The trace that a request belongs to, else the current span's. A header that is malformed, or
    comes twice, is as none: so W3C Trace Context has it, and a proxy's mistake must not keep tasks
    out.
    """
    given = request.headers.getlist("traceparent")
    named = read_traceparent(given[0]) if len(given) == 1 else None
    return named or current_traceparent()


class Headers:
    """Middleware that adds `SECURITY` to every answer, but for headers that it has already."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                given = {name for name, _ in headers}
                headers += [pair for pair in SECURITY if pair[0] not in given]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, with_headers)
