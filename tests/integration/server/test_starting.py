"""A server that is started while its store is away: it answers, says why, and serves by itself as
soon as the store is there.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.server.shop import make_app
from tests.kit.servers.mongo import MongoServer
from tests.kit.servers.postgres import PostgresServer

from holdfast import ConfigError, Holdfast, SchemaMismatch
from holdfast.errors import StoreRefused
from holdfast.server.running import serve
from holdfast.testing.eventually import eventually

PATIENCE = 20.0
BODY = {"task_type": "shop.add", "parameters": {"a": 1}}


@asynccontextmanager
async def started(
    app: Holdfast, *, host: str = "127.0.0.1"
) -> AsyncIterator[tuple[httpx.AsyncClient, asyncio.Task[None]]]:
    """A client of a server that may have no store yet, and the serving."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stopping = asyncio.Event()
    serving = asyncio.create_task(
        serve(app, port=0, announce=ready.set_result, stopping=stopping, host=host)
    )
    first: list[asyncio.Future[Any]] = [ready, serving]
    await asyncio.wait(first, timeout=PATIENCE, return_when="FIRST_COMPLETED")
    if serving.done():
        serving.result()
    try:
        async with httpx.AsyncClient(base_url=ready.result(), timeout=PATIENCE) as client:
            yield client, serving
    finally:
        stopping.set()
        await asyncio.wait({serving}, timeout=PATIENCE)


async def says_why_and_serves_later(app: Holdfast, bring: Callable[[], object]) -> None:
    async with started(app) as (client, serving):
        assert (await client.get("/healthz")).status_code == 200
        ready = await client.get("/readyz")
        refused = await client.post(
            "/api/v1/tasks", json=BODY, headers={"Authorization": "Bearer x"}
        )

        assert (ready.status_code, ready.json()["missing"]) == (503, ["store"])
        assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
        assert not serving.done()

        await asyncio.to_thread(bring)

        await eventually(lambda: _is_ready(client), within=PATIENCE, every=0.1)
        _, token = await app.client.tokens.create("t", ["submit"])
        sent = await client.post(
            "/api/v1/tasks", json=BODY, headers={"Authorization": f"Bearer {token}"}
        )
        assert sent.status_code == 201
    assert serving.exception() is None


async def _is_ready(client: httpx.AsyncClient) -> bool:
    return (await client.get("/readyz")).status_code == 200


async def test_it_answers_while_the_folder_of_its_file_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "later"

    await says_why_and_serves_later(make_app(f"sqlite:///{folder}/tasks.db"), folder.mkdir)


async def test_it_answers_while_postgresql_is_away(own_postgres: PostgresServer) -> None:
    app = make_app(own_postgres.url())
    await asyncio.to_thread(own_postgres.stop)

    await says_why_and_serves_later(app, own_postgres.start)


async def test_it_answers_while_mongodb_is_away(own_mongo: MongoServer) -> None:
    app = make_app(own_mongo.url("tasks"))
    await asyncio.to_thread(own_mongo.stop)

    await says_why_and_serves_later(app, own_mongo.start)


async def test_it_ends_if_the_store_that_came_has_another_schema(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    async with started(make_app(f"sqlite:///{folder}/tasks.db")) as (_, serving):
        with sqlite3.connect(tmp_path / "other.db") as other:
            other.execute("PRAGMA user_version = 999")
            other.execute("CREATE TABLE task (id)")
        other.close()
        (tmp_path / "new").mkdir()
        (tmp_path / "other.db").rename(tmp_path / "new" / "tasks.db")
        (tmp_path / "new").rename(folder)

        await asyncio.wait({serving}, timeout=PATIENCE)

        assert isinstance(serving.exception(), SchemaMismatch)


async def test_it_ends_if_the_store_that_came_has_no_token_and_the_door_is_open(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "later"
    app = make_app(f"sqlite:///{folder}/tasks.db")
    async with started(app, host="0.0.0.0") as (_, serving):
        folder.mkdir()

        await asyncio.wait({serving}, timeout=PATIENCE)

        assert isinstance(serving.exception(), ConfigError)


async def test_an_account_that_is_refused_opens_no_door(postgres: PostgresServer) -> None:
    app = make_app(postgres.url().replace(postgres.password, "wrong"))

    with pytest.raises(StoreRefused):
        async with started(app):
            pass


async def test_a_file_that_was_deleted_under_a_server_makes_it_unready(tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path}/tasks.db")
    async with started(app) as (client, _):
        _, token = await app.client.tokens.create("t", ["submit"])
        headers = {"Authorization": f"Bearer {token}"}
        (tmp_path / "tasks.db").rename(tmp_path / "elsewhere.db")

        refused = await client.post("/api/v1/tasks", json=BODY, headers=headers)
        ready = await client.get("/readyz")

        assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
        assert (ready.status_code, ready.json()["missing"]) == (503, ["store"])
        (tmp_path / "elsewhere.db").rename(tmp_path / "tasks.db")
        await eventually(lambda: _is_ready(client), within=PATIENCE, every=0.1)
