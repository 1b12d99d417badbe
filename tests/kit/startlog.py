"""A log of what really ran, written by the handlers themselves and trusted more than any store.

One line per event, appended with a single `write` to a file opened with O_APPEND: lines of many
processes do not mix, and a line written before a SIGKILL stays. No buffering, no locking.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.definitions.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of a handler. `began` and `ended` are seconds of this machine's monotonic clock,
    comparable between its processes; `ended` is None if the body never got there.
    """

    task_id: str
    attempt: int
    began: float
    ended: float | None = None
    worker_id: str | None = None
    pid: int = 0
    lock: str | None = None
    fence: int | None = None


class StartLog:
    """Where handlers say "I begin" and "I am done"; cheap enough for thousands a second."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @contextmanager
    def body(self, ctx: Context, *, lock: str | None = None) -> Iterator[None]:
        """Log the begin of this attempt, and its end, also when the body raises."""
        self.begin(ctx, lock=lock)
        try:
            yield
        finally:
            self.end(ctx)

    def begin(self, ctx: Context, *, lock: str | None = None) -> None:
        self._write(
            {"id": ctx.id, "n": ctx.attempt, "pid": os.getpid(), "lock": lock, "fence": ctx.fence}
        )

    def end(self, ctx: Context) -> None:
        self._write({"id": ctx.id, "n": ctx.attempt, "end": True})

    def starts(self) -> list[Start]:
        """Every start so far, in the order they were logged."""
        return list(self._starts())

    def _starts(self) -> Iterator[Start]:
        if not self.path.exists():
            return
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        ends = {(line["id"], line["n"]): line["t"] for line in lines if "end" in line}
        for line in lines:
            if "end" not in line:
                yield Start(
                    task_id=line["id"], attempt=line["n"], began=line["t"], pid=line["pid"],
                    ended=ends.get((line["id"], line["n"])), lock=line["lock"], fence=line["fence"],
                )  # fmt: skip

    def _write(self, line: dict[str, object]) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, json.dumps(line | {"t": time.monotonic()}).encode() + b"\n")
        finally:
            os.close(file)
