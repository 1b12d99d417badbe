"""The child's end of its line to the worker: blocking, and safe from any thread of the handler."""

from __future__ import annotations

import os
import socket
import threading

from holdfast.errors import HoldfastError
from holdfast.worker.processes.interruption import Interruption
from holdfast.worker.processes.wire import AttemptKey, Frame, Unpacker


class Channel:
    """Frames over an inherited socket. Nothing that user code prints can get into it."""

    def __init__(self, fd: int, interruption: Interruption) -> None:
        # What the handler starts must not hold the line open after us.
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        self._interruption = interruption
        self._pid = os.getpid()
        os.register_at_fork(after_in_child=self._socket.close)
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._about: AttemptKey | None = None
        self._unpacker = Unpacker()
        self._arrived: list[Frame] = []

    def send(self, frame: Frame) -> None:
        """Write a whole frame, even if the attempt is interrupted meanwhile: half of one would
        make everything after it unreadable.
        """
        self.refuse_forks()
        data = frame.pack()
        with self._interruption.shielded(), self._lock:
            if frame.about == self._about:  # else by a thread that outlived its attempt
                self._socket.sendall(data)

    def turn_to(self, attempt: AttemptKey | None) -> None:
        """From now on only what is about this attempt is sent."""
        with self._lock:
            self._about = attempt

    @property
    def about(self) -> AttemptKey | None:
        """The attempt that it is turned to."""
        return self._about

    def ask(self, frame: Frame, number: int | None = None) -> Frame:
        """Send this and wait for the answer; to a question with a number, for the one to that.
        `ConnectionError` if the worker is gone.
        """
        with self._asking:
            self.send(frame)
            while (answer := self.receive()) is not None:
                if answer.about == frame.about and (number is None or answer.head[0] == number):
                    return answer
        raise ConnectionError("the worker is gone")

    def receive(self) -> Frame | None:
        """Wait for the next frame. None: the worker is gone, or wants us to go."""
        self.refuse_forks()
        while not self._arrived:
            try:
                data = self._socket.recv(256 * 1024)
            except OSError:
                return None
            if not data:
                return None
            self._arrived = list(self._unpacker.feed(data))
        return self._arrived.pop(0)

    def refuse_forks(self) -> None:
        """A fork has no line, and none of the threads behind the store's connections."""
        if os.getpid() != self._pid:
            raise HoldfastError(
                "this is a fork of the process that runs the attempt, and only that one can report "
                "or use a transaction. Hand back to it what is to be said: return it from the "
                "pool, or send it over a multiprocessing queue."
            )
