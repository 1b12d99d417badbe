"""Work on a session, written once for both faces of the driver.

The driver has all of its classes twice, for `async` and for plain code, with methods of the same
names. Work is therefore a generator: it yields what to ask of a `Site` and is given the answer.
Whoever drives it awaits each answer, or does not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.read_preferences import ReadPreference
from pymongo.synchronous.client_session import ClientSession

from holdfast.stores.mongo.address import Address
from holdfast.stores.mongo.connections import CODEC, DURABLE, MAJORITY, Collections

T = TypeVar("T")

Session = AsyncClientSession | ClientSession


class Site(NamedTuple):
    """The store's collections by way of somebody's client, and the session to work in. What is
    asked without the session is outside of its transaction.
    """

    tasks: Any
    history: Any
    state: Any
    session: Session | None


Ask = Callable[[Any], Any]
Steps = Generator[Ask, Any, T]


def site_of(session: Session, address: Address) -> Site:
    """Where a session's client finds the store."""
    client: Any = session.client
    database = client.get_database(
        address.database,
        codec_options=CODEC,
        read_concern=MAJORITY,
        write_concern=DURABLE,
        read_preference=ReadPreference.PRIMARY,
    )
    tasks, history, state = (
        database[address.collection(noun)] for noun in ("tasks", "history", "state")
    )
    return Site(tasks, history, state, session)


def drive(steps: Steps[T], site: Site) -> T:
    """Do it through the plain face."""
    try:
        ask = next(steps)
        while True:
            ask = steps.send(ask(site))
    except StopIteration as end:
        found: T = end.value
        return found


async def drive_async(steps: Steps[T], site: Site | Collections) -> T:
    """Do it through the asynchronous face; `Collections` are such a site."""
    try:
        ask = next(steps)
        while True:
            ask = steps.send(await ask(site))
    except StopIteration as end:
        found: T = end.value
        return found
