"""Both ends of one listener's mailbox: a datagram socket, and a note beside it.

The note (`<name>.note`) is shared memory: its first byte says whether the listener wants a wake-up
(`WANTED`) or has one it did not consume yet, the rest names its queues. A submitter reads that byte
without a system call, so a busy worker costs it nothing. Two processes may change the byte at once;
the worst of that is one superfluous datagram, or one wake-up that the poll makes up for.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import secrets
import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from holdfast.dispatch.in_process import InProcessListener
from holdfast.dispatch.local.folder import SOCKET_PATH_LIMIT, make

NOTE, DRAFT = ".note", ".tmp"
HAS_ONE, WANTED = 0, 1
_DEAD = frozenset({errno.ECONNREFUSED, errno.ENOENT, errno.ENOTSOCK, errno.EPROTOTYPE})


class Mailbox:
    """The listener's end. Bound before its note appears, gone after it: a note means a socket."""

    def __init__(self, folder: Path, queues: Collection[str] | None) -> None:
        self.name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._address = folder / self.name
        self._owner = os.getpid()
        if len(os.fsencode(self._address)) > SOCKET_PATH_LIMIT:
            raise OSError(errno.ENAMETOOLONG, "path too long for a socket", str(self._address))
        self.socket = _bind(folder, self._address)
        try:
            self._note = self._write_note(queues)
        except BaseException:
            self.socket.close()
            self._address.unlink(missing_ok=True)
            raise

    def _write_note(self, queues: Collection[str] | None) -> mmap.mmap:
        body = json.dumps(None if queues is None else sorted(queues)).encode()
        draft = self._address.with_suffix(DRAFT)
        file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, bytes([WANTED]) + body)
            note = mmap.mmap(file, 0)
        finally:
            os.close(file)
        draft.rename(self._address.with_suffix(NOTE))
        return note

    def want(self) -> None:
        """Say that the next wake-up is wanted."""
        self._note[0] = WANTED

    def refuse(self) -> None:
        """Say that there is a wake-up already."""
        self._note[0] = HAS_ONE

    def empty(self) -> None:
        """Take whatever lies in the socket."""
        with suppress(OSError):
            while self.socket.recv(16):
                pass

    def exists(self) -> bool:
        """False once somebody tidied the files away under us."""
        return self._address.exists() and self._address.with_suffix(NOTE).exists()

    def close(self) -> None:
        """Let go; the files go too, unless this is a fork's copy of its parent's mailbox."""
        self.socket.close()
        self._note.close()
        if os.getpid() != self._owner:
            return
        remove(self._address)
        with suppress(OSError):  # Others still listen there.
            self._address.parent.rmdir()


class LocalListener(InProcessListener):
    """Other processes can wake it too. `mailbox` is None where sockets cannot be had."""

    def __init__(
        self, queues: Collection[str] | None, open_mailbox: Callable[[], Mailbox | None]
    ) -> None:
        super().__init__(queues)
        self._open_mailbox = open_mailbox
        self.mailbox: Mailbox | None = None
        self._open()

    def wake(self) -> None:
        mailbox = self.mailbox
        if mailbox is not None:
            with suppress(ValueError):  # It was closed this moment.
                mailbox.refuse()
        super().wake()

    async def wait(self, timeout: float) -> bool:
        woken = await super().wait(timeout)
        if self.mailbox is not None:
            if not woken and not self.mailbox.exists():
                self.close()
                self._open()
            else:
                self.mailbox.want()
        return woken

    def close(self) -> None:
        if self.mailbox is not None:
            self._loop.remove_reader(self.mailbox.socket)
            self.mailbox.close()
            self.mailbox = None

    def _open(self) -> None:
        self.mailbox = self._open_mailbox()
        if self.mailbox is not None:
            self._loop.add_reader(self.mailbox.socket, self._hear)

    def _hear(self) -> None:
        if self.mailbox is not None:
            self.mailbox.empty()
        self._is_woken = True
        self._end_sleep()


class Recipient:
    """The submitter's end of somebody's mailbox."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._target = str(path)
        file = os.open(path.with_suffix(NOTE), os.O_RDWR | os.O_NOFOLLOW)
        try:
            self._note = mmap.mmap(file, 0)
        finally:
            os.close(file)
        queues = json.loads(self._note[1:])
        self._queues: frozenset[str] | None = None if queues is None else frozenset(queues)

    def serves(self, queues: Collection[str]) -> bool:
        return self._queues is None or not self._queues.isdisjoint(queues)

    def wake(self, sender: socket.socket) -> bool:
        """Send a wake-up if one is wanted. False: nobody is there any more."""
        if self._note[0] != WANTED:
            return True
        self._note[0] = HAS_ONE
        try:
            sender.sendto(b"!", self._target)
        except OSError as error:
            # A full mailbox (EAGAIN) is as good as a delivered wake-up.
            return error.errno not in _DEAD
        return True


def remove(address: Path) -> None:
    """Remove a mailbox from the directory: first the note, so that nobody looks for the socket."""
    for path in (address.with_suffix(NOTE), address.with_suffix(DRAFT), address):
        path.unlink(missing_ok=True)


def sweep(base: Path) -> None:
    """Remove what killed listeners left behind, those of other databases too: nobody may ever
    listen there again.
    """
    for folder in list(base.iterdir()):
        for address in {entry.with_suffix("") for entry in folder.iterdir()}:
            if not _answers(address):
                remove(address)
        with suppress(OSError):  # Somebody listens there.
            folder.rmdir()


def _answers(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(address))
        except OSError as error:
            return error.errno not in _DEAD
    return True


def _bind(folder: Path, address: Path) -> socket.socket:
    own = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    own.setblocking(False)
    for left in (2, 1, 0):
        try:
            make(folder)
            own.bind(str(address))
            break
        except FileNotFoundError:
            # The last listener of the moment removed the directory between our two steps.
            if not left:
                own.close()
                raise
        except BaseException:
            own.close()
            raise
    return own
