"""A bookshop on MongoDB: handlers write through sessions of either face of its driver."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pymongo import MongoClient
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError
from pymongo.synchronous.client_session import ClientSession
from tests.integration.mongo.proxy import MongoProxy
from tests.integration.transactions.bookshops.base import Branch
from tests.kit.servers.proxy import Fate, Proxy

from holdfast import Holdfast

Document = dict[str, Any]


class MongoBookshop(Branch):
    connections = (AsyncClientSession, ClientSession)
    endings = (
        lambda session: session.commit_transaction(),
        lambda session: session.abort_transaction(),
    )
    commit = "commitTransaction"
    completion = "(?s)aggregate.*autocommit"  # a new line may be among the bytes
    losses = (1, 2, 4)  # the driver sends a commit twice by itself
    lock = "doc"
    advice = "its error was caught"

    def furnish(self) -> None:
        client: MongoClient[Document] = MongoClient(self.url)
        with client:  # here and not by transactions that race for it
            client.get_default_database().create_collection("booking")

    async def book(self, connection: AsyncClientSession, customer: str) -> None:
        booking = connection.client.get_default_database().booking
        await booking.insert_one({"customer": customer}, session=connection)

    def book_sync(self, connection: ClientSession, customer: str) -> None:
        booking = connection.client.get_default_database().booking
        booking.insert_one({"customer": customer}, session=connection)

    async def count(self, connection: AsyncClientSession) -> int:
        booking = connection.client.get_default_database().booking
        return await booking.count_documents({}, session=connection)

    def count_sync(self, connection: ClientSession) -> int:
        booking = connection.client.get_default_database().booking
        return booking.count_documents({}, session=connection)

    async def end(self, connection: AsyncClientSession) -> None:
        await AsyncClientSession.abort_transaction(connection)

    def bookings(self) -> list[str]:
        client: MongoClient[Document] = MongoClient(self.url)
        with client:
            found = client.get_default_database().booking.find().sort("_id")
            return [one["customer"] for one in found]

    def proxy(self) -> Proxy:
        return MongoProxy(urlsplit(self.url).port or 0)

    def through(self, proxy: Proxy) -> Holdfast:
        name = urlsplit(self.url).path
        return self.app(f"mongodb://127.0.0.1:{proxy.port}{name}?directConnection=true")

    def attempts_after(self, fate: Fate) -> int:
        return 1  # a commit that the server never heard is sent again until it is

    async def stumble(self, connection: AsyncClientSession) -> None:
        booking = connection.client.get_default_database().booking
        await booking.insert_one({"_id": 1, "customer": "ada"}, session=connection)
        try:
            await booking.insert_one({"_id": 1, "customer": "ada"}, session=connection)
        except DuplicateKeyError:
            return
        raise AssertionError("the same booking was taken twice")
