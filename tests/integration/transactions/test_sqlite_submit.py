"""Submitting inside one's own SQLite transaction: visible at commit, gone at rollback."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, State
from holdfast.definitions.definition import Definition
from holdfast.errors import IdempotencyConflict, InvalidOption, Unsupported
from holdfast.testing import MemoryApp


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def app(path: Path) -> Iterator[Holdfast]:
    app = Holdfast(url=f"sqlite:///{path}")

    @app.task(name="send")
    def send(customer: str) -> str:
        return customer

    with app:
        yield app


@pytest.fixture
def send(app: Holdfast) -> Definition[..., Any, Any]:
    return app.registry["send"]


@pytest.fixture
def mine(app: Holdfast, path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE booking (customer TEXT NOT NULL)")
        yield db


def test_it_is_seen_when_the_caller_commits(
    app: Holdfast, send: Definition[..., Any, Any], mine: sqlite3.Connection
) -> None:
    mine.execute("INSERT INTO booking VALUES ('ada')")
    handle = send.options(connection=mine, tags="x").submit("ada")

    assert handle.created
    assert app.count() == 0
    mine.commit()
    assert handle.status() is State.QUEUED
    assert app.stats().queues[0].ready == 1


def test_it_is_gone_when_the_caller_rolls_back(
    app: Holdfast, send: Definition[..., Any, Any], mine: sqlite3.Connection
) -> None:
    send.options(connection=mine, queue="new-lane").submit("ada")
    mine.rollback()

    assert app.count() == 0
    assert send.options(queue="new-lane").submit("bob").status() is State.QUEUED
    assert list(app.doctor()) == []


def test_many_go_through_one_connection(
    app: Holdfast, send: Definition[..., Any, Any], mine: sqlite3.Connection
) -> None:
    with mine:
        mine.execute("INSERT INTO booking VALUES ('ada')")
        handles = app.submit_many([send.call(str(n)) for n in range(20)], connection=mine)

    assert len({handle.id for handle in handles}) == 20
    assert app.count() == 20
    assert list(app.doctor()) == []


@pytest.mark.parametrize("factory", [sqlite3.Row, lambda cursor, row: {"row": row}])
def test_the_callers_row_factory_is_kept_and_does_no_harm(
    send: Definition[..., Any, Any], mine: sqlite3.Connection, factory: Any
) -> None:
    mine.row_factory = factory

    send.options(connection=mine, unique_key="u", lock="l").submit("ada")
    again = send.options(connection=mine, unique_key="u").submit("ada")

    assert not again.created
    assert mine.row_factory is factory


def test_a_conflict_leaves_the_callers_transaction_alone(
    app: Holdfast, send: Definition[..., Any, Any], mine: sqlite3.Connection
) -> None:
    send.options(idempotency_key="k").submit("ada")

    mine.execute("INSERT INTO booking VALUES ('ada')")
    with pytest.raises(IdempotencyConflict):
        send.options(connection=mine, idempotency_key="k").submit("bob")
    mine.commit()

    assert mine.execute("SELECT * FROM booking").fetchall() == [("ada",)]
    assert app.count() == 1


def test_a_connection_in_autocommit_submits_at_once(
    app: Holdfast, send: Definition[..., Any, Any], path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as mine:
        send.options(connection=mine).submit("ada")

        assert not mine.in_transaction
        assert app.count() == 1


def test_a_connection_to_another_file_is_refused(
    app: Holdfast, send: Definition[..., Any, Any], tmp_path: Path
) -> None:
    for place in (tmp_path / "other.db", ":memory:"):
        with (
            closing(sqlite3.connect(place)) as other,
            pytest.raises(InvalidOption, match="where this app keeps its tasks"),
        ):
            send.options(connection=other).submit("ada")

    assert app.count() == 0


async def test_a_sync_connection_is_refused_by_async_submits(
    send: Definition[..., Any, Any], mine: sqlite3.Connection
) -> None:
    with pytest.raises(InvalidOption, match="synchronous"):
        await send.options(connection=mine).submit_async("ada")


def test_calls_with_two_connections_are_refused(
    app: Holdfast, send: Definition[..., Any, Any], mine: sqlite3.Connection
) -> None:
    call = send.options(connection=mine).call("ada")

    with pytest.raises(InvalidOption, match="one connection"):
        app.submit_many([call], connection=object())


def test_a_store_in_memory_refuses(mine: sqlite3.Connection) -> None:
    memory = MemoryApp()

    @memory.task
    def send() -> None: ...

    with pytest.raises(Unsupported, match="sqlite:///"):
        send.options(connection=mine).submit()


def test_sqlalchemy_and_its_sessions_are_taken_too(
    app: Holdfast, send: Definition[..., Any, Any], path: Path
) -> None:
    import sqlalchemy
    from sqlalchemy.orm import Session

    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    try:
        with engine.begin() as connection:
            send.options(connection=connection).submit("ada")
        with Session(engine) as session:
            send.options(connection=session).submit("bob")
            session.commit()
        with Session(engine) as session:
            send.options(connection=session).submit("nobody")
            session.rollback()
    finally:
        engine.dispose()

    assert app.count() == 2
