"""Writes many new tasks, all or none: a transaction.

Releases before this one **staged** them on a single server: tasks that had taken their keys and
that nobody saw, until a document said that the batch counts. What that left behind is finished by
the sweep.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern

from holdfast.stores.columns import as_time
from holdfast.stores.mongo.connections import DURABLE, Collections
from holdfast.stores.mongo.documents import Document, Place
from holdfast.stores.mongo.drafts import LEAN, Draft, write
from holdfast.stores.mongo.locks import pass_on
from holdfast.stores.mongo.points import reached

PATIENCE: Final = 10_000_000
"""Microseconds after which a batch without a word is given up."""
_UNANSWERED: Final = 5.0
_PAUSE: Final = 0.05
"""Seconds for which a commit without an answer is sent again, and between two times."""


async def insert_all(db: Collections, documents: Sequence[Document]) -> bool:
    """Write all or none; False if others were in its way. A taken key is raised as
    `BulkWriteError`, and then nothing was written.

    Tried once. The driver's own `with_transaction` would try for two minutes, also while the server
    is away. False is no proof that nothing was written (a commit that the driver repeats may be new
    to a server that was restarted): whoever tries again looks for the ids first.
    """
    try:
        async with (
            db.client.start_session() as session,
            await session.start_transaction(ReadConcern("snapshot"), DURABLE),
        ):
            await db.tasks.insert_many(documents, session=session)
            await _commit(session)
    except OperationFailure as error:
        if error.has_error_label("TransientTransactionError"):
            return False
        raise
    return True


async def _commit(session: AsyncClientSession) -> None:
    """Sent again for a while if nobody answers: left open, it would keep its keys for a minute."""
    began = time.monotonic()
    while True:
        try:
            return await session.commit_transaction()
        except PyMongoError as error:
            is_unknown = error.has_error_label("UnknownTransactionCommitResult")
            if not is_unknown or time.monotonic() - began > _UNANSWERED:
                raise
        await asyncio.sleep(_PAUSE)


async def _decide(db: Collections, batch: str, now: int, *, counts: bool) -> bool:
    """Say whether a batch counts; False if the opposite was said before. Only what does not count
    has a date, by which it goes: half a batch that does may wait for a sweep for days.
    """
    dated = {} if counts else {"at": as_time(now)}
    try:
        await db.batches.insert_one({"_id": batch, "counts": counts} | dated)
    except DuplicateKeyError:
        said = await db.batches.find_one({"_id": batch})
        return said is not None and said["counts"] is counts
    return True


async def finish(db: Collections, batch: str, now: int) -> None:
    """See to a batch that somebody left behind, or may still be busy with."""
    said = await db.batches.find_one({"_id": batch})
    if said is not None and said["counts"]:
        await _show(db, batch, now)
    elif said is not None:
        await _remove(db, batch)
    else:
        await _give_up(db, batch, now)


async def _give_up(db: Collections, batch: str, now: int) -> None:
    one = await db.tasks.find_one({"batch": batch}, {"staged_at": 1})
    is_old = one is not None and one["staged_at"] <= now - PATIENCE
    if is_old and await _decide(db, batch, now, counts=False):
        reached("batch-given-up")
        await _remove(db, batch)


async def _show(db: Collections, batch: str, now: int) -> None:
    """Move the tasks of a batch that counts to their places."""
    while staged := await db.tasks.find({"batch": batch}, LEAN).to_list():
        drafts = [Draft(document) for document in staged]
        for draft in drafts:
            draft.move(draft.task, now)
            draft.set(batch=None, staged_at=None)
        written = await write(db, drafts)
        contested = {draft.contested for draft in written.done if draft.contested is not None}
        if contested:
            reached("added")
            await pass_on(db, contested)
    reached("batch-shown")
    await db.batches.delete_one({"_id": batch, "counts": True})


async def _remove(db: Collections, batch: str) -> None:
    await db.tasks.delete_many({"batch": batch, "place": Place.STAGED.value})
