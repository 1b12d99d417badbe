"""The MongoDB that tests start: it keeps what its journal got, and ends with its owner."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from pymongo import MongoClient
from pymongo.write_concern import WriteConcern

from holdfast.testing.eventually import eventually
from holdfast.testing.servers import processes
from holdfast.testing.servers.mongo import GivenMongo, MongoServer

Document = dict[str, object]


def client_of(server: MongoServer) -> MongoClient[Document]:
    return MongoClient(server.url(), serverSelectionTimeoutMS=5_000)


def test_what_was_journaled_survives_a_kill(own_mongo: MongoServer) -> None:
    with client_of(own_mongo) as client:
        journaled = client["shop"].get_collection(
            "orders", write_concern=WriteConcern("majority", j=True)
        )
        journaled.insert_many([{"_id": number} for number in range(100)])

        own_mongo.restart()

        assert client["shop"]["orders"].count_documents({}) == 100


@pytest.mark.parametrize("standalone", [False, True])
def test_it_says_whether_it_is_a_replica_set(standalone: bool) -> None:
    with MongoServer(standalone=standalone) as server, client_of(server) as client:
        assert ("setName" in client.admin.command("hello")) is not standalone


async def test_it_ends_with_the_process_that_wanted_it() -> None:
    pid = await asyncio.to_thread(_start_and_leave)

    assert pid > 0
    await eventually(lambda: not processes.is_alive(pid), within=20.0)


def _start_and_leave() -> int:
    script = (
        "from holdfast.testing.servers.mongo import MongoServer\n"
        "print(MongoServer().start().pid, flush=True)\n"
    )
    started = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return int(started.stdout)


def test_a_given_server_keeps_its_options_and_changes_its_database() -> None:
    given = GivenMongo("mongodb://me:word@db1,db2/admin?replicaSet=rs0&authSource=admin")

    assert given.url("shop") == "mongodb://me:word@db1,db2/shop?replicaSet=rs0&authSource=admin"
