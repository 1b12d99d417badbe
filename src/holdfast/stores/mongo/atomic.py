"""The careful way of writing: a transaction, done again for as long as others are in its way.

Reads inside see one snapshot and what the transaction itself has written. Who writes a document
that another has written since the snapshot was taken has lost: the server aborts the transaction,
and the work is done again from its first read. A key that was taken meanwhile counts as that too.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern

from holdfast.errors import StoreUnavailable
from holdfast.stores.kill_points import reached
from holdfast.stores.mongo.connections import DURABLE, Collections

T = TypeVar("T")

TRANSIENT: Final = "TransientTransactionError"
UNKNOWN: Final = "UnknownTransactionCommitResult"
SNAPSHOT: Final = ReadConcern("snapshot")
_DUPLICATE_KEY: Final = 11000
_PATIENCE: Final = 90.0
"""Seconds after which work that others are in the way of all the time is given back: longer than a
server leaves the transaction of a client that died open, which is a minute."""
_UNANSWERED: Final = 5.0
"""Seconds for which a commit without an answer is sent again."""
_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.2


async def atomically(db: Collections, work: Callable[[Collections], Awaitable[T]]) -> T:
    """Do `work` with the collections `apart`, whose `session` is a transaction, and commit.

    It is called again from the start after a conflict. A commit that the driver repeats may be new
    to a server that was restarted, so work must also expect that it is done already.
    """
    began, pause = time.monotonic(), _PAUSE
    while True:
        try:
            return await _once(db, work)
        except OperationFailure as error:
            if not is_conflict(error):
                raise
            if time.monotonic() - began > _PATIENCE:
                raise StoreUnavailable(
                    f"others were in the way of this write for {_PATIENCE:.0f} seconds, or it is "
                    "too large for one transaction. Nothing was written. Try again later, or with "
                    "less at once."
                ) from error
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
        pause = min(2 * pause, _LONGEST_PAUSE)


def is_conflict(error: PyMongoError) -> bool:
    """Whether another writer was faster: the same work may well succeed now."""
    if isinstance(error, BulkWriteError):
        codes = {problem["code"] for problem in error.details.get("writeErrors", ())}
        if codes == {_DUPLICATE_KEY}:
            return True
    return isinstance(error, DuplicateKeyError) or error.has_error_label(TRANSIENT)


async def _once(db: Collections, work: Callable[[Collections], Awaitable[T]]) -> T:
    inside = db.apart or db
    async with (
        inside.client.start_session() as session,
        await session.start_transaction(SNAPSHOT, DURABLE),
    ):
        answer = await work(inside._replace(session=session))
        reached("written")
        await _commit(session)
    reached("committed")
    return answer


async def _commit(session: AsyncClientSession) -> None:
    """Sent again for a while if nobody answers: left open, it would keep its documents locked."""
    began = time.monotonic()
    while True:
        try:
            return await session.commit_transaction()
        except PyMongoError as error:
            if not error.has_error_label(UNKNOWN) or time.monotonic() - began > _UNANSWERED:
                raise
        await asyncio.sleep(10 * _PAUSE)
