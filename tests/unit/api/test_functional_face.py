"""The minimum: functions on one default app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast import (
    Config,
    ConfigError,
    InvalidArguments,
    InvalidOption,
    NotInitialised,
    State,
    TaskNotFound,
    functional,
    get_task,
    get_task_sync,
    init,
    list_tasks,
    list_tasks_sync,
    submit_task,
    submit_task_sync,
    task,
)
from holdfast.definitions.registry import Registry
from holdfast.testing import in_memory


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """A default app that nobody has initialised."""
    registry, functional.HOME.registry = functional.HOME.registry, Registry()
    before = functional.HOME.swap_app(None)
    yield
    left = functional.HOME.swap_app(before)
    if left is not None:
        left.close()
    functional.HOME.registry = registry


@pytest.fixture
def greet() -> Any:
    @task(tags=["people"])
    def greet(name: str, greeting: str = "Hello") -> str:
        return f"{greeting}, {name}!"

    return greet


async def test_submit_run_and_look(greet: Any) -> None:
    init(Config(url="memory://"))

    first = await submit_task(greet, name="Ann", priority="high", tags=["vip"])
    await submit_task(greet, "Bob", greeting="Hi")
    await holdfast.run_worker(burst=True)

    done = await get_task(first)
    assert (done.state, done.priority, done.tags) == (State.COMPLETED, "high", ("people", "vip"))
    assert await first == "Hello, Ann!"
    assert [t.id for t in await list_tasks(tag="vip")] == [first.id]
    assert len(await list_tasks(limit=1)) == 1


def test_sync_code_has_the_same(greet: Any) -> None:
    init(url="memory://")

    handle = submit_task_sync(greet, "Ann", delay_seconds=60, max_retries=1, timeout_seconds=5)

    kept = get_task_sync(handle.id)
    assert (kept.max_retries, kept.timeout) == (1, 5.0)
    assert (kept.run_at - kept.created_at).total_seconds() == 60
    assert [t.id for t in list_tasks_sync(state="scheduled")] == [handle.id]


async def test_before_init_submitting_is_refused_with_the_fix(greet: Any) -> None:
    for attempt in (submit_task(greet, "Ann"), get_task("x"), list_tasks()):
        with pytest.raises(NotInitialised, match=r"holdfast\.init\(\).*HOLDFAST_URL"):
            await attempt
    for call in (lambda: submit_task_sync(greet, "Ann"), lambda: greet.submit("Ann")):
        with pytest.raises(NotInitialised):
            call()


def test_the_url_in_the_environment_is_enough(greet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "memory://")

    assert submit_task_sync(greet, "Ann").created


def test_an_undecorated_function_is_refused_with_the_fix() -> None:
    init(url="memory://")

    def greet(name: str) -> None: ...

    with pytest.raises(InvalidOption, match=r"greet is not a task. Put @task above"):
        submit_task_sync(greet, "Ann")  # type: ignore[arg-type] # the point


def test_bad_arguments_are_refused_at_submission(greet: Any) -> None:
    init(url="memory://")

    with pytest.raises(InvalidArguments, match="naem: is no parameter"):
        submit_task_sync(greet, naem="Ann")
    assert list_tasks_sync() == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("priority", "high"), ("priority", None), ("max_retries", 2), ("tags", ["a"]),
        ("delay_seconds", 5), ("timeout_seconds", 5), ("timeout_seconds", None),
    ],
)  # fmt: skip
async def test_an_option_that_is_also_a_parameter_is_refused_with_the_way_out(
    option: str, value: Any
) -> None:
    init(url="memory://")

    @task
    def poll(
        priority: Any = 1,
        max_retries: Any = 1,
        tags: Any = 1,
        delay_seconds: Any = 1,
        timeout_seconds: Any = 1,
    ) -> None: ...

    with pytest.raises(InvalidOption, match=r"poll\.options\(…\)\.submit\(…\)") as refused:
        submit_task_sync(poll, **{option: value})
    with pytest.raises(InvalidOption):
        await submit_task(poll, **{option: value})

    assert refused.value.option == option
    assert submit_task_sync(poll, "high").created


def test_a_name_may_be_given_without_its_module(greet: Any) -> None:
    init(url="memory://")
    handle = submit_task_sync(greet, "Ann")

    assert [found.id for found in list_tasks_sync(name="greet")] == [handle.id]


async def test_no_such_task(greet: Any) -> None:
    init(url="memory://")

    with pytest.raises(TaskNotFound):
        await get_task("01a1e11b-abb1-7333-9c1e-c570d72d4363")


def test_a_config_is_checked_where_it_is_written() -> None:
    with pytest.raises(ConfigError, match=r"^lease: expected a duration"):
        Config(lease="soon")
    with pytest.raises(ConfigError, match="no such setting"):
        Config(leese=3)  # type: ignore[call-arg] # the point
    with pytest.raises(ConfigError, match="not both"):
        init(Config(), url="memory://")


def test_initialising_again_is_another_app_with_the_same_tasks(greet: Any) -> None:
    first = init(url="memory://")
    submit_task_sync(greet, "Ann")

    second = init(Config(url="memory://", max_retries=9))

    assert first is not second
    assert first.registry is second.registry
    assert list_tasks_sync() == []
    assert submit_task_sync(greet, "Ann").task().max_retries == 9


def test_in_memory_needs_no_init_and_leaves_none(greet: Any) -> None:
    with in_memory() as memory:
        handle = submit_task_sync(greet, "Ann")
        memory.drain()
        assert handle.result() == "Hello, Ann!"

    with pytest.raises(NotInitialised):
        submit_task_sync(greet, "Ann")


def test_a_worker_finds_the_tasks_on_the_app_that_init_returns(greet: Any) -> None:
    app = init(url="memory://")

    assert list(app.registry) == [greet.name]
