"""The heartbeat of a worker that has no supervisor: a small process that beats for it.

A heartbeat sent by the worker itself stops whenever a handler holds the interpreter (a C call that
does not let go of the GIL), and a live worker would be declared lost. This process runs no user
code and imports little; it watches the worker from outside. When the worker dies, it sees its pipe
close and buries it at once, so its tasks do not wait for a whole lease.

It is `python -m holdfast.worker.heartbeat_process <pid>`, and is told the rest over its standard
input, one JSON object per line: a URL may hold a password, and arguments can be read by every user
of the machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

from holdfast import logs
from holdfast.asyncio_tools.cancel import end
from holdfast.core.task import Json, WorkerId
from holdfast.logs import EventLog
from holdfast.worker.heartbeat import OutsideHeartbeat
from holdfast.worker.heartbeat_sender import HeartbeatSender, Stores
from holdfast.worker.liveness import Liveness, liveness
from holdfast.worker.supervisor_channel import Lease, Lines, SupervisorChannel

log = EventLog("holdfast.heartbeat")

FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0


def start_heartbeat(
    url: str, worker_id: WorkerId, heartbeat: float, pid: int
) -> OutsideHeartbeat | ProcessHeartbeat:
    """Have somebody outside this process beat for the worker: its supervisor, or a new process."""
    lease = Lease(url=url, worker_id=worker_id, heartbeat=heartbeat)
    line = SupervisorChannel.current
    return ProcessHeartbeat(lease, pid) if line is None else OutsideHeartbeat(lease, line.say)


class ProcessHeartbeat(OutsideHeartbeat):
    """Beats from a process of its own. If that dies, another is started, and told all again."""

    def __init__(self, lease: Lease, pid: int) -> None:
        self._pid = pid
        self._told: dict[str, Json] = {}
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._process = self._spawn()
        self._watcher = threading.Thread(target=self._watch, name="holdfast-heartbeat", daemon=True)
        self._watcher.start()
        super().__init__(lease, self._tell)

    @property
    def pid(self) -> int:
        """The process that beats at the moment."""
        return self._process.pid

    def close(self) -> None:
        super().close()
        with self._lock:
            self._closed.set()
            _close_quietly(self._process)

    def wait(self, timeout: float) -> bool:
        """Wait for the process to end after `close()`; for tests and tidy exits."""
        self._watcher.join(timeout)
        return not self._watcher.is_alive()

    def _tell(self, message: Json) -> None:
        with self._lock:
            self._told |= message
            _write(self._process, message)

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast.worker.heartbeat_process", str(self._pid)],
            stdin=subprocess.PIPE,
            env=logs.environment(),
            # Out of reach of Ctrl-C: it must beat while the worker drains.
            start_new_session=True,
        )

    def _watch(self) -> None:
        pause = FIRST_PAUSE
        while True:
            born = time.monotonic()
            code = self._process.wait()
            if self._closed.is_set():
                return
            log.warning("heartbeat.died", code=code)
            if time.monotonic() - born > LAST_PAUSE:
                pause = FIRST_PAUSE
            if self._closed.wait(pause):
                return
            pause = min(pause * 2, LAST_PAUSE)
            with self._lock:
                if self._closed.is_set():
                    return
                _close_quietly(self._process)
                self._process = self._spawn()
                _write(self._process, self._told)


class HeartbeatMain:
    """What runs in the heartbeat process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stores = Stores()
        self._sender = HeartbeatSender(self._stores, pid)
        self._lines = Lines()
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Beat until the worker has left or is gone."""
        self._listen()
        beating = asyncio.ensure_future(self._sender.run())
        await self._ended.wait()
        await end([beating])
        if self._sender.lease is not None and await self._is_gone():
            await self._sender.bury()
        await self._stores.close()

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        os.set_blocking(0, False)
        loop.add_reader(0, self._hear)
        with suppress(AttributeError, OSError):
            # A fork of the worker may hold the pipe open after its death; this one tells for sure.
            loop.add_reader(os.pidfd_open(self._pid), self._ended.set)

    def _hear(self) -> None:
        data = os.read(0, 65536)  # as much as a pipe holds: the worker may have said its last
        if not data:
            asyncio.get_running_loop().remove_reader(0)
            self._ended.set()
        for message in self._lines.feed(data):
            self._sender.take(message)
            if "lease" in message and message["lease"] is None:
                self._ended.set()

    async def _is_gone(self) -> bool:
        # A dying process closes its files a moment before it is gone.
        for _ in range(20):
            if liveness(self._pid) is Liveness.GONE:
                return True
            await asyncio.sleep(0.05)
        return False


def main() -> None:
    """Beat for the worker with this process id, as standard input says."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A service manager signals every process of a service; the worker decides when we end.
        signal.signal(number, signal.SIG_IGN)
    logs.inherit(runs_handlers=False)
    asyncio.run(HeartbeatMain(int(sys.argv[1])).run())


def _write(process: subprocess.Popen[bytes], message: Json) -> None:
    assert process.stdin is not None
    with suppress(OSError, ValueError):  # It died this moment: the next one is told at its birth.
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()


def _close_quietly(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()


if __name__ == "__main__":
    main()
