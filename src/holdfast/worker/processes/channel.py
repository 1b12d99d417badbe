"""The child's end of its line to the worker: blocking, and safe from any thread of the handler."""

from __future__ import annotations

import os
import socket
import threading

from holdfast.worker.processes.interruption import Interruption
from holdfast.worker.processes.wire import Frame, Unpacker


class Channel:
    """Frames over an inherited socket. Nothing that user code prints can get into it."""

    def __init__(self, fd: int, interruption: Interruption) -> None:
        # What the handler starts must not hold the line open after us.
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        self._interruption = interruption
        self._lock = threading.Lock()
        self._unpacker = Unpacker()
        self._arrived: list[Frame] = []

    def send(self, frame: Frame) -> None:
        """Write a whole frame, even if the attempt is interrupted meanwhile: half of one would
        make everything after it unreadable.
        """
        data = frame.pack()
        with self._interruption.shielded(), self._lock:
            self._socket.sendall(data)

    def receive(self) -> Frame | None:
        """Wait for the next frame. None: the worker is gone, or wants us to go."""
        while not self._arrived:
            try:
                data = self._socket.recv(256 * 1024)
            except OSError:
                return None
            if not data:
                return None
            self._arrived = list(self._unpacker.feed(data))
        return self._arrived.pop(0)
