"""Running tasks in tests: the worker's way, without a worker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    Context,
    Fatal,
    Holdfast,
    HoldfastError,
    Retry,
    Snooze,
    State,
    TaskFailed,
    context,
    fixed,
)
from holdfast.core.task import AttemptEnd, Cause
from holdfast.testing import FakeClock, MemoryApp, in_memory


class TestDraining:
    def test_runs_what_is_ready_most_urgent_first_and_says_what_ran(self, app: MemoryApp) -> None:
        @app.task(name="work")
        def work(n: int) -> int:
            return n * 2

        work.submit(1)
        work.options(priority="high").submit(2)
        work.options(delay=1).submit(3)

        ran = app.drain()

        assert [(r.name, r.attempt, r.state, r.result) for r in ran] == [
            ("work", 1, State.COMPLETED, 4),
            ("work", 1, State.COMPLETED, 2),
        ]
        assert app.drain() == []

    def test_runs_what_the_tasks_submit(self, app: MemoryApp) -> None:
        @app.task
        def count(n: int) -> None:
            if n:
                count.submit(n - 1)

        @app.task
        async def count_async(n: int) -> None:
            if n:
                await count_async.submit_async(n - 1)

        count.submit(3)
        count_async.submit(3)

        assert len(app.drain()) == 8

    def test_an_async_handler_may_use_sync_verbs(self, app: MemoryApp) -> None:
        @app.task
        async def parent(n: int) -> State:
            return parent.options(delay=1).submit(n - 1).status()

        handle = parent.submit(1)
        app.drain()

        assert handle.result() == "queued"

    async def test_async_tests_drain_too(self, app: MemoryApp) -> None:
        @app.task
        async def work() -> str:
            await asyncio.sleep(0)
            return threading.current_thread().name

        first = await work.submit_async()
        await app.drain_async()
        second = await work.submit_async()
        app.drain()  # a sync call inside a running loop

        assert (await first, await second) == ("MainThread", "holdfast-bridge")

    def test_sync_handlers_run_in_the_thread_of_the_test(self, app: MemoryApp) -> None:
        @app.task
        def where() -> str:
            return threading.current_thread().name

        handle = where.submit()
        app.drain()

        assert handle.result() == threading.current_thread().name

    def test_idle_leaves_retries_and_empty_moves_the_clock_to_them(self, app: MemoryApp) -> None:
        @app.task(retry=fixed("10m"), max_retries=2)
        def flaky(ctx: Context) -> int:
            if ctx.attempt < 3:
                raise ConnectionError("away")
            return ctx.attempt

        handle = flaky.submit()
        began = app.clock.now

        assert [r.state for r in app.drain()] == [State.RETRYING]
        assert [r.state for r in app.drain("empty")] == [State.RETRYING, State.COMPLETED]
        assert handle.result() == 3
        assert (app.clock.now - began).total_seconds() == pytest.approx(1200, abs=0.01)

    def test_moving_the_clock_by_hand_makes_work_due(self, app: MemoryApp) -> None:
        @app.task
        def work() -> None: ...

        work.options(delay="1h").submit()

        app.clock.advance(3599)
        assert app.drain() == []
        app.clock.advance(1)
        assert len(app.drain()) == 1

    def test_outcomes_are_those_of_a_worker(self, app: MemoryApp) -> None:
        @app.task(max_retries=1, retry=fixed(5))
        def work(how: str) -> None:
            match how:
                case "fatal":
                    raise Fatal("no")
                case "retry":
                    raise Retry(after=7)
                case "snooze":
                    raise Snooze(after=9)
                case "error":
                    raise KeyError("k")

        handles = {how: work.submit(how) for how in ("fatal", "retry", "snooze", "error", "fine")}
        ran = {r.task_id: r for r in app.drain()}

        states = {how: ran[handle.id].state for how, handle in handles.items()}
        assert states == {
            "fatal": State.FAILED,
            "retry": State.RETRYING,
            "snooze": State.QUEUED,
            "error": State.RETRYING,
            "fine": State.COMPLETED,
        }
        waits = {
            how: (handles[how].task().run_at - app.clock.now).total_seconds()
            for how in ("retry", "snooze", "error")
        }
        assert waits == {"retry": 7.0, "snooze": 9.0, "error": 5.0}
        assert handles["snooze"].history().attempts[0].ended is AttemptEnd.RELEASED
        error = ran[handles["error"].id].error
        assert error is not None
        assert (error.type, error.message) == ("KeyError", "'k'")

    def test_an_async_body_runs_into_its_timeout(self, app: MemoryApp) -> None:
        @app.task(timeout=0.01, max_retries=0)
        async def slow() -> None:
            await asyncio.Event().wait()

        handle = slow.submit()
        (ran,) = app.drain()

        assert (ran.state, ran.error and ran.error.type) == (State.DEAD_LETTER, "AttemptTimeout")
        assert handle.history().attempts[0].ended is AttemptEnd.TIMEOUT

    def test_a_timeout_error_of_the_body_itself_is_an_error(self, app: MemoryApp) -> None:
        @app.task(max_retries=0)
        async def slow() -> None:
            raise TimeoutError("the other side")

        handle = slow.submit()
        app.drain()

        assert handle.history().attempts[0].ended is AttemptEnd.ERROR

    def test_stored_arguments_that_no_longer_fit_make_a_dead_letter(self, app: MemoryApp) -> None:
        def version_1(n: int) -> None: ...

        def version_2(n: int, m: int) -> None: ...

        handle = app.task(name="work")(version_1).submit(1)
        del app.registry._definitions["work"]
        app.task(name="work")(version_2)
        app.drain()

        with pytest.raises(TaskFailed, match="another version of the function") as failed:
            handle.result()
        assert failed.value.state == "dead_letter"

    def test_an_unknown_task_fails(self, app: MemoryApp) -> None:
        @app.task(name="work")
        def work() -> None: ...

        handle = work.submit()
        del app.registry._definitions["work"]
        app.drain()

        with pytest.raises(TaskFailed, match="no task named 'work'"):
            handle.result()

    def test_a_result_that_cannot_be_stored_fails_the_task(self, app: MemoryApp) -> None:
        @app.task
        def work() -> Any:
            return object()

        handle = work.submit()
        app.drain()

        with pytest.raises(TaskFailed, match="its result cannot be stored"):
            handle.result()

    def test_capabilities_are_taken_on_as_needed(self, app: MemoryApp) -> None:
        @app.task(requires={"gpu", "disk"})
        def work() -> None: ...

        work.submit()
        work.options(requires={"other"}).submit()

        assert len(app.drain()) == 2

    def test_locks_and_their_fences_hold(self, app: MemoryApp) -> None:
        fences: list[int | None] = []

        @app.task(lock="k")
        def work(ctx: Context) -> None:
            fences.append(ctx.fence)

        app.submit_many([work.call(), work.call()])
        app.drain()

        assert None not in fences
        assert fences == sorted(set(fences), key=lambda fence: fence or 0)

    def test_progress_cost_and_log_are_stored(self, app: MemoryApp) -> None:
        @app.task
        def work(ctx: Context) -> None:
            ctx.progress(1, 2, "half")
            context().cost(1.5, tokens_in=3)
            context().log("line")
            ctx.extend("5m")
            assert not ctx.stop_requested

        handle = work.submit()
        app.drain(reraise=True)

        kept = handle.task()
        assert kept.progress is not None
        assert (kept.progress.done, kept.progress.message) == (1.0, "half")
        assert (kept.cost.units, kept.cost.tokens_in) == (1.5, 3)
        assert [e.detail for e in handle.history().events if e.kind == "log"] == ["line"]

    def test_there_is_no_context_outside_of_a_task(self, app: MemoryApp) -> None:
        @app.task
        def work() -> str:
            return context().name

        work.submit()
        app.drain()

        with pytest.raises(HoldfastError, match="no task is running here"):
            context()

    def test_errors_may_be_raised_in_the_test(self, app: MemoryApp) -> None:
        @app.task
        def work() -> None:
            raise KeyError("k")

        handle = work.submit()
        with pytest.raises(KeyError):
            app.drain(reraise=True)

        assert handle.status() is State.RETRYING

    def test_a_task_that_submits_itself_for_ever_is_stopped(self, app: MemoryApp) -> None:
        @app.task
        def again() -> None:
            again.submit()

        again.submit()
        with pytest.raises(HoldfastError, match="drain made 20 attempts and there is more to do"):
            app.drain(most=20)

        (waiting,) = app.list(state="queued").tasks
        assert (waiting.charged, waiting.cause) == (0, Cause.RELEASED)

    def test_exactly_the_most_is_not_too_much(self, app: MemoryApp) -> None:
        @app.task
        def work() -> None: ...

        app.submit_many([work.call()] * 3)

        assert len(app.drain(most=3)) == 3


class TestInMemory:
    def test_an_app_defined_elsewhere_is_in_memory_for_a_while(self, tmp_path: Path) -> None:
        app = Holdfast(url=f"sqlite:///{tmp_path}/tasks.db")

        @app.task
        def work(data: bytes) -> bytes:
            return data

        with in_memory(app) as memory:
            handle = work.submit(b"\xff")
            memory.drain()
            assert handle.result() == b"\xff"
            assert memory.app is app

        assert not (tmp_path / "tasks.db").exists()
        with app:
            assert app.count() == 0

    def test_it_may_be_nested_and_each_has_its_own_tasks(self, app: MemoryApp) -> None:
        @app.task
        def work() -> None: ...

        work.submit()
        with in_memory(app) as outer:
            with in_memory(app):
                assert app.count() == 0
                work.submit()
            assert outer.drain() == []
        assert app.count() == 1

    def test_its_clock_begins_now_or_where_one_says(self, app: MemoryApp) -> None:
        clock = FakeClock()
        with in_memory(app, clock=clock) as memory:
            assert memory.clock is clock
        with in_memory(app) as memory:
            assert abs((memory.clock.now - app.clock.now).total_seconds()) < 60

    def test_settings_of_the_memory_app_hold(self) -> None:
        app = MemoryApp(max_retries=0, url="sqlite:///never.db")

        @app.task
        def work() -> None:
            raise KeyError

        work.submit()

        assert [ran.state for ran in app.drain()] == [State.DEAD_LETTER]


def test_the_pytest_fixture_is_found_by_itself(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(
        "from holdfast import Holdfast\n"
        "app = Holdfast(url='sqlite:////nowhere/at/all.db')\n"
        "@app.task\n"
        "def double(n: int) -> int:\n"
        "    return n * 2\n"
        "def test_double(holdfast_memory):\n"
        "    memory = holdfast_memory(app)\n"
        "    handle = double.submit(2)\n"
        "    memory.drain()\n"
        "    assert handle.result() == 4\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:asyncio", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "1 passed" in done.stdout, done.stdout + done.stderr
