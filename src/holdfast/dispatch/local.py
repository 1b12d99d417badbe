"""Wake-ups between the processes of one host, for SQLite: no server, no hot poll.

Every listening worker has a mailbox (`mailbox.py`) in the database's meeting place (`meeting.py`).
A submitter that has stored a task looks who is there and rings those who sleep. Who is there it
remembers for as long as the directory's time stamp stays; so a submit costs one `stat` when nobody
listens or all are busy, and one datagram per sleeping worker otherwise.

All of it is a hint. What cannot be set up or goes wrong costs latency (`poll`), never a task.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from holdfast.dispatch.mailbox import NOTE, Address, Mailbox, MailEar, remove, sweep
from holdfast.dispatch.meeting import is_ours, meeting_place
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Listener

log = EventLog(__name__)

_SETTLED_NS = 100_000_000
"""A directory changed less than this ago may change again with the same time stamp."""


class LocalDispatcher:
    """Wakes workers on the same host that use the same database file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._place = meeting_place(path)
        self._ears: tuple[MailEar, ...] = ()
        self._directory = _Directory(self._place)
        self._owner = os.getpid()
        self._warned = False

    def wake(self, queues: Collection[str]) -> None:
        if os.getpid() != self._owner:
            self._forked()
        own = self._ears
        for ear in own:
            if ear.hears(queues):
                ear.ring()
        self._directory.ring(queues, {ear.mailbox.name for ear in own if ear.mailbox is not None})

    @asynccontextmanager
    async def listen(self, queues: Collection[str] | None) -> AsyncIterator[Listener]:
        ear = MailEar(queues, lambda: self._open_mailbox(queues))
        self._ears = (*self._ears, ear)
        try:
            yield ear
        finally:
            self._ears = tuple(other for other in self._ears if other is not ear)
            ear.close()

    async def mode(self) -> str:
        return "poll" if self._warned else "sockets"

    async def close(self) -> None:
        self._directory.close()

    def _open_mailbox(self, queues: Collection[str] | None) -> Mailbox | None:
        try:
            mailbox = Mailbox(self._place, queues)
        except OSError as error:
            if not self._warned:
                self._warned = True
                said = f"{error}; this worker polls instead"
                log.warning("dispatch.unavailable", error=said)
            return None
        with suppress(OSError):
            sweep(self._place.parent)
        return mailbox

    def _forked(self) -> None:
        # The ears are the parent's; its loop is not running here. Reach them by their sockets.
        self._owner = os.getpid()
        self._ears = ()
        self._directory.close()
        self._directory = _Directory(self._place)


class _Directory:
    """Who listens, as far as this process knows. Safe from any thread."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._stamp: int | None = None
        self._known: dict[str, Address] = {}
        self._sender: socket.socket | None = None
        self._closed = False

    def ring(self, queues: Collection[str], own: Collection[str]) -> None:
        """Ring everybody who hears these queues, but for our `own`. Never blocks, never raises."""
        try:
            stamp = self._place.stat().st_mtime_ns
        except OSError:
            return  # Nobody has ever listened, or the last one left.
        if stamp != self._stamp:
            self._look(stamp)
        for name, address in tuple(self._known.items()):
            if name not in own and address.hears(queues) and not self._deliver(address):
                self._forget(address)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._stamp, self._known = None, {}
            if self._sender is not None:
                self._sender.close()
                self._sender = None

    def _look(self, stamp: int) -> None:
        with self._lock:
            known: dict[str, Address] = {}
            if not self._closed and is_ours(self._place.parent) and is_ours(self._place):
                for name in _names(self._place):
                    address = self._known.get(name) or _address(self._place / name)
                    if address is not None:
                        known[name] = address
            self._known = known
            settled = time.time_ns() - stamp > _SETTLED_NS
            self._stamp = stamp if settled else None

    def _deliver(self, address: Address) -> bool:
        sender = self._sender or self._open_sender()
        return sender is None or address.ring(sender)

    def _open_sender(self) -> socket.socket | None:
        with self._lock:
            if self._sender is None and not self._closed:
                self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._sender.setblocking(False)
            return self._sender

    def _forget(self, address: Address) -> None:
        self._known.pop(address.path.name, None)
        with suppress(OSError):
            remove(address.path)


def _names(place: Path) -> list[str]:
    try:
        return [entry.stem for entry in place.iterdir() if entry.suffix == NOTE]
    except OSError:
        return []


def _address(path: Path) -> Address | None:
    try:
        return Address(path)
    except (OSError, ValueError):
        return None  # It left while we were looking.
