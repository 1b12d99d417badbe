"""The live side of a page: a stream of fragments, or one answer to a script that polls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from holdfast.core.token import Scope as TokenScope
from holdfast.core.token import Token
from holdfast.dashboard.live import Read, Render, Seen, told, versions_in
from holdfast.dashboard.page import Done, Page, Shown, View
from holdfast.server.answers import answer
from holdfast.server.events import HEADERS
from holdfast.server.problems import Refused
from holdfast.server.revoking import Revoking

if TYPE_CHECKING:
    from holdfast.dashboard.site import Site

LAST_SEEN = "last-event-id"


class Streams:
    """Answers those who look at a page and want to go on looking."""

    def __init__(self, site: Site, stopping: Callable[[], asyncio.Event], longest: float) -> None:
        self._site = site
        self._stopping = stopping
        self._longest = longest
        self._revoking = Revoking(site.sessions.good)

    async def answer(self, page: Page, request: Request) -> Response:
        session = await self._site.session_of(request)
        if session is None:
            raise Refused(401, "no_session", "you are not logged in, or not any more")
        self._site.admit(session.token, page)
        view = self._site.view(request, session.token)
        seen = versions_in(request.headers.get(LAST_SEEN, ""))
        if "text/event-stream" not in request.headers.get("accept", ""):
            return await self._once(page, view, seen)
        stream = self._told(page, view, seen)
        return _WhileLoggedIn(stream, session.id, self._revoking)

    async def _once(self, page: Page, view: View, seen: Mapping[str, str]) -> Response:
        read, render = self._of(page, view)
        async with self._site.live.on(_key(page, view), read, render) as live:
            return answer(_changes(live.latest, seen))

    async def _told(self, page: Page, view: View, seen: Mapping[str, str]) -> AsyncIterator[bytes]:
        read, render = self._of(page, view)
        async with self._site.live.on(_key(page, view), read, render) as live:
            async for piece in told(live, seen, self._stopping(), self._longest):
                yield piece

    def _of(self, page: Page, view: View) -> tuple[Read, Render]:
        async def read() -> Shown:
            shown = await page.reader(view)
            if isinstance(shown, Done):
                raise Refused(404, "not_found", "this page leads elsewhere")
            return shown

        def render(shown: Shown) -> dict[str, str]:
            return self._site.fragments(page, view, shown)

        return read, render


class _WhileLoggedIn(StreamingResponse):
    """A stream that ends when its session does."""

    def __init__(self, told: AsyncIterator[bytes], session_id: str, revoking: Revoking) -> None:
        super().__init__(told, media_type="text/event-stream", headers=HEADERS)
        self._session_id = session_id
        self._revoking = revoking

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._revoking.run(self._session_id, super().__call__, scope, receive, send)


def _changes(seen: Seen, known: Mapping[str, str]) -> dict[str, object]:
    """What a script that polls does not have yet."""
    news = [
        {"name": name, "version": version, "html": seen.fragments[name]}
        for name, version in seen.versions.items()
        if known.get(name) != version
    ]
    return {"fragments": news, "away": seen.away, "gone": seen.is_gone}


def _key(page: Page, view: View) -> Hashable:
    """Views of one key show the same."""
    return page.path, view.root, tuple(view.params.items()), str(view.query), _audience(view.token)


def _audience(token: Token) -> Hashable:
    """Tokens of one audience see the same, and may do the same. Whoever may only steer what they
    submitted themselves is an audience of their own.
    """
    is_own = token.may(TokenScope.SUBMIT) and not token.may(TokenScope.OPERATE)
    return token.scopes, token.bounds, token.id if is_own else None
