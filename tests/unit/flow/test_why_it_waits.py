"""What a task waits for, and why it was dropped, in words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.kit.weaving import chained, family, linked, parent, stored

from holdfast.core.flow import Body, When
from holdfast.core.task import NewTask
from holdfast.testing import MemoryApp


@pytest.fixture
def app() -> MemoryApp:
    app = MemoryApp(max_retries=0)

    @app.task(name="add")
    def add(x: int, y: int = 1) -> int:
        return x + y

    @app.task(name="break")
    def broken(x: int = 0) -> int:
        raise ValueError(f"no luck with {x}")

    return app


def submit(app: MemoryApp, tasks: Sequence[NewTask]) -> None:
    app.wait_for(app.client.store.commit(stored(tasks)))


def why(app: MemoryApp, new: NewTask) -> tuple[str, str]:
    return app.wait_for(app.client.why(new.id)).reasons[0]


def test_a_link_names_what_it_comes_after(app: MemoryApp) -> None:
    first, second = chained([("add", {"x": 1}), ("add", {})])
    submit(app, [first, second])

    assert why(app, second) == (
        "dependency",
        f"It comes after task {first.id} (add), which is queued.",
    )


def test_a_parent_says_how_many_of_its_children_are_to_go(app: MemoryApp) -> None:
    father = parent()
    children = [linked("add", {"x": 1}) for _ in range(2)]
    late = [linked("add", {"x": 1}, delay=60.0) for _ in range(3)]
    submit(app, family(father, [*children, *late]))
    app.drain()

    assert why(app, father) == ("children", "It waits for its children: 3 of 5 to go.")


def test_a_child_behind_its_parents_body_says_so(app: MemoryApp) -> None:
    father = parent("add", {"x": 1}, body=Body.BEFORE, delay=60.0)
    child = linked("add", {"x": 1}, body_of=father)
    submit(app, family(father, [child]))

    assert why(app, child) == (
        "parent",
        (
            f"It starts when the body of its parent has returned: task {father.id} (add), which is "
            "queued."
        ),
    )


def test_a_dropped_one_names_the_culprit_and_how_to_start_both_again(app: MemoryApp) -> None:
    links = chained([("break", {"x": 3}), ("add", {}), ("add", {})])
    submit(app, links)
    app.drain()

    assert why(app, links[-1]) == (
        "dependency_failed",
        (
            f"It was cancelled because task {links[0].id} (break) ended as dead_letter: "
            f"ValueError: no luck with 3. `holdfast task retry {links[0].id}` starts both again."
        ),
    )


def test_one_that_nobody_needed_says_so(app: MemoryApp) -> None:
    first = linked("add", {"x": 1})
    second = linked("add", {"x": 1}, after=[first], when=When.FAILURE)
    submit(app, [first, second])
    app.drain()

    assert why(app, second) == (
        "not_needed",
        (
            f"It was not needed: task {first.id} (add) ended as completed, this one is for "
            "when=failure."
        ),
    )
