"""The decorator: what it keeps, what it reads, what it refuses."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from holdfast import (
    Batch,
    Breaker,
    Context,
    Fatal,
    InvalidArguments,
    InvalidOption,
    Rate,
    UnknownTask,
    exponential,
    fixed,
)
from holdfast.core.attempt import Claim
from holdfast.core.retry import RetryPolicy
from holdfast.core.task import Cause, Priority, TaskId, WorkerId
from holdfast.definitions.backoff import dump_policy
from holdfast.definitions.definition import Executor
from holdfast.definitions.options import BatchKeywords
from holdfast.definitions.stopping import Stopping
from holdfast.testing import MemoryApp

if TYPE_CHECKING:
    from holdfast.nowhere import Imaginary  # type: ignore[import-not-found]


def claim(**changes: Any) -> Claim:
    fields: dict[str, Any] = {
        "task_id": TaskId("t"),
        "attempt": 1,
        "worker_id": WorkerId("w"),
        "name": "n",
        "queue": "default",
        "priority": Priority.NORMAL,
        "payload": b"{}",
        "charged": 0,
        "max_retries": 3,
        "crash_count": 0,
        "timeout": 10.0,
        "retry": None,
        "lock": None,
        "fence": None,
        "cause": Cause.SUBMITTED,
        "trace": None,
        "owner": None,
        "cancel_requested": False,
    }
    return Claim(**(fields | changes))


class TestTheFunctionStaysItself:
    def test_a_sync_task_is_called_as_before(self, app: MemoryApp) -> None:
        @app.task
        def add(a: int, b: int = 2) -> int:
            return a + b

        assert add(1) == 3
        assert add("x", "y") == "xy"  # type: ignore[arg-type,comparison-overlap] # not validated

    async def test_an_async_task_is_awaited_as_before(self, app: MemoryApp) -> None:
        @app.task(queue="slow")
        async def add(a: int, b: int) -> int:
            await asyncio.sleep(0)
            return a + b

        assert await add(1, b=2) == 3

    def test_a_context_is_passed_by_hand_in_a_direct_call(self, app: MemoryApp) -> None:
        @app.task
        def who(ctx: Context, greeting: str) -> str:
            return f"{greeting} {ctx.id}"

        class Silent:
            def report(self, **_: object) -> None: ...
            def extend(self, seconds: float) -> None: ...
            def follow_up(self, new: object) -> None: ...
            def child(self, new: object) -> None: ...

            home = app
            stopping = Stopping()

            @property
            def steps(self) -> NoReturn:
                raise NotImplementedError

            def transaction(self) -> NoReturn:
                raise NotImplementedError

            def open_transaction(self) -> None: ...

        assert who(Context(claim(), Silent()), "hello") == "hello t"

    def test_its_name_doc_and_signature_are_kept(self, app: MemoryApp) -> None:
        @app.task
        def add(a: int, b: int = 2) -> int:
            """Add."""
            return a + b

        assert (add.__name__, add.__doc__, add.__module__) == ("add", "Add.", __name__)
        assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 2) -> 'int'"
        assert add.__wrapped__ is add.handler  # type: ignore[attr-defined] # by update_wrapper

    def test_attributes_of_the_function_do_not_become_options(self, app: MemoryApp) -> None:
        def add(a: int) -> int:
            return a

        add.queue = "other"  # type: ignore[attr-defined]

        assert app.task(add).queue == "default"

    def test_a_staticmethod_may_be_a_task(self, app: MemoryApp) -> None:
        class Shop:
            @staticmethod
            @app.task
            def add(a: int) -> int:
                return a

        handle = Shop.add.submit(4)
        app.drain()

        assert (Shop.add(3), Shop().add(3), handle.result()) == (3, 3, 4)


class TestNames:
    def test_a_task_is_named_after_its_module_and_function(self, app: MemoryApp) -> None:
        @app.task
        def add() -> None: ...

        assert add.name == f"{__name__}.TestNames.{inspect.stack()[0].function}.<locals>.add"
        assert app.registry[add.name] is add

    def test_a_name_may_be_given(self, app: MemoryApp) -> None:
        @app.task(name="shop.add")
        def add() -> None: ...

        assert (add.name, app.registry.names()) == ("shop.add", ("shop.add",))

    @pytest.mark.parametrize("how", [["shop.py"], ["-m", "shop"]])
    def test_a_script_names_its_tasks_after_its_file(self, tmp_path: Path, how: list[str]) -> None:
        (tmp_path / "shop.py").write_text(
            "from holdfast import Holdfast\n"
            "app = Holdfast(url='memory://')\n"
            "@app.task\n"
            "def add() -> None: ...\n"
            "print(add.name)\n"
        )

        done = subprocess.run(
            [sys.executable, *how], cwd=tmp_path, capture_output=True, text=True, check=True
        )

        assert done.stdout == "shop.add\n"

    def test_an_unknown_name_is_refused_with_the_closest(self, app: MemoryApp) -> None:
        @app.task(name="shop.send_mail")
        def send_mail() -> None: ...

        for wrong in ("send_mail", "snd_mail", "shop.sendmail"):
            with pytest.raises(UnknownTask, match=r"Did you mean 'shop\.send_mail'\?"):
                app.registry[wrong]
        with pytest.raises(UnknownTask, match="no task named 'x' is defined here"):
            app.submit_by_name("x", {})

    def test_two_functions_cannot_share_a_name(self, app: MemoryApp) -> None:
        @app.task(name="add")
        def one() -> None: ...

        with pytest.raises(InvalidOption, match=r"two functions would be task 'add'.*name="):

            @app.task(name="add")
            def two() -> None: ...

    def test_the_same_function_again_replaces_itself(self, app: MemoryApp) -> None:
        def add() -> None: ...

        app.task(add)

        assert app.registry[app.task(add).name].handler is add

    def test_a_task_is_decorated_once(self, app: MemoryApp) -> None:
        @app.task
        def add() -> None: ...

        with pytest.raises(InvalidOption, match="is a task already"):
            app.task(add)


class TestOptions:
    def test_every_option_is_read(self, app: MemoryApp) -> None:
        @app.task(
            name="n", queue="mail", priority="medium", max_retries=7, timeout="1m",
            timeout_growth=2, timeout_cap="3m", stop_grace="9s", retry=fixed("5s"),
            no_retry_for=KeyError, executor="process", memory_limit="64MiB", tags=["a", "b", "a"],
            requires={"gpu"}, unique=True, lock="doc:{doc}", secret_fields="doc", keep=False,
            concurrency=1, rate=Rate(2, per="3s"), fair_by="{doc}", breaker=Breaker(at_least=4),
        )  # fmt: skip
        def task(doc: int) -> None: ...

        @app.task(debounce="5s")
        def late() -> None: ...

        @app.task(throttle="5s")
        def early() -> None: ...

        @app.task(batch=Batch(max=7, within="5s"))
        def many(docs: list[int]) -> None: ...

        assert many.batch == (7, 5.0)
        assert late.coalescing is not None
        assert early.coalescing is not None
        assert (late.coalescing.seconds, early.coalescing.seconds) == (5.0, 5.0)
        assert task.queue == "mail"
        assert task.priority is Priority.NORMAL
        assert task.max_retries == 7
        assert (task.timeout, task.timeout_growth, task.timeout_cap) == (60.0, 2.0, 180.0)
        assert task.stop_grace == 9.0
        assert task.retry == RetryPolicy(base=5.0, multiplier=1.0, cap=5.0, jitter=False)
        assert task.no_retry_for == (KeyError,)
        assert task.executor is Executor.PROCESS
        assert task.memory_limit == 64 * 1024 * 1024
        assert (task.tags, task.requires) == (("a", "b"), frozenset({"gpu"}))
        assert task.secret_fields == ("doc",)
        assert task.keep is False
        assert [str(maker.kind) for maker in task.limits] == ["limit", "rate", "share", "breaker"]

    def test_the_test_above_names_every_option(self) -> None:
        source = inspect.getsource(self.test_every_option_is_read)

        assert [name for name in BatchKeywords.__annotations__ if f"{name}=" not in source] == []

    @pytest.mark.parametrize("option", ["callback", "idempotency_key"])
    def test_what_is_not_kept_promises_nothing_for_later(self, app: MemoryApp, option: Any) -> None:
        @app.task(keep=False)
        def ping() -> None: ...

        given: Any = {option: "https://example.org/"}
        with pytest.raises(InvalidOption, match=f"{option}: .*keep=False"):
            ping.options(**given).submit()

    def test_handlers_run_where_they_belong(self, app: MemoryApp) -> None:
        @app.task
        def plain() -> None: ...

        @app.task
        async def quick() -> None: ...

        @app.task(executor="process")
        async def heavy() -> None: ...

        executors = (plain.executor, quick.executor, heavy.executor)
        assert executors == (Executor.THREAD, Executor.ASYNC, Executor.PROCESS)

    @pytest.mark.parametrize(
        ("options", "option"),
        [
            ({"name": ""}, "name"), ({"name": "a b"}, "name"), ({"name": "x" * 201}, "name"),
            ({"queue": ""}, "queue"), ({"queue": "*"}, "queue"), ({"queue": "a,b"}, "queue"),
            ({"queue": "x" * 201}, "queue"), ({"queue": 3}, "queue"),
            ({"priority": "urgent"}, "priority"), ({"priority": 10}, "priority"),
            ({"max_retries": -1}, "max_retries"), ({"max_retries": True}, "max_retries"),
            ({"max_retries": "three"}, "max_retries"), ({"timeout": "soon"}, "timeout"),
            ({"timeout": 0}, "timeout"), ({"timeout_growth": 0.5}, "timeout_growth"),
            ({"timeout_cap": "x"}, "timeout_cap"), ({"retry": 5}, "retry"),
            ({"no_retry_for": "KeyError"}, "no_retry_for"), ({"executor": "threads"}, "executor"),
            ({"executor": "async"}, "executor"), ({"memory_limit": "64MiB"}, "memory_limit"),
            ({"executor": "process", "memory_limit": 5}, "memory_limit"),
            ({"tags": [""]}, "tags[0]"), ({"tags": 5}, "tags"), ({"tags": ["x", 1]}, "tags[1]"),
            ({"tags": [str(n) for n in range(51)]}, "tags"), ({"requires": [""]}, "requires[0]"),
            ({"lock": ""}, "lock"), ({"lock": "doc:{dok}"}, "lock"), ({"lock": "doc:{"}, "lock"),
            ({"lock": "doc:{}"}, "lock"), ({"lock": "doc:{0}"}, "lock"), ({"lock": 5}, "lock"),
            ({"unique": "{dok}"}, "unique"), ({"unique": 1.5}, "unique"), ({"quue": "x"}, "quue"),
        ],
    )  # fmt: skip
    def test_a_bad_option_is_refused_where_it_is_written(
        self, app: MemoryApp, options: Any, option: str
    ) -> None:
        def handler(doc: int) -> None: ...

        with pytest.raises(InvalidOption) as refused:
            app.task(**options)(handler)

        assert refused.value.option == option
        assert len(app.registry) == 0

    def test_a_misspelt_option_gets_a_hint(self, app: MemoryApp) -> None:
        with pytest.raises(InvalidOption, match="Did you mean 'priority'"):
            app.task(prioriti="high")(lambda: None)  # type: ignore[call-overload] # the point

    def test_a_misspelt_lock_template_gets_a_hint(self, app: MemoryApp) -> None:
        with pytest.raises(InvalidOption, match=r"names 'dok_id'.*Did you mean 'doc_id'\?"):

            @app.task(lock="doc:{dok_id}")
            def edit(doc_id: int) -> None: ...


class TestWhatCannotBeATask:
    def test_a_generator(self, app: MemoryApp) -> None:
        with pytest.raises(InvalidOption, match="is a generator"):

            @app.task
            def count() -> Iterator[int]:
                yield 1

    def test_a_method(self, app: MemoryApp) -> None:
        with pytest.raises(InvalidOption, match=r"is a method.*@staticmethod"):

            class Shop:
                @app.task
                def add(self, a: int) -> None: ...

    def test_a_class_or_a_value(self, app: MemoryApp) -> None:
        with pytest.raises(InvalidOption, match="expected a function"):
            app.task("mail")  # type: ignore[call-overload] # the point

    def test_a_context_in_second_place(self, app: MemoryApp) -> None:
        with pytest.raises(InvalidOption, match="not its first parameter"):

            @app.task
            def add(a: int, ctx: Context) -> None: ...

    def test_a_parameter_without_a_json_form(self, app: MemoryApp) -> None:
        with pytest.raises(InvalidArguments, match=r"without a JSON form.*pass ids or URLs"):

            @app.task
            def add(pool: asyncio.AbstractEventLoop) -> None: ...


class TestAnnotations:
    def test_a_class_of_the_surrounding_function_is_found(self, app: MemoryApp) -> None:
        @dataclass
        class Local:
            x: int

        @app.task
        def plain(it: Local) -> Local:
            return it

        @app.task(queue="q")
        def with_options(it: Local) -> Local:
            return it

        handles = [plain.submit(Local(1)), with_options.submit(Local(2))]
        app.drain()

        assert [handle.result() for handle in handles] == [Local(1), Local(2)]

    def test_a_class_defined_later_is_found_at_the_first_use(self, app: MemoryApp) -> None:
        @app.task
        def later(it: Later) -> Later:
            return it

        handle = later.submit(Later(1))
        app.drain()

        assert handle.result() == Later(1)

    def test_what_exists_for_type_checkers_only_is_refused_with_the_fix(
        self, app: MemoryApp
    ) -> None:
        @app.task
        def broken(it: Imaginary) -> None: ...

        with pytest.raises(InvalidArguments, match=r"'Imaginary' is not defined.*at the top level"):
            broken.call(1)

    def test_a_result_for_type_checkers_only_does_not_hinder_the_arguments(
        self, app: MemoryApp
    ) -> None:
        @app.task
        def half(it: int) -> Imaginary:
            return it

        assert half.load(half.call(1).payload) == ((), {"it": 1})

    def test_a_context_is_known_by_its_bare_name(self, app: MemoryApp) -> None:
        def handler(ctx, a: int) -> None: ...  # type: ignore[no-untyped-def]

        handler.__annotations__["ctx"] = "holdfast.Context"

        assert app.task(handler).parameters == ("a",)


@dataclass
class Later:
    x: int


class TestRetrying:
    def test_fatal_and_what_the_definition_names_are_not_retriable(self, app: MemoryApp) -> None:
        @app.task(no_retry_for=(KeyError, OSError))
        def add() -> None: ...

        for error in (Fatal(), KeyError(), FileNotFoundError(), InvalidArguments("x")):
            assert add.is_retriable(error) is False
        assert add.is_retriable(ValueError()) is True
        assert add.is_retriable(LookupError()) is True

    def test_the_submit_wins_over_the_definition_and_that_over_the_default(
        self, app: MemoryApp
    ) -> None:
        @app.task(retry=fixed(7))
        def defined() -> None: ...

        @app.task
        def bare() -> None: ...

        own = dump_policy(exponential(1, 10, cap="1m", jitter=False))
        default = RetryPolicy(base=3.0, jitter=False)

        def delays(task: Any, retry: str | None) -> list[float]:
            backoff = task.backoff(claim(retry=retry), lambda: 0.5, default)
            return [backoff(n) for n in (1, 2, 3)]

        assert delays(defined, own) == [1.0, 10.0, 60.0]
        assert delays(defined, None) == [7.0, 7.0, 7.0]
        assert delays(bare, None) == [3.0, 6.0, 12.0]

    def test_jitter_is_drawn_for_every_delay(self, app: MemoryApp) -> None:
        @app.task(retry=exponential(8, 1))
        def add() -> None: ...

        draws = iter([0.0, 0.5, 1.0])
        backoff = add.backoff(claim(), lambda: next(draws), RetryPolicy())

        assert [backoff(1), backoff(2), backoff(3)] == [0.0, 4.0, 8.0]

    def test_a_function_of_ones_own_says_the_seconds(self, app: MemoryApp) -> None:
        @app.task(retry=lambda attempt: attempt * 100)
        def add() -> None: ...

        backoff = add.backoff(claim(), lambda: 0.5, RetryPolicy())

        assert [backoff(1), backoff(2)] == [100.0, 200.0]

    def test_presets_take_durations_and_refuse_nonsense(self) -> None:
        assert exponential("1m", 3, cap="PT1H") == exponential(60, 3, cap=3600)
        with pytest.raises(InvalidOption, match=r"^base: expected a duration"):
            exponential("soon")
        with pytest.raises(InvalidOption, match=r"^multiplier: expected a number"):
            exponential(1, 0.5)
        with pytest.raises(InvalidOption, match=r"^cap: expected a duration"):
            exponential(cap=-1)
        with pytest.raises(InvalidOption, match=r"^delay: expected a duration"):
            fixed("later")

    @pytest.mark.parametrize("answer", [-1, float("nan"), float("inf"), "x", None, KeyError])
    def test_a_function_that_fails_costs_no_retry(self, app: MemoryApp, answer: Any) -> None:
        def broken(attempt: int) -> float:
            if isinstance(answer, type):
                raise answer
            return answer  # type: ignore[no-any-return]

        @app.task(retry=broken)
        def add() -> None: ...

        backoff = add.backoff(claim(), lambda: 0.5, RetryPolicy(base=4.0))

        assert backoff(1) == 2.0

    def test_a_timeout_grows_with_every_charged_attempt_up_to_its_cap(self, app: MemoryApp) -> None:
        @app.task(timeout=10, timeout_growth=2, timeout_cap="1m")
        def slow() -> None: ...

        limits = [slow.timeout_of(claim(charged=n)) for n in (0, 1, 2, 3, 1000)]

        assert limits == [10.0, 20.0, 40.0, 60.0, 60.0]
        assert slow.timeout_of(claim(timeout=None)) is None
