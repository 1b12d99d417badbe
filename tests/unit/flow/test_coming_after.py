"""What comes after what: a task runs when those before it have ended as it wants, and gets what
they returned.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.kit.weaving import chained, linked, one, stored

from holdfast import State, TaskCancelled
from holdfast.core.dropping import DROPPED
from holdfast.core.flow import ResultRef, Source, When
from holdfast.core.query import TaskFilter
from holdfast.core.task import NewTask, Reason, Task
from holdfast.testing import MemoryApp


@pytest.fixture
def app() -> MemoryApp:
    app = MemoryApp(max_retries=0)

    @app.task(name="add")
    def add(x: int, y: int = 1) -> int:
        return x + y

    @app.task(name="total")
    def total(x: list[int]) -> int:
        return sum(x)

    @app.task(name="say")
    def say(x: int | None = None) -> str:
        return f"said {x}"

    @app.task(name="break")
    def broken(x: int = 0) -> int:
        raise ValueError(f"no luck with {x}")

    return app


def submit(app: MemoryApp, tasks: Sequence[NewTask]) -> None:
    app.wait_for(app.client.store.commit(stored(tasks)))


def ended(app: MemoryApp, new: NewTask) -> Task:
    task = app.wait_for(app.client.store.get(new.id))
    assert task is not None
    return task


def states(app: MemoryApp, tasks: Sequence[NewTask]) -> list[State]:
    return [ended(app, task).state for task in tasks]


def test_each_link_of_a_chain_gets_the_result_of_the_one_before(app: MemoryApp) -> None:
    links = chained([("add", {"x": 1}), ("add", {}), ("add", {"y": 10})])
    submit(app, links)

    ran = app.drain()

    assert [each.result for each in ran] == [2, 3, 13]
    assert [each.task_id for each in ran] == [task.id for task in links]


def test_a_task_gets_the_results_of_several_as_a_list(app: MemoryApp) -> None:
    some = [linked("add", {"x": n}) for n in range(3)]
    each = ResultRef(Source.EACH, tuple(task.id for task in some))
    last = linked("total", after=some, results={"x": each})
    submit(app, [*some, last])

    app.drain()

    assert ended(app, last).value == 1 + 2 + 3


def test_what_follows_a_failure_is_dropped_and_names_the_first_that_failed(app: MemoryApp) -> None:
    links = chained([("break", {"x": 7}), ("add", {}), ("add", {}), ("add", {})])
    submit(app, links)

    app.drain()

    first, *rest = [ended(app, task) for task in links]
    assert first.state is State.DEAD_LETTER
    for task in rest:
        assert (task.state, task.reason) == (State.CANCELLED, Reason.DEPENDENCY_FAILED)
        assert task.error is not None
        assert task.error.type == "DependencyFailed"
        assert task.error.message == (
            f"task {first.id} (break) ended as dead_letter: ValueError: no luck with 7"
        )
    notes = app.wait_for(app.client.store.records(DROPPED, group=first.id, limit=10))
    assert [note.key for note in notes] == [task.id for task in rest]


@pytest.mark.parametrize(
    ("before", "when", "state", "reason"),
    [
        ("add", When.SUCCESS, State.COMPLETED, None),
        ("add", When.ALWAYS, State.COMPLETED, None),
        ("add", When.FAILURE, State.CANCELLED, Reason.NOT_NEEDED),
        ("break", When.SUCCESS, State.CANCELLED, Reason.DEPENDENCY_FAILED),
        ("break", When.ALWAYS, State.COMPLETED, None),
        ("break", When.FAILURE, State.COMPLETED, None),
    ],
)
def test_a_task_runs_when_what_it_comes_after_ended_as_it_wants(
    app: MemoryApp, before: str, when: When, state: State, reason: Reason | None
) -> None:
    first = linked(before, {"x": 1})
    second = linked("say", after=[first], when=when)
    submit(app, [first, second])

    app.drain()

    assert (ended(app, second).state, ended(app, second).reason) == (state, reason)


def test_what_comes_after_something_that_nobody_needed_is_not_needed_either(app: MemoryApp) -> None:
    first = linked("add", {"x": 1})
    unneeded = linked("say", after=[first], when=When.FAILURE)
    last = linked("say", after=[unneeded])
    always = linked("say", after=[unneeded], when=When.ALWAYS)
    on_failure = linked("say", after=[unneeded], when=When.FAILURE)
    submit(app, [first, unneeded, last, always, on_failure])

    app.drain()

    assert ended(app, last).reason is Reason.NOT_NEEDED
    assert ended(app, on_failure).reason is Reason.NOT_NEEDED
    assert ended(app, always).state is State.COMPLETED


def test_of_a_task_that_failed_there_is_no_result(app: MemoryApp) -> None:
    first = linked("break")
    last = linked("say", after=[first], when=When.ALWAYS, results={"x": one(first)})
    submit(app, [first, last])

    app.drain()

    assert ended(app, last).value == "said None"


def test_a_result_of_another_type_is_refused_as_arguments_are(app: MemoryApp) -> None:
    first = linked("say", {"x": 3})
    last = linked("add", after=[first], results={"x": one(first)})
    submit(app, [first, last])

    app.drain()

    task = ended(app, last)
    assert task.state is State.DEAD_LETTER
    assert task.reason is Reason.UNFIT_ARGUMENTS
    assert task.error is not None
    assert "x" in task.error.message


def test_a_result_that_is_not_kept_any_more_fails_the_task_and_says_so(app: MemoryApp) -> None:
    first = linked("add", {"x": 1})
    last = linked("add", after=[first], results={"x": one(first)}, delay=60.0)
    submit(app, [first, last])
    app.drain()
    app.wait_for(app.client.store.discard(TaskFilter(ids=(first.id,)), limit=1))

    app.drain("empty")

    task = ended(app, last)
    assert task.state is State.FAILED
    assert task.error is not None
    assert task.error.type == "ResultNotKept"
    assert first.id in task.error.message


def test_one_that_was_started_again_meanwhile_is_waited_for_again(app: MemoryApp) -> None:
    first = linked("add", {"x": 1})
    last = linked("add", after=[first], results={"x": one(first)}, delay=60.0)
    submit(app, [first, last])
    app.drain()
    app.clock.advance(60)
    app.wait_for(app.client.retry(first.id))

    ran = app.drain()

    assert [each.task_id for each in ran if each.state is State.COMPLETED] == [first.id, last.id]


def test_whoever_waits_for_a_dropped_task_is_told_who_is_to_blame(app: MemoryApp) -> None:
    links = chained([("break", {}), ("add", {})])
    submit(app, links)
    app.drain()

    with pytest.raises(TaskCancelled, match=rf"task {links[0].id} \(break\) ended as dead_letter"):
        app.handle(links[1].id).result()
