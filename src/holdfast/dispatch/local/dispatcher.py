"""Wake-ups between the processes of one host, for SQLite: no server, no hot poll.

Every listening worker has a mailbox (`mailbox.py`) in the database's folder (`folder.py`). A
submitter that has stored a task looks who is there and sends to those who sleep. Who is there it
remembers for as long as the folder's time stamp stays; so a submit costs one `stat` when nobody
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

from holdfast.dispatch.in_process import BaseDispatcher
from holdfast.dispatch.local.folder import folder_of, is_ours
from holdfast.dispatch.local.mailbox import NOTE, LocalListener, Mailbox, Recipient, remove, sweep
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Listener

log = EventLog(__name__)

_SETTLED_NS = 100_000_000
"""A folder changed less than this ago may change again with the same time stamp."""


class LocalDispatcher(BaseDispatcher[LocalListener]):
    """Wakes workers on the same host that use the same database file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._folder = folder_of(path)
        self._recipients = _Recipients(self._folder)
        self._warned = False

    def wake(self, queues: Collection[str]) -> None:
        self._wake_here(queues)  # first: who is woken here wants no datagram
        self._recipients.wake(queues)

    @asynccontextmanager
    async def listen(self, queues: Collection[str] | None) -> AsyncIterator[Listener]:
        listener = LocalListener(queues, lambda: self._open_mailbox(queues))
        try:
            with self._keeping(listener):
                yield listener
        finally:
            listener.close()

    async def mode(self) -> str:
        return "poll" if self._warned else "sockets"

    async def close(self) -> None:
        self._recipients.close()

    def _open_mailbox(self, queues: Collection[str] | None) -> Mailbox | None:
        try:
            mailbox = Mailbox(self._folder, queues)
        except OSError as error:
            if not self._warned:
                self._warned = True
                said = f"{error}; this worker polls instead"
                log.warning("dispatch.unavailable", error=said)
            return None
        with suppress(OSError):
            sweep(self._folder.parent)
        return mailbox

    def _begin_anew(self) -> None:
        self._recipients.close()
        self._recipients = _Recipients(self._folder)


class _Recipients:
    """Who listens, as far as this process knows. Safe from any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._stamp: int | None = None
        self._known: dict[str, Recipient] = {}
        self._sender: socket.socket | None = None
        self._closed = False

    def wake(self, queues: Collection[str]) -> None:
        """Wake everybody who serves these queues. Never blocks, never raises."""
        try:
            stamp = self._folder.stat().st_mtime_ns
        except OSError:
            return  # Nobody has ever listened, or the last one left.
        if stamp != self._stamp:
            self._look(stamp)
        for recipient in tuple(self._known.values()):
            if recipient.serves(queues) and not self._deliver(recipient):
                self._forget(recipient)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._stamp, self._known = None, {}
            if self._sender is not None:
                self._sender.close()
                self._sender = None

    def _look(self, stamp: int) -> None:
        with self._lock:
            known: dict[str, Recipient] = {}
            if not self._closed and is_ours(self._folder.parent) and is_ours(self._folder):
                for name in _names(self._folder):
                    recipient = self._known.get(name) or _recipient(self._folder / name)
                    if recipient is not None:
                        known[name] = recipient
            self._known = known
            settled = time.time_ns() - stamp > _SETTLED_NS
            self._stamp = stamp if settled else None

    def _deliver(self, recipient: Recipient) -> bool:
        sender = self._sender or self._open_sender()
        return sender is None or recipient.wake(sender)

    def _open_sender(self) -> socket.socket | None:
        with self._lock:
            if self._sender is None and not self._closed:
                self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._sender.setblocking(False)
            return self._sender

    def _forget(self, recipient: Recipient) -> None:
        self._known.pop(recipient.path.name, None)
        with suppress(OSError):
            remove(recipient.path)


def _names(folder: Path) -> list[str]:
    try:
        return [entry.stem for entry in folder.iterdir() if entry.suffix == NOTE]
    except OSError:
        return []


def _recipient(path: Path) -> Recipient | None:
    try:
        return Recipient(path)
    except (OSError, ValueError):
        return None  # It left while we were looking.
