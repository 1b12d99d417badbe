"""Runs the service: a door (uvicorn), behind it the app, beside it the maintenance.

Stopping is the delicate part. A long poll may wait for half a minute and an event stream for hours,
so `app.state.stopping` tells them to end now; ordinary requests are finished. A second signal
leaves without them.

A store that is away is waited for behind an open door: `/healthz` answers, everything else says 503
and why. A store that will not do, however long one waits (another schema, an account that is
refused), ends the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import suppress
from typing import Any

import uvicorn
from fastapi import FastAPI

from holdfast.app import Holdfast
from holdfast.asyncio_tools.cancel import end
from holdfast.builtin.worker import BuiltInKeeper
from holdfast.errors import ConfigError, StoreRefused, StoreUnavailable
from holdfast.logs import EventLog
from holdfast.server.app import create_app
from holdfast.server.connections import at_most
from holdfast.server.service import Service
from holdfast.worker.maintenance.loop import keep_ticking
from holdfast.worker.outage import Outage
from holdfast.worker.supervisor_channel import stop_signals

log = EventLog("holdfast.server")

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8420
GRACE = 10
"""Seconds that ordinary requests have to end after the server was asked to stop."""
BACKLOG = 512
AT_ONCE = 1.0
"""Seconds that a start waits for the store before the door is opened without it."""


async def serve(
    app: Holdfast,
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    announce: Callable[[str], None] = lambda url: None,
    make: Callable[[Holdfast], FastAPI] = create_app,
    stopping: asyncio.Event | None = None,
) -> None:
    """Serve the app until SIGTERM, SIGINT, or until `stopping` is set. `announce` is called with
    the URL as soon as it answers. The app is closed at the end.

    `make` makes what is served: the API, or the API and more. Agents in its `state.beside` are
    kept at work meanwhile, from the moment the store is there.

    `ConfigError` if the address cannot be had, or is open to others while no token exists.
    """
    stopping = stopping or asyncio.Event()
    service = make(app)
    service.state.stopping = stopping
    with _signals(stopping) as again:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(app.close_async)
            opening = await stack.enter_async_context(_opening(service, host))
            if opening.done() and not opening.result():
                return
            door = listen(host, port)
            url = url_of(door)
            server = Server(service, app.settings.max_connections)
            again.append(server.stop)
            chores = [asyncio.ensure_future(_keep_house(service, opening, stopping))]
            chores.append(asyncio.ensure_future(server.stop_when_asked()))
            try:
                log.info("server.started", url=url, store=app.client.store.url)
                await server.answer(door, lambda: announce(url))
            finally:
                await end(chores)
                log.info("server.stopped", url=url)
            if _has_failed(opening):
                opening.result()


class Server(uvicorn.Server):
    """uvicorn without its own ideas about signals and logs."""

    def __init__(self, service: Any, most_connections: int) -> None:
        self._stopping: asyncio.Event = service.state.stopping
        config = uvicorn.Config(
            service,
            http=at_most(most_connections),
            ws="none",
            loop="asyncio",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE,
            backlog=BACKLOG,
        )
        super().__init__(config)

    async def answer(self, door: socket.socket, when_ready: Callable[[], None]) -> None:
        """Answer at this door until `stop()`."""
        self._when_ready = when_ready
        await self.serve(sockets=[door])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._when_ready()

    async def stop_when_asked(self) -> None:
        await self._stopping.wait()
        self.stop()

    def stop(self) -> None:
        """Asked once: finish what is under way. Twice: leave now."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # whoever runs us has them


async def refuse_an_open_door(app: Holdfast, host: str) -> None:
    """Nobody beyond this machine may knock while there is nothing to tell friend from foe."""
    if is_loopback(host):
        return
    tokens = (await app.verbs()).tokens
    if not await tokens.any_valid():
        raise ConfigError(
            "host",
            f"host: refusing to listen on {host}, which others can reach, while there is no token. "
            "Make one first: `holdfast token create --scope admin --expires 90d`. Or listen on "
            f"{DEFAULT_HOST}.",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address; a name, if all it stands for is so."""
    with suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    if host == "localhost":
        return True
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except OSError as error:
        raise ConfigError(
            "host", f"host: {host!r} is no address of this machine: {error}"
        ) from None
    return bool(found) and all(is_loopback(str(address[0])) for *_, address in found)


def listen(host: str, port: int) -> socket.socket:
    """A socket at that address. Port 0 takes any that is free."""
    bare = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        door = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(
            "host", f"host: {host!r} is no address of this machine: {error}"
        ) from None
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind(address)
        door.listen(BACKLOG)
    except OSError as error:
        door.close()
        raise ConfigError(
            "port",
            f"port: cannot listen on {host}:{port} ({error.strerror}). If another server is "
            "there, stop it, or choose another port with --port.",
        ) from None
    door.setblocking(False)
    return door


def url_of(door: socket.socket) -> str:
    """Where a socket can be reached."""
    host, port = door.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _keep_house(
    service: FastAPI, opening: asyncio.Future[bool], stopping: asyncio.Event
) -> None:
    """The maintenance, from the moment the store is there; or the end, if it will not do."""
    await asyncio.wait([opening])
    if _has_failed(opening):
        stopping.set()
    elif opening.result():
        # Not `gather`: it would not wait for the second once the first was told to leave.
        async with asyncio.TaskGroup() as chores:
            app: Holdfast = service.state.holdfast
            chores.create_task(app.maintain())
            for agent in service.state.beside:
                chores.create_task(keep_ticking(agent))
            chores.create_task(keep_ticking(BuiltInKeeper(app, is_server=True)))


def _has_failed(opening: asyncio.Future[bool]) -> bool:
    return opening.done() and not opening.cancelled() and opening.exception() is not None


@contextlib.asynccontextmanager
async def _opening(service: FastAPI, host: str) -> AsyncIterator[asyncio.Future[bool]]:
    """The opening of the store: mostly done on entering, or under way because it is away."""
    tried = asyncio.Event()
    opening = asyncio.ensure_future(_opened(service, host, tried))
    opening.add_done_callback(lambda _: tried.set())
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(tried.wait(), AT_ONCE)
        yield opening
    finally:
        await end([opening])


async def _opened(service: FastAPI, host: str, tried: asyncio.Event) -> bool:
    """Open the store, however long it is away; False if asked to stop meanwhile."""
    known: Service = service.state.service
    stopping: asyncio.Event = service.state.stopping
    outage = Outage("open")
    known.away = "the store is being opened. Try again in a moment."
    while not stopping.is_set():
        try:
            await known.holdfast.open_async()
            await refuse_an_open_door(known.holdfast, host)
        except StoreRefused:
            raise
        except StoreUnavailable as error:
            known.away = str(error)
            tried.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), outage.delay(error))
        else:
            known.away = None
            outage.over()
            return True
    return False


@contextlib.contextmanager
def _signals(stopping: asyncio.Event) -> Generator[list[Callable[[], None]], None, None]:
    """While inside, a signal sets `stopping`; a second one calls what was added to the list."""
    loop, actions = asyncio.get_running_loop(), list[Callable[[], None]]()

    def arrived() -> None:
        for action in actions if stopping.is_set() else ():
            action()
        stopping.set()

    # Only the main thread hears signals.
    is_main = threading.current_thread() is threading.main_thread()
    numbers = stop_signals() if is_main else ()
    for number in numbers:
        loop.add_signal_handler(number, arrived)
    try:
        yield actions
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
