"""A real pseudo-terminal with a program on it, and what somebody in front of it sees."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte


class Terminal:
    """Runs a command on a terminal of this size; `shown` is the screen as a person sees it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        columns: int = 100,
        lines: int = 24,
    ) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self.raw = b""
        self._ours, self._theirs = pty.openpty()
        self._set_size(columns, lines)
        self.settings = termios.tcgetattr(self._theirs)
        """How the terminal was set before the program came."""
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command],  # signals as from a shell
            cwd=folder,
            env={**environment, "TERM": "xterm-256color"},
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def shown(self) -> str:
        """The screen, its lines without blanks at their ends."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def line_with(self, words: str) -> str:
        """The first line that has these words in it; empty if none has."""
        return next((line for line in self.shown.splitlines() if words in line), "")

    def shows(self, *words: str) -> bool:
        shown = self.shown
        return all(each in shown for each in words)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        with self._lock:
            self._screen.resize(lines, columns)
        self._set_size(columns, lines)
        self.process.send_signal(signal.SIGWINCH)

    def is_as_it_was(self) -> bool:
        """Whether the program gave the terminal back as it found it, with the cursor shown."""
        hidden, shown = self.raw.rfind(b"\x1b[?25l"), self.raw.rfind(b"\x1b[?25h")
        entered, left = self.raw.rfind(b"\x1b[?1049h"), self.raw.rfind(b"\x1b[?1049l")
        return (
            termios.tcgetattr(self._theirs) == self.settings and shown >= hidden and left >= entered
        )

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._theirs)  # then the reader hears that nobody writes any more
        self._reader.join(10)
        os.close(self._ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._ours, 65536)
            except OSError:  # how Linux says that the other end was closed
                return
            if not part:
                return
            with self._lock:
                self.raw += part
                self._stream.feed(part)
