"""The line between a supervisor and a worker process it started.

The worker tells who it is, so that the supervisor can beat for it and bury it; the supervisor tells
it to stop. One JSON object per line. Closed line: the supervisor is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import ClassVar

from holdfast.core.attempt import Settlement
from holdfast.core.task import AttemptEnd, Cause, Json, Reason, State, TaskError, WorkerId

REFUSED_CODE = 2
"""Exit code of a worker that cannot start as it was told: wrong app, wrong setting."""

DRAIN, NOW = 1, 2
"""How urgent a stop is. Said as a level, not as a count: the same request may come twice, from the
supervisor and from a service manager that signals every process."""


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that ask a worker to leave, but for those that its starter had ignored: `nohup`
    must stay deaf to SIGHUP, a shell's background job to Ctrl-C.
    """
    wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return tuple(number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What beating for a worker takes."""

    url: str
    worker_id: WorkerId
    heartbeat: float


class SupervisorChannel:
    """The worker process's end. One per process at most: `SupervisorChannel.current`."""

    current: ClassVar[SupervisorChannel | None] = None

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        self._lock = threading.Lock()
        SupervisorChannel.current = self

    def on_stop(self, loop: asyncio.AbstractEventLoop, stop: Callable[[int], None]) -> None:
        """Call `stop(level)` on the loop whenever the supervisor asks for it, or is gone."""
        lines = Lines()

        def arrived() -> None:
            data = b""
            with suppress(OSError):
                data = self._socket.recv(4096)
            if not data:
                loop.remove_reader(self._socket)
                stop(NOW)
            for message in lines.feed(data):
                stop(message["stop"])

        loop.add_reader(self._socket, arrived)

    def say(self, message: Json) -> None:
        """Say one of these, which `WorkerProcess` understands, besides what a heartbeat says:

        - `{"ready": n}`: the app is imported, and its settings want `n` of us
        - `{"refused": reason}`: this cannot work however often it is tried
        - `{"counts": …}`: all that this process has counted so far
        - `{"left": true}`: an operator sent this worker home; start no other in its place
        """
        with self._lock, suppress(OSError):
            self._socket.sendall(json.dumps(message).encode() + b"\n")


class Lines:
    """Cuts a stream of bytes into JSON lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Json]:
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in whole]


def pack_settlements(settlements: Sequence[Settlement]) -> Json:
    """How attempts without a result ended, as JSON."""
    return [
        one._asdict() | {"error": None if one.error is None else asdict(one.error)}
        for one in settlements
    ]


def unpack_settlements(packed: Json) -> list[Settlement]:
    return [Settlement(**fields | _read(fields)) for fields in packed]


def _read(fields: Json) -> Json:
    cause, reason, error = fields["cause"], fields["reason"], fields["error"]
    return {
        "state": State(fields["state"]),
        "ended": AttemptEnd(fields["ended"]),
        "cause": None if cause is None else Cause(cause),
        "reason": None if reason is None else Reason(reason),
        "error": None if error is None else TaskError(**error),
    }
