"""Transactions of handlers and callers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from pymongo.errors import BulkWriteError, DuplicateKeyError

from holdfast.core.attempt import Claim
from holdfast.core.task import Added, NewTask
from holdfast.ports.clock import Clock
from holdfast.stores.mongo.add import Adds
from holdfast.stores.mongo.steps import Site, drive, drive_async, site_of
from holdfast.stores.mongo.transactions import MongoTransaction, transaction
from holdfast.stores.mongo.within import (
    Submitter,
    as_conflict,
    async_session,
    naming,
    plain_session,
)


class Transacts(Adds):
    """`ports.store.TransactionStore`."""

    abilities = frozenset({"many_processes", "durable", "transactions"})

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        super().__init__(url, clock=clock, schema=schema)
        self._submitter = Submitter(self.url, clock, self._lanes)
        self._name: str | None = None

    def transaction(
        self, claim: Claim, *, blocking: bool = False
    ) -> AbstractAsyncContextManager[MongoTransaction]:
        own, lent = self._opened()
        return transaction(
            lent, own, self._address, claim, clock=self._clock, blocking=blocking, tell=self._tell
        )

    def add_within(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> Sequence[Added]:
        session = plain_session(connection)
        ours = self._opened()[1].client()
        site = site_of(session, self._address)
        if self._name is None:
            database = ours[self._address.database]
            state = database[self._address.collection("state")]
            self._name = drive(naming(), Site(None, None, state, None))
        steps = self._submitter.adding(session, tasks, window=idempotency_window, name=self._name)
        try:
            return drive(steps, site)
        except (DuplicateKeyError, BulkWriteError) as error:
            raise as_conflict(error) from error

    async def add_within_async(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> Sequence[Added]:
        session = async_session(connection)
        if self._name is None:
            async with self._server() as db:
                self._name = await drive_async(naming(), db)
        steps = self._submitter.adding(session, tasks, window=idempotency_window, name=self._name)
        try:
            return await drive_async(steps, site_of(session, self._address))
        except (DuplicateKeyError, BulkWriteError) as error:
            raise as_conflict(error) from error
