"""A parent ends after its last child, as its failure policy says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.kit.weaving import children_results, family, linked, one, parent, stored

from holdfast import State
from holdfast.core.flow import BATCH, Body, Children, Flow, OnFailure, ParentResult
from holdfast.core.task import NewTask, Task
from holdfast.testing import MemoryApp


@pytest.fixture
def app() -> MemoryApp:
    app = MemoryApp(max_retries=0)

    @app.task(name="add")
    def add(x: int, y: int = 1) -> int:
        return x + y

    @app.task(name="total")
    def total(x: list[int | None]) -> int:
        return sum(each or 0 for each in x)

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


def adders(number: int) -> list[NewTask]:
    return [linked("add", {"x": n}) for n in range(number)]


def test_a_parent_without_a_body_ends_last_with_the_results_of_its_children(app: MemoryApp) -> None:
    father = parent()
    submit(app, family(father, adders(3)))
    assert ended(app, father).state is State.BLOCKED

    ran = app.drain()

    assert [each.name for each in ran] == ["add", "add", "add", BATCH]
    assert (ended(app, father).state, ended(app, father).value) == (State.COMPLETED, [1, 2, 3])


def test_of_a_parent_the_result_may_be_that_of_the_last_child(app: MemoryApp) -> None:
    father = parent(says=Children(result=ParentResult.LAST))
    submit(app, family(father, adders(3)))

    app.drain()

    assert ended(app, father).value == 3


def test_a_body_after_the_children_gets_their_results(app: MemoryApp) -> None:
    father = parent("total", body=Body.AFTER)
    refs = Flow(results={"x": children_results(father.id)})
    father = parent("total", body=Body.AFTER, id=father.id, flow=refs)
    submit(app, family(father, adders(4)))

    app.drain()

    assert ended(app, father).value == 1 + 2 + 3 + 4


def test_a_parent_fails_with_its_child_and_names_it(app: MemoryApp) -> None:
    father = parent()
    bad = linked("break", {"x": 4})
    grandfather = parent()
    inner = family(father, [*adders(2), bad])
    submit(app, family(grandfather, inner[:1]) + inner[1:])

    app.drain()

    for each in (father, grandfather):
        task = ended(app, each)
        assert task.state is State.FAILED
        assert task.error is not None
        assert (task.error.type, task.error.message) == (
            "ChildFailed",
            f"task {bad.id} (break) ended as dead_letter: ValueError: no luck with 4",
        )


def test_a_parent_that_goes_on_completes_with_what_there_is(app: MemoryApp) -> None:
    father = parent(on_failure=OnFailure.CONTINUE)
    submit(app, family(father, [*adders(1), linked("break"), *adders(1)]))

    app.drain()

    assert (ended(app, father).state, ended(app, father).value) == (State.COMPLETED, [1, None, 1])


def test_a_body_that_comes_after_does_not_run_if_a_child_failed(app: MemoryApp) -> None:
    father = parent("total", {"x": [1]}, body=Body.AFTER)
    submit(app, family(father, [linked("break")]))

    ran = app.drain()

    assert [(each.name, each.state) for each in ran] == [
        ("break", State.DEAD_LETTER),
        ("total", State.FAILED),
    ]


def test_the_results_of_more_children_than_fit_stay_with_these(app: MemoryApp) -> None:
    father = parent()
    last = linked("total", after=[father], results={"x": one(father)})
    submit(app, [*family(father, adders(1100)), last])

    app.drain()

    assert (ended(app, father).state, ended(app, father).value) == (State.COMPLETED, None)
    assert ended(app, last).value == sum(range(1, 1101))
