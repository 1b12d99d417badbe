"""Connections that only read: on threads of their own, never waiting for the writer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from holdfast.stores.sqlite.connection import connect_reader, file_at, vanished
from holdfast.stores.sqlite.faults import explained
from holdfast.stores.sqlite.queries import SCHEMA

T = TypeVar("T")

_THREADS: Final = 4


class Readers:
    """A few threads with a connection each, opened when first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="holdfast-reader")
        self._mine = threading.local()
        self._open: set[sqlite3.Connection] = set()

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query. All its statements see the same instant."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, query)

    def stop(self) -> None:
        """Finish what was asked, then let go of the file. Blocks."""
        self._threads.shutdown(wait=True)
        while self._open:
            self._open.pop().close()

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        with explained(self._path):
            db = self._connection()
            try:
                db.execute(SCHEMA["begin_read"])
                answer = query(db)
                db.execute(SCHEMA["commit"])
            except BaseException:
                self._drop(db)
                raise
            return answer

    def _connection(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._mine, "db", None)
        found = file_at(self._path)
        if db is not None and found != self._mine.file:
            self._drop(db)  # another file is there now, or none
            db = None
        if found is None:
            raise vanished(self._path)
        if db is None:
            db = self._mine.db = connect_reader(self._path)
            self._mine.file = file_at(self._path)
            self._open.add(db)
        return db

    def _drop(self, db: sqlite3.Connection) -> None:
        """After any error a new connection is the surest way to a clean state."""
        self._mine.db = None
        self._open.discard(db)
        db.close()
