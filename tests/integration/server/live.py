"""Real servers on free ports of the loopback: in a thread of this process, or in their own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

import httpx
import uvicorn
from fastapi import FastAPI

from holdfast import Holdfast
from holdfast.bounds import BoundWords
from holdfast.core.duration import Duration
from holdfast.server.app import create_app
from holdfast.server.connections import at_most
from holdfast.server.running import listen

ROOT = Path(__file__).parents[3]
PATIENCE = 30.0


class _QuickServer(uvicorn.Server):
    """Stops as soon as nothing is left to wait for, without naps: a thousand tests start one."""

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter += 1
            for _ in range(10):
                if not self.should_exit:
                    await asyncio.sleep(0.01)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for each in sockets or ():
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - untold
            await asyncio.sleep(0.01)
        for server in self.servers:
            await server.wait_closed()


class LiveServer:
    """A server at `url` and the app behind it."""

    def __init__(self, url: str, app: Holdfast, service: FastAPI, server: uvicorn.Server) -> None:
        self.url = url
        self.app = app
        self._server = server
        self.service = service
        self._clients: list[httpx.Client] = []
        self._admin: httpx.Client | None = None

    def token(
        self, *scopes: str, expires: Duration | None = None, **bounds: Unpack[BoundWords]
    ) -> str:
        """The text of a new token."""
        tokens = self.app.client.tokens
        return self.app.wait_for(tokens.create("test", scopes, expires, **bounds))[1]

    def new_token(self, *scopes: str) -> tuple[str, str]:
        """A new token's id and text."""
        token, text = self.app.wait_for(self.app.client.tokens.create("test", scopes))
        return token.id, text

    def client(
        self, *scopes: str, timeout: float = PATIENCE, **bounds: Unpack[BoundWords]
    ) -> httpx.Client:
        """A client with a token of these scopes; without any, none."""
        headers = {"Authorization": f"Bearer {self.token(*scopes, **bounds)}"} if scopes else {}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=timeout)
        self._clients.append(client)
        return client

    @property
    def admin(self) -> httpx.Client:
        if self._admin is None:
            self._admin = self.client("admin")
        return self._admin

    def work(self) -> None:
        """Run every task that is due, in this process."""
        asyncio.run(_burst(self.app))

    def hurry(self) -> None:
        """Let long polls and streams end at once, as when the server stops."""
        self.service.state.stopping.set()

    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._server.server_state.connections)

    def watched(self) -> int:
        """How many tasks somebody follows."""
        return len(self.service.state.service.watches)

    def busy(self) -> int:
        """How many requests are being answered."""
        return len(self._server.server_state.tasks)

    def until(self, probe: Callable[[], bool]) -> bool:
        """Ask until it is true; fails if that takes too long."""
        _until(probe)
        return True

    def close(self) -> None:
        for client in self._clients:
            client.close()


async def _burst(app: Holdfast) -> None:
    await app.run_worker(burst=True, queues="*", concurrency=4)


@contextmanager
def serve(
    app: Holdfast,
    *,
    is_open: bool = True,
    port: int = 0,
    make: Callable[[Holdfast], FastAPI] = create_app,
) -> Iterator[LiveServer]:
    """Serve an app from a thread of this process; its store is opened here, unless it cannot be.
    `make` makes what is served.
    """
    service = make(app)
    http = at_most(app.settings.max_connections)
    config = uvicorn.Config(service, http=http, ws="none", lifespan="off", log_config=None)
    server = _QuickServer(config)
    with listen("127.0.0.1", port) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        port = listening.getsockname()[1]
        live = LiveServer(f"http://127.0.0.1:{port}", app, service, server)
        try:
            if is_open:
                app.open()
            _until(lambda: server.started)
            yield live
        finally:
            live.close()
            server.should_exit = True
            thread.join(PATIENCE)
            app.close()
    assert not thread.is_alive()


class ServerProcess:
    """A server in a process of its own, always at the same address."""

    def __init__(self, url: str, **environment: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {**os.environ, "HOLDFAST_URL": url, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "tests.integration.server.serving", str(self.port)]
        self._process = subprocess.Popen(command, env=self._environment, cwd=ROOT)
        _until(self._answers)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def resident_bytes(self) -> int:
        """The memory it holds now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def peak_bytes(self) -> int:
        """The most memory it ever held."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "the server ended"
        try:
            return httpx.get(f"{self.url}/healthz", timeout=1).is_success
        except httpx.TransportError:
            return False

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(signal.SIGTERM)


def _until(probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not probe():
        assert time.monotonic() < deadline, f"not true within {PATIENCE} s"
        time.sleep(0.01)
