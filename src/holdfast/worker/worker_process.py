"""One worker process, as its supervisor sees it: start it, beat for it, stop it, bury it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Self

from holdfast.asyncio_tools.cancel import end
from holdfast.core.metrics import Counts
from holdfast.core.task import Json
from holdfast.worker.exits import when_exited
from holdfast.worker.heartbeat_sender import HeartbeatSender, Stores
from holdfast.worker.options import WorkerOptions
from holdfast.worker.supervisor_channel import Lines, stop_signals


class WorkerProcess(asyncio.Protocol):
    """A worker process and the line to it."""

    def __init__(self, process: subprocess.Popen[bytes], stores: Stores) -> None:
        loop = asyncio.get_running_loop()
        self._process = process
        self._transport: asyncio.Transport | None = None
        self._lines = Lines()
        self._sender = HeartbeatSender(stores, process.pid)
        self._beating = asyncio.ensure_future(self._sender.run())
        self._born = time.monotonic()
        self.ready: asyncio.Future[int] = loop.create_future()
        self.exited: asyncio.Future[int] = loop.create_future()
        self.line_closed = asyncio.Event()
        self.counts = Counts()
        self.refused = False
        self.left = False
        when_exited(process.pid, loop, self._on_exit)

    @classmethod
    async def start(cls, options: WorkerOptions, stores: Stores) -> Self:
        """Start a worker process. It says when it is `ready`, or it exits."""
        ours, theirs = socket.socketpair()
        with theirs:
            worker = cls(_spawn(options, theirs.fileno()), stores)
        await asyncio.get_running_loop().create_unix_connection(lambda: worker, sock=ours)
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._born

    @property
    def is_silent(self) -> bool:
        """Whether it has said who it is, and then missed so many beats that others may think it
        dead.
        """
        return self._sender.is_silent

    def stop(self, level: int) -> None:
        if self._transport is not None:
            self._transport.write(json.dumps({"stop": level}).encode() + b"\n")

    def kill(self) -> None:
        if not self.exited.done():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def end(self) -> int:
        """Wait for the process to end."""
        code = await self.exited
        with suppress(TimeoutError):
            # Its last words may still be on the line, which a fork of it may hold open.
            await asyncio.wait_for(self.line_closed.wait(), 0.2)
        await end([self._beating])
        if self._transport is not None:
            self._transport.close()
        return code

    async def bury(self) -> None:
        """Declare its worker dead, unless it left in good order."""
        await self._sender.bury()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for message in self._lines.feed(data):
            self._take(message)

    def connection_lost(self, _error: Exception | None) -> None:
        self.line_closed.set()

    def _take(self, message: Json) -> None:
        match message:
            case {"ready": processes} if not self.ready.done():
                self.ready.set_result(processes)
            case {"refused": _}:
                self.refused = True
            case {"left": _}:
                self.left = True
            case {"counts": counts}:
                self.counts = Counts.from_json(counts)
            case _:
                self._sender.take(message)

    def _on_exit(self) -> None:
        self.exited.set_result(self._process.wait())
        self.ready.cancel()


def _spawn(options: WorkerOptions, line: int) -> subprocess.Popen[bytes]:
    module = "holdfast.worker.main"
    arguments = [sys.executable, "-m", module, options.to_json(), str(line), str(os.getpid())]
    # Ctrl-C comes to all of us at once; one that is just being born hears it when it can (`main`).
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals())
    try:
        # In our process group, unlike the processes of a pool: Ctrl-Z must stop us all.
        return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, pass_fds=[line])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
