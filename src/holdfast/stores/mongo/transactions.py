"""Transactions of handlers: their writes and the completion of their task in one commit.

Handlers get a session of a client of their own, apart from the one that the worker claims and saves
with. The lease is looked at on entering, so that a zombie does not begin, and the task is written
as the last act before the commit. In between nobody waits for the handler: a task that was rescued
meanwhile has changed since the transaction's snapshot, the server refuses the write, and all is
rolled back.

A commit whose answer was lost is sent again, which the server allows: it then says what became of
it. The driver does so once by itself. Only where the server does not know the transaction any more
is the task looked at; from then on nothing can commit it.

Gates are let go of right after the commit, because every submit for the same gate would make the
server refuse the handler's. Until then the ended task keeps them, and whoever claims next lets go
of them for those who die in between.

A worker that dies between its last write and the commit would leave its task locked until the
server gives the transaction up, after a minute. So the task names the session on entering, and who
settles it as lost has the server end that session first (`settlements.py`).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

from pymongo import ReplaceOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError
from pymongo.read_preferences import ReadPreference
from pymongo.synchronous.client_session import ClientSession

from holdfast.asyncio_tools.shield import to_the_end
from holdfast.core.attempt import Claim, Report, Settlement
from holdfast.core.task import State, Task
from holdfast.errors import HoldfastError, LeaseLost, StoreUnavailable
from holdfast.ports.clock import Clock
from holdfast.stores.columns import in_us
from holdfast.stores.kill_points import reached
from holdfast.stores.mongo.address import Address
from holdfast.stores.mongo.atomic import SNAPSHOT, TRANSIENT, UNKNOWN
from holdfast.stores.mongo.connections import CODEC, DURABLE, Collections, Connections
from holdfast.stores.mongo.documents import task_of
from holdfast.stores.mongo.drafts import LEAN, Draft
from holdfast.stores.mongo.due import let_go
from holdfast.stores.mongo.faults import explain, explained, is_away
from holdfast.stores.mongo.history import chapter_of
from holdfast.stores.mongo.lent import Lent
from holdfast.stores.mongo.passing import Moved
from holdfast.stores.mongo.settlements import (
    LEAN_NOW,
    key_of,
    portions_of,
    report_on,
    saved,
    settle,
)
from holdfast.stores.mongo.steps import Session, Site, Steps, drive, drive_async, site_of
from holdfast.stores.values import holds_lease

T = TypeVar("T")
Tell = Callable[[Moved], None]
"""Tells of those whom gates let pass."""

_ENDINGS: Final = ("commit_transaction", "abort_transaction")
_NO_SUCH_TRANSACTION: Final = 251
_OURS: Final = (
    "this transaction belongs to the task: leaving the `ctx.transaction()` block commits it, "
    "together with the task's completion, and an exception rolls it back."
)
_ENDED_INSIDE: Final = (
    "the transaction was ended inside the `ctx.transaction()` block. What it wrote and the task's "
    "completion can no longer be one; the attempt has failed."
)
_ABORTED: Final = (
    "MongoDB had aborted the transaction before the end of the `ctx.transaction()` block: an "
    "operation inside failed and its error was caught, or the block took longer than the server's "
    "transactionLifetimeLimitSeconds (a minute unless set). Nothing was written. Let errors of "
    "operations leave the block, and compute before you enter it."
)
_CONFLICT: Final = (
    "the task itself was written by somebody else while its handler was inside the "
    "`ctx.transaction()` block, so MongoDB aborted the transaction. Nothing was written; the "
    "attempt is tried again as its retry policy says."
)


@asynccontextmanager
async def transaction(
    lent: Lent,
    own: Connections,
    address: Address,
    claim: Claim,
    *,
    clock: Clock | None,
    blocking: bool,
    tell: Tell,
) -> AsyncIterator[MongoTransaction]:
    """Open a transaction for one attempt on a client of `lent`; look things up on `own`."""
    theirs = nullcontext() if blocking else lent.clients.collections()
    async with own.collections() as db, theirs as found:
        inside: MongoTransaction
        if found is None:
            inside = BlockingTransaction(lent, db, address, claim, clock, tell)
        else:
            inside = AsyncTransaction(found, db, address, claim, clock, tell)
        try:
            await inside.begin()
            yield inside
        finally:
            await to_the_end(inside.end())


class MongoTransaction:
    """All of `ports.store.Transaction`, whichever face of the driver the handler sees."""

    def __init__(
        self, own: Collections, address: Address, claim: Claim, clock: Clock | None, tell: Tell
    ) -> None:
        self._own = own
        self._address = address
        self._claim = claim
        self._fence = Report(claim.task_id, claim.attempt, claim.worker_id)
        self._clock = clock
        self._tell = tell
        self._kept_at: int | None = None
        self._session: Session | None = None
        self._settlement: Settlement | None = None
        self._is_sent = False
        self._is_committed = False

    @property
    def connection(self) -> Session:
        assert self._session is not None
        return self._session

    async def begin(self) -> None:
        with explained(self._address.shown):
            session = self._session = await self._start()
            for verb in _ENDINGS:
                setattr(session, verb, partial(_refuse, verb))
            # A new version: who has read the one before must look again before writing.
            named = {"$set": {"session": session.session_id}, "$inc": {"version": 1}}
            claim = self._claim
            held = {"attempt": claim.attempt, "running_on": claim.worker_id}
            found = await self._own.tasks.update_one({"_id": claim.task_id} | held, named)
            if not found.matched_count:
                raise self._lost(await self._task())

    async def complete(self, settlement: Settlement, report: Report | None = None) -> None:
        if not self.connection.in_transaction:
            raise HoldfastError(_ENDED_INSIDE)
        self._settlement = settlement
        try:
            self._kept_at = await self._run(_completing(settlement, report, self._clock))
            self._is_sent = True
            await self._commit()
        except PyMongoError as error:
            if _is_unknown(error) or isinstance(error, ConnectionFailure):
                raise explain(error, self._address.shown) from error
            await self.end()
            if not await self._is_recorded():  # a driver repeats a commit before it complains
                raise await self._reason(error) from error
        await self._committed()

    async def committed(self) -> bool:
        if self._is_committed:
            return True
        if not self._is_sent or self._session is None:
            await self.end()  # nobody will ever send its commit
        else:
            try:
                await self._commit()
            except PyMongoError as error:
                if _is_unknown(error) or (is_away(error) and not _is_gone(error)):
                    raise explain(error, self._address.shown) from error
            else:
                await self._committed()
                return True
        if await self._is_recorded():
            await self._committed()
        return self._is_committed

    async def end(self) -> None:
        """Roll back what was not committed, and let go."""
        session, self._session = self._session, None
        if session is not None:
            for verb in _ENDINGS:
                delattr(session, verb)
            with suppress(PyMongoError):
                await self._let_go(session)

    # The four that differ by the driver's face.

    @abstractmethod
    async def _start(self) -> Session: ...

    @abstractmethod
    async def _run(self, steps: Steps[T]) -> T: ...

    @abstractmethod
    async def _commit(self) -> None: ...

    @abstractmethod
    async def _let_go(self, session: Any) -> None: ...

    async def _is_recorded(self) -> bool:
        """Whether the task has ended as it was to; for when the transaction is no more."""
        if self._settlement is None or not self._is_sent:
            return False
        with explained(self._address.shown):
            return key_of(self._settlement) in await saved(self._own, [self._settlement])

    async def _committed(self) -> None:
        """It is done, whatever happens now: if its gates cannot be let go of, a claim will."""
        self._is_committed = True
        if self._kept_at is not None:
            reached("completed")
            with suppress(StoreUnavailable), explained(self._address.shown):
                self._tell(await let_go(self._own, self._claim.task_id, self._kept_at))

    async def _reason(self, error: PyMongoError) -> Exception:
        """Why nothing was committed, though the server answered."""
        code = error.code if isinstance(error, OperationFailure) else None
        if not _is_gone(error):
            return explain(error, self._address.shown)
        with explained(self._address.shown):
            task = await self._task()
        if task is None or not holds_lease(task, self._fence):
            return self._lost(task)
        return HoldfastError(_ABORTED if code == _NO_SUCH_TRANSACTION else _CONFLICT)

    async def _task(self) -> Task | None:
        """The task as it is now, whatever the transaction sees."""
        found = await self._own.tasks.find_one({"_id": self._claim.task_id}, LEAN)
        return None if found is None else task_of(found)

    def _lost(self, task: Task | None) -> LeaseLost:
        return _lost(self._claim, task)


class AsyncTransaction(MongoTransaction):
    """Its `connection` is an `AsyncClientSession`."""

    def __init__(
        self,
        theirs: Collections,
        own: Collections,
        address: Address,
        claim: Claim,
        clock: Clock | None,
        tell: Tell,
    ) -> None:
        super().__init__(own, address, claim, clock, tell)
        self._client = theirs.client

    async def _start(self) -> AsyncClientSession:
        session = self._client.start_session()
        await session.start_transaction(SNAPSHOT, DURABLE, ReadPreference.PRIMARY)
        return session

    async def _run(self, steps: Steps[T]) -> T:
        return await drive_async(steps, site_of(self.connection, self._address))

    async def _commit(self) -> None:
        assert isinstance(self.connection, AsyncClientSession)
        await AsyncClientSession.commit_transaction(self.connection)

    async def _let_go(self, session: AsyncClientSession) -> None:
        await session.end_session()  # which aborts


class BlockingTransaction(MongoTransaction):
    """Its `connection` is a `ClientSession`, for a thread of the handler's choice."""

    def __init__(
        self,
        lent: Lent,
        own: Collections,
        address: Address,
        claim: Claim,
        clock: Clock | None,
        tell: Tell,
    ) -> None:
        super().__init__(own, address, claim, clock, tell)
        self._lent = lent

    async def _start(self) -> ClientSession:
        def start() -> ClientSession:
            session = self._lent.client().start_session()
            session.start_transaction(SNAPSHOT, DURABLE, ReadPreference.PRIMARY)
            return session

        return await asyncio.to_thread(start)

    async def _run(self, steps: Steps[T]) -> T:
        return await asyncio.to_thread(drive, steps, site_of(self.connection, self._address))

    async def _commit(self) -> None:
        assert isinstance(self.connection, ClientSession)
        await asyncio.to_thread(ClientSession.commit_transaction, self.connection)

    async def _let_go(self, session: ClientSession) -> None:
        await asyncio.to_thread(session.end_session)


def _completing(
    settlement: Settlement, report: Report | None, clock: Clock | None
) -> Steps[int | None]:
    """Write what the attempt said last and how it ended, if it is still this worker's. When that
    was, if there are gates to let go of.
    """
    kept_at = None
    said = [] if report is None else [*portions_of(report)]
    for number in range(max(1, len(said))):
        found = yield partial(_read, settlement.task_id)
        batch = found["cursor"]["firstBatch"]
        draft = Draft(batch[0]) if batch else None
        if draft is None or not holds_lease(draft.task, settlement):
            raise _lost(settlement, draft.task if draft else None)
        now = in_us(batch[0]["now"]) if clock is None else clock.now_us()
        if said:
            report_on(draft, said[number], now)
        if number >= len(said) - 1:
            settle(draft, settlement, now)
            kept_at = now if draft.keep_gates(now) else None
        yield from _written(draft)
    return kept_at


def _read(task_id: str, site: Site) -> Any:
    """A command, because `aggregate` is not alike in both faces."""
    pipeline = [{"$match": {"_id": task_id}}, *LEAN_NOW]
    command = {"aggregate": site.tasks.name, "pipeline": pipeline, "cursor": {}}
    return site.tasks.database.command(command, codec_options=CODEC, session=site.session)


def _written(draft: Draft) -> Steps[None]:
    if draft.is_full:
        where, shown = {"_id": draft.task.id}, {"attempts": 1, "events": 1}
        document = yield lambda site: site.tasks.find_one(where, shown, session=site.session)
        chapter = chapter_of(document)
        copy = ReplaceOne({"_id": chapter["_id"]}, chapter, upsert=True)
        yield lambda site: site.history.bulk_write([copy], session=site.session)
    update = draft.update()
    yield lambda site: site.tasks.bulk_write([update], session=site.session)


def _lost(of: Claim | Settlement, task: Task | None) -> LeaseLost:
    holder = task.worker_id if task is not None and task.state is State.RUNNING else None
    return LeaseLost(of.task_id, of.attempt, holder=holder)


def _is_unknown(error: PyMongoError) -> bool:
    return error.has_error_label(UNKNOWN)


def _is_gone(error: PyMongoError) -> bool:
    """Whether the server has said that the transaction is no more."""
    return isinstance(error, OperationFailure) and error.has_error_label(TRANSIENT)


def _refuse(verb: str) -> NoReturn:
    raise HoldfastError(f"{verb}: {_OURS}")
