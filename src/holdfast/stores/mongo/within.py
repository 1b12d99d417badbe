"""Adds tasks inside a transaction of the caller, in the caller's own session.

The steps are those of `add`, so the promises are the same, with three differences. What the store
itself must know (a new lane) is written outside of the transaction, so that nobody waits for the
caller. A task with gates does not contend for them: it goes in as one that is due, and whoever
claims next after the commit lets it. And a key that somebody takes at the same time makes the
server abort the transaction, with an error that says it may be tried again: the driver's
`with_transaction` does. What the driver raises is left as it is: the caller may be waiting for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex
from typing import Any, Final
from weakref import WeakSet

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure
from pymongo.synchronous.client_session import ClientSession

from holdfast.core.task import Added, NewTask
from holdfast.errors import InvalidOption
from holdfast.ports.clock import Clock
from holdfast.stores.columns import in_us, span_us
from holdfast.stores.mongo.add import adding
from holdfast.stores.mongo.atomic import TRANSIENT, is_conflict
from holdfast.stores.mongo.connected import now_command
from holdfast.stores.mongo.connections import CODEC
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.mongo.steps import Session, Steps

_WRITE_CONFLICT: Final = 112
_NOTHING: Final = "Nothing was submitted."


class Submitter:
    """Adds tasks for one store. It remembers which lanes are known, and whose clients lead here."""

    def __init__(self, where: str, clock: Clock | None, lanes: set[str]) -> None:
        self._where = where
        self._clock = clock
        self._lanes = lanes
        self._name: str | None = None
        self._clients: WeakSet[Any] = WeakSet()

    def adding(
        self, session: Session, tasks: Sequence[NewTask], *, window: float, name: str
    ) -> Steps[Sequence[Added]]:
        """Add tasks in a session. `name` is what `naming` found by the store's own client."""
        if not session.in_transaction:
            raise InvalidOption(
                "connection",
                "this session has no transaction open. Submit inside `with "
                f"session.start_transaction()`, or `with_transaction`. {_NOTHING}",
            )
        if session.client not in self._clients:
            yield from self._check(session, name)
        return (yield from self._add(tasks, window)) if tasks else []

    def _check(self, session: Session, name: str) -> Steps[None]:
        board = yield lambda site: site.state.find_one({"_id": BOARD}, {"name": 1})
        if board is None or board.get("name") != name:
            raise InvalidOption(
                "connection",
                f"expected a session of a client for {self._where}, where this app keeps its "
                f"tasks; the client of this one leads elsewhere. {_NOTHING}",
            )
        self._clients.add(session.client)

    def _add(self, tasks: Sequence[NewTask], window: float) -> Steps[Sequence[Added]]:
        now = yield from self._now()
        until = now + span_us(window)
        return (yield from adding(tasks, now, until, self._lanes, contends=False)).added()

    def _now(self) -> Steps[int]:
        if self._clock is not None:
            return self._clock.now_us()
        answer = yield lambda site: site.tasks.database.command(now_command(), codec_options=CODEC)
        return in_us(answer["cursor"]["firstBatch"][0]["now"])


def naming() -> Steps[str]:
    """The store's own name, which its board has from the first time that anybody asks."""
    found = yield lambda site: site.state.find_one({"_id": BOARD}, {"name": 1})
    while found is not None and "name" not in found:
        nameless = {"_id": BOARD, "name": {"$exists": False}}
        change = {"$set": {"name": token_hex(12)}}
        yield lambda site: site.state.update_one(nameless, change)  # noqa: B023 - called at once
        found = yield lambda site: site.state.find_one({"_id": BOARD}, {"name": 1})
    return "" if found is None else str(found["name"])


def as_conflict(error: DuplicateKeyError | BulkWriteError) -> OperationFailure:
    """A key was taken since it was looked for: for the driver, as it tells of such things."""
    if not is_conflict(error):
        return error
    return OperationFailure(
        "a key of this submit was taken by another at the same time; the transaction was aborted "
        "and may be tried again",
        _WRITE_CONFLICT,
        {"errorLabels": [TRANSIENT]},
    )


def plain_session(connection: object) -> ClientSession:
    """What a sync submit was given."""
    if isinstance(connection, ClientSession):
        return connection
    if isinstance(connection, AsyncClientSession):
        raise InvalidOption(
            "connection",
            "pymongo.AsyncClientSession is asynchronous; await submit_async() or "
            f"submit_many_async() instead. {_NOTHING}",
        )
    raise _unknown(connection)


def async_session(connection: object) -> AsyncClientSession:
    """What an async submit was given."""
    if isinstance(connection, AsyncClientSession):
        return connection
    if isinstance(connection, ClientSession):
        raise InvalidOption(
            "connection",
            "pymongo.ClientSession is synchronous and would hold up the event loop; call submit() "
            f"or submit_many() instead. {_NOTHING}",
        )
    raise _unknown(connection)


def _unknown(connection: object) -> InvalidOption:
    kind = type(connection)
    return InvalidOption(
        "connection",
        f"a {kind.__module__}.{kind.__qualname__} is not a connection Holdfast can submit through "
        f"to MongoDB. Expected a session of pymongo with a transaction open. {_NOTHING}",
    )
