"""Keeps pages up to date: one rendering for all who look at the same, and streams that tell each of
them what changed.

A page is rendered again every two seconds while somebody looks, and less often when that would cost
more than a small share of a core: many different pages share the time of one process. What is read
is compared with what was read before, so a page on which nothing happens costs a read and no more.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from holdfast.dashboard.page import Shown
from holdfast.dashboard.rendering import Fragments
from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.logs import EventLog, trace_of
from holdfast.server.events import COME_BACK_AFTER_MS, HEARTBEAT, encoded
from holdfast.server.problems import Refused, refusal_of

log = EventLog("holdfast.server")

EVERY: Final = 2.0
SLOWEST: Final = 20.0
SHARE: Final = 0.03
"""Of a core: what all renderings together may take; to read what they show takes about as much."""

Read = Callable[[], Awaitable[Shown]]
Render = Callable[[Shown], Fragments]


class Seen(NamedTuple):
    """What a page shows: its fragments with a version each; or why it shows nothing now."""

    fragments: Fragments
    versions: Mapping[str, str]
    away: str | None = None
    is_gone: bool = False


NOTHING: Final = Seen({}, {})
"""Of a page that nobody has looked at yet."""


class LivePage:
    """One page under observation, for all who may see the same of it."""

    def __init__(self, read: Read, render: Render, rest: Callable[[float], float]) -> None:
        self._read = read
        self._render = render
        self._rest = rest
        self._shown: Shown | None = None
        self._cost = 0.0
        self._changed = asyncio.Event()
        self.listeners = 0
        self.latest = NOTHING

    @property
    def change(self) -> asyncio.Event:
        """Set when there is something new. Take it before you look at `latest`."""
        return self._changed

    async def look(self) -> float:
        """Look once; how many seconds to rest."""
        try:
            shown = await self._read()
        except StoreUnavailable:
            self._tell(self.latest._replace(away="The store is away."))
        except Exception as error:  # noqa: BLE001 - a page is no reason to stop looking
            self._fail(error)
        else:
            began = time.thread_time()
            if shown != self._shown or self.latest.away is not None:
                self._shown = shown
                self._tell(_seen(self._render(shown)))
                self._cost = time.thread_time() - began
        return self._rest(self._cost)

    def _fail(self, error: Exception) -> None:
        if _status_of(error) >= 500:
            log.error("page.failed", exception=trace_of(error))
            self._tell(self.latest._replace(away="This page cannot be brought up to date."))
        else:
            self._tell(self.latest._replace(is_gone=True))

    def _tell(self, seen: Seen) -> None:
        if seen != self.latest or self.latest is NOTHING:
            self.latest = seen
            self._changed.set()
            self._changed = asyncio.Event()


class LivePages:
    """The pages under observation in this process."""

    def __init__(self) -> None:
        self._pages: dict[Hashable, LivePage] = {}
        self._looking: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._pages)

    @asynccontextmanager
    async def on(self, key: Hashable, read: Read, render: Render) -> AsyncIterator[LivePage]:
        """Observe a page as long as one is inside."""
        page = self._pages.get(key)
        if page is None:
            page = self._pages[key] = LivePage(read, render, self._rest)
            looking = asyncio.create_task(self._keep_looking(key, page))
            self._looking.add(looking)
            looking.add_done_callback(self._looking.discard)
        page.listeners += 1
        try:
            if page.latest is NOTHING:
                await page.change.wait()
            yield page
        finally:
            page.listeners -= 1

    def forget(self) -> None:
        """Whoever comes from now on sees what is so now: somebody changed something, and must not
        be shown a button again that has just been pressed.
        """
        self._pages.clear()

    async def _keep_looking(self, key: Hashable, page: LivePage) -> None:
        """It goes on for one more round when nobody looks: those who poll come back."""
        try:
            while True:
                rest = await page.look()
                await asyncio.sleep(rest)
                if not page.listeners:
                    return
        finally:
            if self._pages.get(key) is page:
                del self._pages[key]

    def _rest(self, cost: float) -> float:
        return min(max(EVERY, cost * len(self._pages) / SHARE), SLOWEST)


def _seen(fragments: Fragments) -> Seen:
    versions = {name: f"{zlib.crc32(text.encode()):08x}" for name, text in fragments.items()}
    return Seen(fragments, versions)


def _status_of(error: Exception) -> int:
    if isinstance(error, HoldfastError):
        error = refusal_of(error)
    return error.status if isinstance(error, Refused) else 500


async def told(
    page: LivePage, seen: Mapping[str, str], stopping: asyncio.Event, longest: float
) -> AsyncIterator[bytes]:
    """What changes on a page from now on, as server-sent events. `seen` are the versions that the
    listener has.
    """
    known, was_away = dict(seen), False
    until = time.monotonic() + longest
    yield b"retry: %d\n\n" % COME_BACK_AFTER_MS
    while True:
        change, latest = page.change, page.latest
        if latest.is_gone:
            yield encoded("gone", {})
            return
        if latest.away is not None or was_away:
            was_away = latest.away is not None
            yield encoded("away", {"says": latest.away})
        for piece in _news(latest, known):
            yield piece
        has_news = await _first_of(change, stopping, min(HEARTBEAT, until - time.monotonic()))
        if stopping.is_set() or time.monotonic() >= until:
            return
        if not has_news:
            yield b": still here\n\n"


def _news(latest: Seen, known: dict[str, str]) -> list[bytes]:
    """The fragments that the listener does not have; `known` are then all that it has."""
    news = []
    for name, version in latest.versions.items():
        if known.get(name) != version:
            known[name] = version
            place = ".".join(f"{each}:{known[each]}" for each in known)
            fragment = {"name": name, "version": version, "html": latest.fragments[name]}
            news.append(b"id: %s\n" % place.encode() + encoded("fragment", fragment))
    return news


def versions_in(text: str) -> dict[str, str]:
    """The versions that a listener says it has; what is no such text is none."""
    pairs = (part.partition(":") for part in text[:2000].split("."))
    return {name: version for name, colon, version in pairs if colon}


async def _first_of(change: asyncio.Event, stopping: asyncio.Event, seconds: float) -> bool:
    """Wait for a change; False if there was none for so long, or it is time to go."""
    waits = [asyncio.ensure_future(event.wait()) for event in (change, stopping)]
    try:
        await asyncio.wait(waits, timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return change.is_set()
