"""Durable steps, as a handler sees them: run once, answered from the record ever after."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from holdfast import Context, EventTimeout, Retry, State
from holdfast.core.task import Cause
from holdfast.testing import MemoryApp


class Receipt(BaseModel):
    order: int
    paid_at: datetime


class TestSteps:
    def test_a_recorded_step_is_not_run_again(self, app: MemoryApp) -> None:
        calls: list[str] = []

        def called(what: str) -> str:
            calls.append(what)
            return what.upper()

        @app.task
        async def order(ctx: Context) -> list[str]:
            done = [await ctx.step("charge", called, "charge")]
            done.append(await ctx.step("pack", called, what="pack"))
            if ctx.attempt == 1:
                raise Retry(after=1)
            done.append(await ctx.step("send", called, "send"))
            return done

        handle = order.submit()
        app.drain("empty")

        assert handle.result() == ["CHARGE", "PACK", "SEND"]
        assert calls == ["charge", "pack", "send"]

    def test_a_step_that_raised_is_run_again(self, app: MemoryApp) -> None:
        calls: list[int] = []

        @app.task(retry="fixed(1s)")
        def order(ctx: Context) -> str:
            def charge() -> str:
                calls.append(ctx.attempt)
                if ctx.attempt < 3:
                    raise OSError("the bank is away")
                return "paid"

            return ctx.step_sync("charge", charge)

        handle = order.submit()
        app.drain("empty")

        assert handle.result() == "paid"
        assert calls == [1, 2, 3]

    def test_results_come_back_as_the_annotation_says_in_every_attempt(
        self, app: MemoryApp
    ) -> None:
        seen: list[object] = []
        at = datetime(2026, 5, 1, tzinfo=UTC)

        async def charge(order: int) -> Receipt:
            return Receipt(order=order, paid_at=at)

        def plain() -> Any:
            return (1, {"at": at})

        @app.task
        async def order(ctx: Context) -> None:
            seen.append(await ctx.step("charge", charge, 17))
            seen.append(await ctx.step("plain", plain))
            if ctx.attempt == 1:
                raise Retry(after=1)

        order.submit()
        app.drain("empty")

        expected = [Receipt(order=17, paid_at=at), [1, {"at": "2026-05-01T00:00:00Z"}]]
        assert seen == expected * 2

    def test_a_wrong_annotation_does_not_undo_the_step(self, app: MemoryApp) -> None:
        def charge() -> int:
            return "seven"  # type: ignore[return-value] # on purpose

        @app.task
        def order(ctx: Context) -> str:
            return str(ctx.step_sync("charge", charge))

        handle = order.submit()
        app.drain()

        assert handle.result() == "seven"

    @pytest.mark.parametrize(
        ("result", "said"),
        [
            (object(), "step 'charge': has no JSON form"),
            ({"a": [float("nan")]}, "step 'charge'.a[0]: "),
            ("x" * 2_000_000, "max_result"),
        ],
    )
    def test_a_result_that_cannot_be_recorded_fails_the_task(
        self, app: MemoryApp, result: object, said: str
    ) -> None:
        def charge() -> Any:
            return result

        @app.task
        def order(ctx: Context) -> None:
            ctx.step_sync("charge", charge)

        order.submit()
        (ran,) = app.drain()

        assert ran.state is State.FAILED
        assert ran.error is not None
        assert said in ran.error.message

    def test_a_name_that_is_used_twice_is_refused_with_the_fix(self, app: MemoryApp) -> None:
        @app.task
        def order(ctx: Context) -> None:
            for n in range(2):
                ctx.step_sync("charge", str, n)

        order.submit()
        (ran,) = app.drain()

        assert ran.state is State.FAILED
        assert ran.error is not None
        assert ran.error.type == "StepRefused"
        assert "`charge-1`, `charge-2`" in ran.error.message

    @pytest.mark.parametrize("name", ["", "$sleep:1", "x" * 201, "a\x00b", 7])
    def test_a_bad_name_is_refused(self, app: MemoryApp, name: Any) -> None:
        @app.task
        def order(ctx: Context) -> None:
            ctx.step_sync(name, int)

        order.submit()
        (ran,) = app.drain()

        assert ran.state is State.FAILED

    def test_an_async_function_needs_an_async_handler(self, app: MemoryApp) -> None:
        async def charge() -> None: ...

        @app.task
        def order(ctx: Context) -> None:
            ctx.step_sync("charge", charge)  # type: ignore[unused-coroutine] # on purpose

        order.submit()
        (ran,) = app.drain()

        assert ran.error is not None
        assert "step 'charge' is async, and this handler is not" in ran.error.message

    def test_an_operators_retry_goes_on_where_the_task_stood(self, app: MemoryApp) -> None:
        calls: list[str] = []

        @app.task(max_retries=0)
        def order(ctx: Context) -> None:
            ctx.step_sync("charge", calls.append, "charge")
            if ctx.attempt == 1:
                raise ValueError

        handle = order.submit()
        app.drain()
        assert handle.status() is State.DEAD_LETTER
        handle.retry()
        app.drain()

        assert handle.status() is State.COMPLETED
        assert calls == ["charge"]


class TestOrder:
    """What a later attempt may change."""

    def ended(self, app: MemoryApp, *ways: list[str]) -> tuple[State, str]:
        """Where a task gets whose attempts go these ways, and its last error."""

        @app.task(retry="fixed(1s)")
        def order(ctx: Context) -> None:
            way = ways[min(ctx.attempt, len(ways)) - 1]
            for step in way:
                match step.partition(":"):
                    case "sleep", _, _:
                        ctx.sleep_sync(0)
                    case "map", _, name:
                        ctx.map_sync(str, [1, 2], name=name)
                    case name, _, _:
                        ctx.step_sync(name, str)
            if ctx.attempt < len(ways):
                raise ValueError

        handle = order.submit()
        ran = app.drain("empty")
        error = ran[-1].error
        return handle.status(), "" if error is None else error.message

    @pytest.mark.parametrize(
        ("ways", "said"),
        [
            ([["a", "b"], ["a", "c"]], "number 2 of this handler's steps is step 'c', but an "),
            ([["a", "b"], ["b", "a"]], "step 'b', but an earlier attempt recorded step 'a' there"),
            ([["a", "b"], ["x", "a", "b"]], "is step 'x', but an earlier attempt recorded step 'a"),
            ([["a"], ["x", "a"]], "number 1 of this handler's steps is step 'x', but"),
            ([["a", "sleep", "b"], ["a", "b"]], "is step 'b', but an earlier attempt recorded sl"),
            ([["map:m", "b"], ["map:n", "b"]], "is step 'n-*', but an earlier attempt recorded s"),
            ([["a", "map:m"], ["map:m", "a"]], "is step 'm-*', but an earlier attempt recorded s"),
        ],
    )
    def test_another_way_is_found_out_and_not_tried_again(
        self, app: MemoryApp, ways: list[list[str]], said: str
    ) -> None:
        state, error = self.ended(app, *ways)

        assert state is State.FAILED
        assert said in error
        assert "new steps go to the end" in error

    @pytest.mark.parametrize(
        "ways",
        [
            [["a"], ["a", "b"], ["a", "b", "sleep", "map:c"]],
            [["a", "b"], ["a"]],
            [[], ["a"]],
            [["map:m", "a"], ["map:m", "a", "b"]],
        ],
    )
    def test_more_or_fewer_at_the_end_are_fine(self, app: MemoryApp, ways: list[list[str]]) -> None:
        assert self.ended(app, *ways)[0] is State.COMPLETED

    def test_steps_beside_the_handler_have_no_order(self, app: MemoryApp) -> None:
        calls: list[str] = []

        @app.task(retry="fixed(1s)")
        async def order(ctx: Context) -> None:
            async def branch(name: str, first: bool) -> None:
                async def called(what: str) -> None:
                    await asyncio.sleep(0 if first else 0.001)
                    calls.append(what)

                await ctx.step(f"{name}-1", called, f"{name}-1")
                await ctx.step(f"{name}-2", called, f"{name}-2")

            odd = ctx.attempt % 2 == 1
            await asyncio.gather(branch("a", odd), branch("b", not odd))
            await ctx.step("last", str)
            if ctx.attempt < 3:
                raise ValueError

        handle = order.submit()
        app.drain("empty")

        assert handle.status() is State.COMPLETED
        assert sorted(calls) == ["a-1", "a-2", "b-1", "b-2"]


class TestSleeping:
    def test_a_sleep_ends_the_attempt_and_charges_nothing(self, app: MemoryApp) -> None:
        seen: list[str] = []

        @app.task(max_retries=0)
        async def order(ctx: Context) -> str:
            await ctx.step("charge", seen.append, "charged")
            try:
                await ctx.sleep("3d")
            except Exception:  # noqa: BLE001 - what handlers write
                seen.append("swallowed")
            finally:
                seen.append("finally")
            await ctx.step("remind", seen.append, "reminded")
            await ctx.sleep(timedelta(hours=1))
            return "done"

        handle = order.submit()
        began = app.clock.now
        (first,) = app.drain()

        assert first.state is State.QUEUED
        assert handle.task().run_at - began == timedelta(days=3)
        assert app.why(handle.id).reasons[0][0] == "sleeping"
        assert "It sleeps until" in app.why(handle.id).sentence
        app.drain("empty")
        assert handle.result() == "done"
        assert app.clock.now - began == timedelta(days=3, hours=1)
        assert seen == ["charged", "finally", "finally", "reminded", "finally"]
        attempts = handle.history().attempts
        assert [(one.cause, one.charged) for one in attempts] == [
            (Cause.SUBMITTED, False),
            (Cause.RESUMED, False),
            (Cause.RESUMED, False),
        ]

    def test_a_sleep_is_counted_from_its_first_attempt(self, app: MemoryApp) -> None:
        """A worker that dies between the record and the end of its attempt starts no new sleep."""

        @app.task(retry="fixed(1h)")
        def order(ctx: Context) -> None:
            try:
                ctx.sleep_sync("3h")
            finally:
                if ctx.attempt == 1:
                    raise ValueError  # as if it had died here

        handle = order.submit()
        began = app.clock.now
        app.drain("empty")

        assert handle.status() is State.COMPLETED
        assert app.clock.now - began == timedelta(hours=3)

    def test_a_sleep_beside_the_handler_is_refused(self, app: MemoryApp) -> None:
        @app.task
        async def order(ctx: Context) -> None:
            await asyncio.gather(ctx.sleep("1h"), ctx.step("a", str))

        order.submit()
        (ran,) = app.drain()

        assert ran.state is State.FAILED
        assert ran.error is not None
        assert "only the handler itself may call it" in ran.error.message

    def test_a_sleep_while_a_step_runs_is_refused(self, app: MemoryApp) -> None:
        @app.task
        async def order(ctx: Context) -> None:
            step = asyncio.ensure_future(ctx.step("a", asyncio.sleep, 10))
            await asyncio.sleep(0)
            try:
                await ctx.sleep("1h")
            finally:
                step.cancel()

        order.submit()
        (ran,) = app.drain()

        assert ran.error is not None
        assert "1 of its steps still run" in ran.error.message


class TestMapping:
    @pytest.mark.parametrize("is_async", [True, False])
    def test_results_are_in_the_order_of_the_items_and_recorded_one_by_one(
        self, app: MemoryApp, is_async: bool
    ) -> None:
        calls: list[int] = []

        def double(n: int) -> int:
            calls.append(n)
            if n == 3 and calls.count(3) == 1:
                raise OSError
            return 2 * n

        async def order_async(ctx: Context) -> list[int]:
            return await ctx.map(double, range(6), concurrency=2)

        def order_sync(ctx: Context) -> list[int]:
            return ctx.map_sync(double, range(6), concurrency=2)

        order = app.task(name="order")(order_async if is_async else order_sync)
        handle = order.submit()
        app.drain("empty")

        assert handle.result() == [0, 2, 4, 6, 8, 10]
        assert sorted(calls) == [0, 1, 2, 3, 3, 4, 5]

    async def test_no_more_run_at_once_than_asked_for(self, app: MemoryApp) -> None:
        running, most = set[int](), 0

        async def hold(n: int) -> None:
            nonlocal most
            running.add(n)
            most = max(most, len(running))
            await asyncio.sleep(0.001)
            running.discard(n)

        @app.task
        async def order(ctx: Context) -> int:
            return len(await ctx.map(hold, range(20), name="hold", concurrency=3))

        await order.submit_async()
        (ran,) = await app.drain_async()

        assert (ran.result, most) == (20, 3)

    def test_of_nothing_is_nothing(self, app: MemoryApp) -> None:
        @app.task
        async def order(ctx: Context) -> list[int]:
            return [*ctx_list(await ctx.map(abs, [])), *ctx_list(await ctx.map(abs, [], name="b"))]

        def ctx_list(value: list[int]) -> list[int]:
            return value

        handle = order.submit()
        app.drain()

        assert handle.result() == []

    @pytest.mark.parametrize(
        ("words", "said"),
        [({"concurrency": 0}, "concurrency: expected a whole number from 1"), ({}, "name: <func")],
    )
    def test_mistakes_are_named(self, app: MemoryApp, words: dict[str, Any], said: str) -> None:
        @app.task(max_retries=0)
        def order(ctx: Context) -> None:
            ctx.map_sync(str if words else lambda n: n, [1], **words)

        order.submit()
        (ran,) = app.drain()

        assert ran.error is not None
        assert said in ran.error.message


class TestWaiting:
    def test_an_event_that_came_before_is_there_at_once(self, app: MemoryApp) -> None:
        @app.task
        async def order(ctx: Context) -> Any:
            return await ctx.wait_for("approved", key=17)

        assert app.emit("approved", 17, {"by": "ada"}).first
        handle = order.submit()
        ran = app.drain()

        assert handle.result() == {"by": "ada"}
        assert len(ran) == 1

    def test_of_two_emits_the_first_counts(self, app: MemoryApp) -> None:
        first, second = app.emit("approved", "a", 1), app.emit("approved", "a", 2)

        @app.task
        def order(ctx: Context) -> Any:
            return ctx.wait_for_sync("approved", key="a")

        handle = order.submit()
        app.drain()

        assert (first.first, second.first) == (True, False)
        assert handle.result() == 1

    def test_a_wait_that_is_too_long_ends_the_same_way_in_every_attempt(
        self, app: MemoryApp
    ) -> None:
        seen: list[str] = []

        @app.task(retry="fixed(1s)")
        async def order(ctx: Context) -> str:
            try:
                await ctx.wait_for("approved", key=17, timeout="7d")
            except EventTimeout as error:
                seen.append(str(error))
            if ctx.attempt == 2:
                raise ValueError
            return "went on"

        handle = order.submit()
        began = app.clock.now
        app.drain()
        why = app.why(handle.id)
        assert why.reasons[0][0] == "waiting_for_event"
        assert why.sentence.startswith(
            "It waits for the event 'approved' with key '17', at most until "
        )
        app.clock.advance(7 * 86_400.0)
        app.drain()
        app.emit("approved", 17)
        app.drain("empty")

        assert handle.result() == "went on"
        assert app.clock.now - began < timedelta(days=7, minutes=1)
        assert len(seen) == 2
        assert "event 'approved' with key '17' did not come in time" in seen[0]

    def test_one_that_nobody_catches_fails_the_task(self, app: MemoryApp) -> None:
        @app.task
        async def order(ctx: Context) -> None:
            await ctx.wait_for("approved", key=17, timeout=1)

        handle = order.submit()
        app.drain("empty")

        assert handle.status() is State.FAILED

    @pytest.mark.parametrize(
        ("event", "key", "said"),
        [
            ("not ok", 1, "event: expected a name without blanks"),
            ("ok", "", "key: expected text"),
            ("ok", "k" * 201, "key: expected 200 characters"),
            ("ok", 1.5, "key: expected text"),
        ],
    )
    def test_mistakes_are_named(self, app: MemoryApp, event: str, key: Any, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            app.emit(event, key)
