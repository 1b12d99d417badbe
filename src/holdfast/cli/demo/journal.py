"""The demo's second book: every body notes its own start and end in a file, past the store.

The store's history is what has to be proved, so it cannot be the only witness. Lines are appended
with one `write` each (O_APPEND), which the kernel never interleaves: their order is the true order
of events across all processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

VARIABLE = "_HOLDFAST_DEMO_JOURNAL"
"""Names the file, in the environment that the demo gives its workers."""

START, DONE, FAILED, ENTER, LEAVE, KILLED = "start", "done", "failed", "enter", "leave", "killed"


class JournalEntry(NamedTuple):
    """One event: what, which process, and of which attempt (for a kill: none)."""

    event: str
    pid: int
    name: str
    task_id: str
    attempt: int
    detail: str


def note(
    event: str, *, name: str, task_id: str = "-", attempt: int = 0, pid: int = 0, detail: str = "-"
) -> None:
    """Append a line; a no-op outside the demo."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    line = f"{event} {pid or os.getpid()} {name} {task_id} {attempt} {detail}\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


@contextmanager
def noted(name: str, task_id: str, attempt: int) -> Iterator[None]:
    """Note the start of a body and how it ended. A killed one leaves only its start."""
    note(START, name=name, task_id=task_id, attempt=attempt)
    try:
        yield
    except BaseException:
        note(FAILED, name=name, task_id=task_id, attempt=attempt)
        raise
    note(DONE, name=name, task_id=task_id, attempt=attempt)


def read(path: Path) -> list[JournalEntry]:
    """The whole journal, in order."""
    if not path.exists():
        return []
    return [_parse(text) for text in path.read_text().splitlines()]


def _parse(text: str) -> JournalEntry:
    event, pid, name, task_id, attempt, detail = text.split(" ", 5)
    return JournalEntry(event, int(pid), name, task_id, int(attempt), detail)
