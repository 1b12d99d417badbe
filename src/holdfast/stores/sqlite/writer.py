"""The one connection of this process that writes, on its own thread.

**Group commit.** Whatever arrived while the last transaction was under way is done in the next one:
one `BEGIN IMMEDIATE … COMMIT`, one flush to disk, then all are answered. No timer: an idle store
answers at once, a busy one in large groups.

**One failing job fails alone.** A group runs without savepoints. If a job raises, the group is
rolled back (nobody was told anything yet) and each job gets a transaction of its own. Failures are
rare, and a savepoint around each job would cost every group two statements per job.

**Never a false acknowledgement.** A job is answered after COMMIT returned. If COMMIT itself fails,
the caller does not know the outcome and repeats itself, which the port makes safe.

**Recovery.** After a failure of the file or the disk the connection is dropped, and the next group
opens another. Nothing but the file has state.

**A file that is gone is noticed.** SQLite goes on writing into a file that was deleted or replaced,
and nobody would ever read it. So every group looks before COMMIT, and before it answers without
one, whether the file at the path is still the one that is open; if not, all in it are refused.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar, cast

from holdfast.core.task import TaskId
from holdfast.errors import HoldfastError, StoreError, StoreUnavailable
from holdfast.ports.clock import Clock
from holdfast.stores.callees import callees
from holdfast.stores.sqlite.connection import FileId, file_at, patiently, vanished
from holdfast.stores.sqlite.faults import explain
from holdfast.stores.sqlite.lanes import Key, Lane, Lanes
from holdfast.stores.sqlite.queries import SCHEMA
from holdfast.stores.sqlite.schema import open_database
from holdfast.stores.sqlite.tally import Tally

T = TypeVar("T")

_MAX_GROUP: Final = 512


class Again(Enum):
    """The answer of a job that did a slice of its work and asks to be called again."""

    AGAIN = "again"


AGAIN: Final = Again.AGAIN


class Unit:
    """What a job works with: the open transaction, the sums of what it changes, and the lanes of
    tasks that it let pass their last gate.
    """

    def __init__(self, db: sqlite3.Connection, lanes: Lanes, clock: Clock) -> None:
        self.db = db
        self.lanes = lanes
        self.tally = Tally()
        self.passed: dict[TaskId, int] = {}
        self._clock = clock

    @property
    def now(self) -> int:
        return self._clock.now_us()

    def callees(self) -> Mapping[str, int]:
        """How many to call for those who passed, by queue."""
        if not self.passed:
            return {}
        lanes = Counter(self.passed.values()).items()
        ready = [(self.lanes.lookup(self.db, lane), number) for lane, number in lanes]
        return callees((lane.queue, lane.requires, number) for lane, number in ready)

    def lane(self, key: Key) -> Lane:
        return self.lanes.find(key) or self.lanes.intern(self.db, key)


@dataclass(slots=True, eq=False)
class Job:
    """Work for the writer, and the caller that waits for it. `Writer.do` explains the parts."""

    work: Callable[[Unit], object]
    peek: Callable[[Unit], object] | None = None
    undo: Callable[[object], None] | None = None
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[object] | None = None
    answer: object = None
    error: Exception | None = None
    is_done: bool = False

    def renewed(self) -> Job:
        return replace(self, answer=None, is_done=False)

    @property
    def is_abandoned(self) -> bool:
        return self.future is not None and self.future.cancelled()

    def deliver(self) -> None:
        """Wake the caller. Runs in the caller's loop."""
        if self.future is None or self.future.cancelled():
            self.abandon()
        elif self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)

    def abandon(self) -> None:
        """Nobody waits for the answer any more."""
        if self.undo is not None and self.error is None:
            self.undo(self.answer)


class Writer:
    """Takes jobs from any thread and event loop, in order of arrival."""

    def __init__(
        self, path: Path, clock: Clock, lanes: Lanes, *, forget: Callable[[], None]
    ) -> None:
        self._path = path
        self._name = str(path)
        self._clock = clock
        self._lanes = lanes
        self._forget = forget
        self._db: sqlite3.Connection | None = None
        self._file: FileId | None = None
        self._inbox = queue.SimpleQueue[Job | None]()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._loop, name="holdfast-writer", daemon=True)

    def start(self, db: sqlite3.Connection) -> None:
        """Begin to serve, on a connection that is set up."""
        self._db, self._file = db, file_at(self._name)
        self._thread.start()

    def stop(self) -> None:
        """Finish what was accepted, then let go of the file. Blocks."""
        self._inbox.put(None)
        self._thread.join()

    async def do(
        self,
        work: Callable[[Unit], T | Again],
        *,
        peek: Callable[[Unit], T | None] | None = None,
        undo: Callable[[T], None] | None = None,
    ) -> T:
        """Have this done in a transaction; the answer comes when it is on disk.

        `peek` may answer without writing: it sees the database outside any transaction, and returns
        None if there is something to write after all. Work that answers `AGAIN` is committed and
        called once more, after what others want. `undo` gets an answer that came too late,
        because the caller was cancelled meanwhile.
        """
        loop = asyncio.get_running_loop()
        late = cast("Callable[[object], None] | None", undo)
        future = loop.create_future()
        self._put(Job(work, peek, late, loop, future))
        return cast("T", await future)

    def tell(self, work: Callable[[Unit], object]) -> None:
        """Have this done; nobody waits for it."""
        self._put(Job(work))

    def _put(self, job: Job) -> None:
        self._inbox.put(job)
        if self._is_stopped:
            self._refuse_the_rest()

    def _loop(self) -> None:
        try:
            going = True
            while going:
                jobs, going = self._take()
                while jobs:
                    jobs = self._turn(jobs, is_last=not going)
        finally:
            self._drop()
            self._is_stopped = True
            self._refuse_the_rest()

    def _turn(self, jobs: list[Job], *, is_last: bool) -> list[Job]:
        """Serve and answer; returns what must be served again before anything else."""
        self._serve(jobs)
        _deliver(job for job in jobs if job.answer is not AGAIN)
        unfinished = [job.renewed() for job in jobs if job.answer is AGAIN]
        if is_last:
            return unfinished
        for job in unfinished:
            self._inbox.put(job)
        return []

    def _refuse_the_rest(self) -> None:
        """Answer those who came while the door was closing, from whichever thread is last."""
        late: list[Job] = []
        while not self._inbox.empty():
            with suppress(queue.Empty):
                job = self._inbox.get_nowait()
                late += [job] if job else []
        self._fail(late, StoreError(f"{self._path} was closed meanwhile. Nothing was written."))
        _deliver(late)

    def _take(self) -> tuple[list[Job], bool]:
        """Wait for a job and take along what else is there; False if the store closes."""
        jobs: list[Job] = []
        job = self._inbox.get()
        try:
            while job is not None and len(jobs) < _MAX_GROUP - 1:
                if not job.is_abandoned:
                    jobs.append(job)
                job = self._inbox.get_nowait()
        except queue.Empty:
            return jobs, True
        if job is not None:
            jobs.append(job)
        return jobs, job is not None

    def _serve(self, jobs: list[Job]) -> None:
        try:
            unit = self._unit()
            if any(job.peek for job in jobs):
                self._look()
            left = patiently(
                lambda: [job for job in jobs if not _is_answered_by_peeking(job, unit)]
            )
            if left:
                self._commit(left)
        except Exception as error:  # noqa: BLE001  # every caller must be told
            self._fail(jobs, error)

    def _commit(self, jobs: Sequence[Job]) -> None:
        """Run all in one transaction, or each in its own if that fails."""
        self._begin()  # if nobody may write now, there is no point in trying one by one
        try:
            self._run(jobs)
        except Exception as error:  # noqa: BLE001  # the others must not pay for it
            self._undo(error)
            if len(jobs) == 1 or isinstance(error, StoreUnavailable):
                self._fail(jobs, error)
                return
            for job in jobs:
                self._commit([job])

    def _run(self, jobs: Iterable[Job]) -> None:
        unit = self._unit()
        for job in jobs:
            job.answer = job.work(unit)
        unit.tally.write(unit.db)
        self._look()
        unit.db.execute(SCHEMA["commit"])
        for job in jobs:
            job.is_done = True

    def _begin(self) -> None:
        db = self._connection()
        patiently(lambda: db.execute(SCHEMA["begin_write"]))

    def _unit(self) -> Unit:
        return Unit(self._connection(), self._lanes, self._clock)

    def _look(self) -> None:
        """Let go of a file that is no longer the one at the path. What was remembered of it is
        not asked of another: this group is refused, the next one opens what is there.
        """
        if file_at(self._name) != self._file:
            self._drop()
            self._forget()
            raise vanished(self._path)

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            self._lanes.forget()  # it may be another file now
            if file_at(self._name) is None:
                raise vanished(self._path)
            self._db = open_database(self._path)
            self._file = file_at(self._name)
        return self._db

    def _undo(self, error: Exception) -> None:
        try:
            if self._db is not None and self._db.in_transaction:
                self._db.execute(SCHEMA["rollback"])
        except sqlite3.Error:
            self._drop()
        self._lanes.forget()
        if isinstance(error, sqlite3.Error):
            # A new handle sees a file that was replaced, or a disk that has recovered.
            self._drop()

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _fail(self, jobs: Iterable[Job], error: Exception) -> None:
        if isinstance(error, sqlite3.Error):
            self._drop()
            error = explain(error, self._path)
        for job in jobs:
            if not job.is_done:
                job.answer, job.error, job.is_done = None, error, True


def _is_answered_by_peeking(job: Job, unit: Unit) -> bool:
    if job.peek is None:
        return False
    try:
        job.answer = job.peek(unit)
    except HoldfastError as error:
        job.error = error
        job.is_done = True
        return True
    job.is_done = job.answer is not None
    return job.is_done


def _deliver(jobs: Iterable[Job]) -> None:
    """Wake each loop once, however many of its callers were served."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        if job.loop is not None:
            by_loop.setdefault(job.loop, []).append(job)
    for loop, served in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver_here, served)
        except RuntimeError:  # that loop was closed, and its callers with it
            for job in served:
                job.abandon()


def _deliver_here(jobs: Iterable[Job]) -> None:
    for job in jobs:
        job.deliver()
