"""What surrounds submits, and that nothing does where there is no middleware."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    Added,
    Call,
    Context,
    Holdfast,
    HoldfastError,
    InvalidOption,
    Middleware,
    NextRun,
    NextSettle,
    NextSubmit,
    Outcome,
)
from holdfast.core.attempt import Claim, Settlement
from holdfast.definitions.registry import Registry
from holdfast.testing import MemoryApp
from holdfast.worker.middleware import around_run, around_settle
from holdfast.worker.run import Run


class Stamp(Middleware):
    """Gives every task a tag."""

    def __init__(self, word: str = "eu") -> None:
        self.word = word

    async def submit(self, calls: Sequence[Call[Any]], call_next: NextSubmit) -> Sequence[Added]:
        return await call_next([call.with_options(tags=[self.word]) for call in calls])


def test_every_way_to_submit_goes_through_it() -> None:
    app = MemoryApp()

    @app.task(tags=["mail"])
    def send(to: str) -> str:
        return to

    @app.task
    def follow(ctx: Context) -> str:
        return ctx.submit(send, "follow-up").id

    app.middleware(Stamp())
    one = send.submit("ada")
    more = app.submit_many([send.options(tags=["own"]).call("bob"), send.call("eve")])
    named = app.submit_by_name(send.name, {"to": "dan"})
    started = follow.submit()
    app.drain()

    ids = [one.id, *(each.id for each in more), named.id, started.result()]
    assert [app.get(each).tags for each in ids] == [
        ("mail", "eu"),
        ("mail", "own", "eu"),
        ("mail", "eu"),
        ("mail", "eu"),
        ("mail", "eu"),
    ]


def test_a_submit_through_ones_own_connection_goes_through_it_too(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    app = Holdfast(url=f"sqlite:///{path}")
    app.middleware(Stamp())

    @app.task
    def send(to: str) -> None: ...

    with app, closing(sqlite3.connect(path)) as connection:
        task = send.options(connection=connection).submit("ada")
        connection.commit()

        assert app.get(task.id).tags == ("eu",)


def test_the_first_is_the_outermost() -> None:
    app = MemoryApp()
    app.middleware(Stamp("first"))
    app.middleware(Stamp("second"))

    @app.task
    def send() -> None: ...

    assert app.get(send.submit().id).tags == ("first", "second")


def test_as_a_decorator_it_makes_one_of_the_class() -> None:
    app = MemoryApp()
    app.middleware(Stamp)

    @app.task
    def send() -> None: ...

    assert app.get(send.submit().id).tags == ("eu",)


def test_what_it_raises_reaches_the_caller_and_nothing_is_submitted() -> None:
    app = MemoryApp()

    @app.middleware
    class Closed(Middleware):
        async def submit(
            self, calls: Sequence[Call[Any]], call_next: NextSubmit
        ) -> Sequence[Added]:
            raise PermissionError("closed")

    @app.task
    def send() -> None: ...

    with pytest.raises(PermissionError, match="closed"):
        send.submit()
    assert app.count() == 0


def test_fewer_answers_than_calls_are_refused_with_its_name() -> None:
    app = MemoryApp()

    @app.middleware
    class Dropping(Middleware):
        async def submit(
            self, calls: Sequence[Call[Any]], call_next: NextSubmit
        ) -> Sequence[Added]:
            return await call_next(calls[1:])

    @app.task
    def send() -> None: ...

    with pytest.raises(HoldfastError, match=r"Dropping\.submit was given 2 calls"):
        app.submit_many([send.call(), send.call()])


def test_one_that_waits_cannot_surround_a_submit_that_cannot(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    app = Holdfast(url=f"sqlite:///{path}")

    @app.middleware
    class Waiting(Middleware):
        async def submit(
            self, calls: Sequence[Call[Any]], call_next: NextSubmit
        ) -> Sequence[Added]:
            await asyncio.sleep(0)
            return await call_next(calls)

    @app.task
    def send() -> None: ...

    with app, closing(sqlite3.connect(path)) as connection:
        with pytest.raises(HoldfastError, match="Let its `submit` await nothing but"):
            send.options(connection=connection).submit()
        connection.commit()

        assert app.get(send.submit().id).name == send.name  # this one can
        assert app.count() == 1


def test_a_drain_in_a_test_runs_it_as_a_worker_would() -> None:
    app, seen = MemoryApp(), list[str]()

    @app.middleware
    class Noting(Middleware):
        async def run(self, ctx: Context, call_next: NextRun) -> Outcome:
            seen.append(f"runs {ctx.name}")
            return await call_next()

        def settle(self, claim: Claim, outcome: Outcome, call_next: NextSettle) -> None:
            seen.append(f"becomes {call_next(outcome).state}")

    @app.task(name="send")
    def send() -> None: ...

    send.submit()
    app.drain()

    assert seen == ["runs send", "becomes completed"]


def test_without_any_nothing_stands_between() -> None:
    async def execute(run: Run) -> Outcome:
        raise NotImplementedError

    def enter(claim: Claim, outcome: Outcome) -> Settlement:
        raise NotImplementedError

    registry = Registry()
    registry.middleware.add(Stamp())  # which surrounds submits alone

    assert around_run(registry, execute) is execute
    assert around_settle(registry, enter) is enter


def test_what_is_no_middleware_is_refused() -> None:
    with pytest.raises(InvalidOption, match="expected a `Middleware`"):
        MemoryApp().middleware(print)  # type: ignore[type-var] # the mistake


def test_what_the_arguments_decide_stays_the_callers() -> None:
    app = MemoryApp()

    @app.task
    def send() -> None: ...

    with pytest.raises(InvalidOption, match="is the caller's"):
        send.call().with_options(unique_key="one")
