"""The steps of `features/processing.feature`, with real workers.

One scenario is played on every store, the others on a file: that stores do the same is what the
conformance suites try, those with many processes among them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from pytest_bdd import given, parsers, scenario, then, when
from tests.acceptance.conftest import MakePlace, MakeStage, on_every_store
from tests.acceptance.stage import Stage, ids, until

from holdfast import Handle

pytestmark = pytest.mark.acceptance

FEATURE = "features/processing.feature"


@scenario(FEATURE, "A created task is processed")
def test_a_created_task_is_processed(store: MakePlace) -> None: ...


@scenario(FEATURE, "A failing task stays, with its error, its count and a time to run again")
def test_a_failing_task_stays(store: MakePlace) -> None: ...


@on_every_store
@scenario(FEATURE, "A failed task runs again when it is due")
def test_a_failed_task_runs_again_when_it_is_due(store: MakePlace) -> None: ...


@scenario(FEATURE, "Three processors share a hundred tasks")
def test_three_processors_share_a_hundred_tasks(store: MakePlace) -> None: ...


@dataclass(slots=True)
class World:
    """What a scenario has said so far. The stage is set with the first that needs it."""

    make_stage: MakeStage
    settings: dict[str, str]
    made: Stage | None = None
    tasks: list[Handle[Any]] = field(default_factory=list)

    @property
    def stage(self) -> Stage:
        if self.made is None:
            self.made = self.make_stage(**self.settings)
        return self.made

    @property
    def task(self) -> Handle[Any]:
        (only,) = self.tasks
        return only


@given("a store with these settings", target_fixture="world")
def a_store(make_stage: MakeStage, datatable: list[list[str]]) -> World:
    return World(make_stage, dict(datatable))


@given(parsers.parse("a retry_delay of {delay}"))
def a_retry_delay(world: World, delay: str) -> None:
    world.settings["retry_delay"] = delay


@given(parsers.parse("{number:d} processor"))
@when(parsers.parse("{number:d} processors start"))
def processors(world: World, number: int) -> None:
    for _ in range(number):
        world.stage.worker()


@given(parsers.parse("{number:d} tasks that wait"))
def tasks_that_wait(world: World, number: int) -> None:
    calls = [world.stage.shop.noop.call(n) for n in range(number)]
    world.tasks += world.stage.app.submit_many(calls)


@when("a task is created")
def a_task_is_created(world: World) -> None:
    world.tasks.append(world.stage.shop.flaky.submit(0))


@when(parsers.re(r"a task is created that fails (?P<failures>\d+) times?"))
def a_failing_task_is_created(world: World, failures: str) -> None:
    world.tasks.append(world.stage.shop.flaky.submit(int(failures)))


@then(parsers.re(r"(the|every) task is (?P<state>\w+) within (?P<seconds>\d+) seconds"))
def tasks_become(world: World, state: str, seconds: str) -> None:
    wanted = len(world.tasks)
    until(lambda: world.stage.app.count(state=state) == wanted, within=float(seconds))


@then("its result is kept")
def its_result_is_kept(world: World) -> None:
    assert world.task.result() == "attempt 1"


@then(parsers.parse('its error is "{error}"'))
def its_error_is(world: World, error: str) -> None:
    found = world.task.task().error
    assert found is not None
    assert f"{found.type}: {found.message}" == error


@then(parsers.parse("it counts {number:d} attempt"))
def it_counts_attempts(world: World, number: int) -> None:
    task = world.task.task()
    assert (task.attempt, task.charged) == (number, number)


@then(parsers.parse("its run_at is {seconds:d} seconds after the failure"))
def its_run_at_is_later(world: World, seconds: int) -> None:
    (attempt,) = world.task.history().attempts
    assert attempt.ended_at is not None
    away = world.task.task().run_at - attempt.ended_at
    assert abs(away - timedelta(seconds=seconds)) < timedelta(seconds=1)


@then(parsers.re(r"it was started (?P<number>\d+) times?"))
def it_was_started(world: World, number: str) -> None:
    starts = [start.attempt for start in world.stage.log.starts()]
    assert starts == list(range(1, int(number) + 1))


@then(
    parsers.parse(
        "each start but the first came {seconds:d} second after the failure before it, or later"
    )
)
def starts_came_later(world: World, seconds: int) -> None:
    for before, after in pairwise(world.task.history().attempts):
        assert before.ended_at is not None
        assert after.started_at - before.ended_at >= timedelta(seconds=seconds)


@then("every task was started exactly once")
def every_task_was_started_once(world: World) -> None:
    starts = sorted(start.task_id for start in world.stage.log.starts())
    assert starts == sorted(ids(world.tasks))
    assert world.stage.broken(ids(world.tasks)) == []
