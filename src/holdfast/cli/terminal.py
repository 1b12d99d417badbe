"""A terminal whose keys come one by one, and that is given back as it was."""

from __future__ import annotations

import os
import re
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_KEY: Final = re.compile(r"\x1b[\[O][\d;]*[A-Za-z~]|.", re.DOTALL)
_BEGINNING: Final = re.compile(r"\x1b(?:[\[O][\d;]*)?$")
_NAMES: Final = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "k": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "j": "down",
    "\t": "tab",
    "\x1b[Z": "tab",
    "\x1b[C": "tab",
    "\x1b[D": "tab",
}


@contextmanager
def keys_one_by_one(fd: int) -> Iterator[None]:
    """No line is waited for and nothing typed is shown; Ctrl-C and Ctrl-Z mean what they always do.

    What was typed and not read is dropped at the end: it was not meant for the shell.
    """
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSAFLUSH, before)


class Keys:
    """Reads what is typed."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._begun = ""

    def read(self) -> list[str] | None:
        """The keys pressed since, special ones by name; None if the terminal is gone. One of which
        only the beginning has come so far waits for its rest.
        """
        try:
            read = os.read(self._fd, 1024)
        except OSError:
            return None
        if not read:
            return None
        text = self._begun + read.decode(errors="ignore")
        begun = _BEGINNING.search(text)
        self._begun = begun[0] if begun else ""
        keys = _KEY.findall(text.removesuffix(self._begun))
        return [_NAMES.get(key, key) for key in keys]
