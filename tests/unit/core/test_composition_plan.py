"""How new tasks are tied together, as stores and payloads are told."""

from __future__ import annotations

import re
from collections.abc import Collection

import pytest

from holdfast.core.composition import Parent, Place, Taken, in_order, wired
from holdfast.core.flow import (
    Body,
    ChildOrder,
    Children,
    Dependency,
    OnFailure,
    ResultRef,
    Source,
    When,
    flow_of,
)
from holdfast.core.gate import Count, Gate, GateKind
from holdfast.core.task import NewTask, TaskId
from holdfast.errors import InvalidOption


def new(name: str) -> NewTask:
    return NewTask(TaskId(name), "work", b'{"n":1}')


def behind(*keys: str) -> tuple[Gate, ...]:
    return tuple(Gate(GateKind.LATCH, key) for key in keys)


def test_a_task_that_comes_after_another_stands_behind_its_latch_and_says_so() -> None:
    done = wired([new("a"), new("b")], [Place(), Place(after=((0, When.ALWAYS),))])

    first, second = done.tasks
    assert first == new("a")
    assert second.gates == behind("a")
    said = flow_of(second.payload)
    assert said is not None
    assert said.after == (Dependency(TaskId("a"), When.ALWAYS),)
    assert done.counts == []


def test_children_count_the_latch_down_that_their_parent_stands_behind() -> None:
    said = Children()
    done = wired(
        [new("a"), new("b"), new("p")],
        [Place(parent=2), Place(parent=2), Place(children=said, size=2)],
    )

    a, b, parent = done.tasks
    assert [a.parent_id, b.parent_id] == ["p", "p"]
    assert [a.counts, b.counts] == [("latch:p.children",)] * 2
    assert parent.gates == behind("p.children")
    assert done.counts == [Count("latch:p.children", 2)]
    flow = flow_of(parent.payload)
    assert flow is not None
    assert flow.children == said


def test_children_of_a_body_that_runs_first_stand_behind_its_latch() -> None:
    done = wired(
        [new("p"), new("a")],
        [Place(children=Children(Body.BEFORE), size=1), Place(parent=0)],
    )

    parent, child = done.tasks
    assert (parent.gates, parent.counts) == ((), ("latch:p.body",))
    assert child.gates == behind("p.body")
    flow = flow_of(child.payload)
    assert flow is not None
    assert flow.body_of == "p"
    assert done.counts == [Count("latch:p.children", 1), Count("latch:p.body", 1)]


@pytest.mark.parametrize(
    ("order", "rest_of"), [(ChildOrder.PARALLEL, "p"), (ChildOrder.SEQUENCE, None)]
)
def test_only_children_that_run_side_by_side_ask_for_their_siblings(
    order: ChildOrder, rest_of: str | None
) -> None:
    parent = Parent(TaskId("p"), Children(Body.NONE, order, OnFailure.CANCEL_REST))

    (task,) = wired([new("a")], [Place()], under=parent).tasks

    flow = flow_of(task.payload)
    assert (flow and flow.rest_of) == rest_of
    assert task.parent_id == "p"


def test_results_are_taken_by_id() -> None:
    place = Place(results={"x": Taken(Source.EACH, (0, 1))})

    *_, task = wired([new("a"), new("b"), new("c")], [Place(), Place(), place]).tasks

    flow = flow_of(task.payload)
    assert flow is not None
    assert flow.results == {"x": ResultRef(Source.EACH, (TaskId("a"), TaskId("b")))}


def test_children_belong_to_the_trace_of_their_parent() -> None:
    parent = "01a1ec08-24fc-78a1-becc-12a44232cd01"

    child, _ = wired(
        [new("a"), new(parent)], [Place(parent=1), Place(children=Children(), size=1)]
    ).tasks

    assert child.trace == "00-01a1ec0824fc78a1becc12a44232cd01-becc12a44232cd01-01"


@pytest.mark.parametrize(
    ("before", "order"),
    [
        ([set(), set(), set()], [0, 1, 2]),
        ([{2}, set(), set()], [2, 0, 1]),
        ([{1}, {2}, set()], [2, 1, 0]),
        ([set(), {0}, {0, 1}], [0, 1, 2]),
    ],
)
def test_each_comes_after_those_that_it_waits_for(
    before: list[Collection[int]], order: list[int]
) -> None:
    assert in_order(["a", "b", "c"], before) == order


@pytest.mark.parametrize(
    ("before", "circle"),
    [
        ([{0}, set(), set()], "a -> a"),
        ([{1}, {0}, set()], "a -> b -> a"),
        ([set(), {2}, {1}], "b -> c -> b"),
        ([{2}, {0}, {1}], "a -> c -> b -> a"),
    ],
)
def test_a_circle_is_named(before: list[Collection[int]], circle: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(f": {circle}. Nothing")):
        in_order(["a", "b", "c"], before)


def test_a_long_sequence_is_no_deep_recursion() -> None:
    many = 5000
    before: list[Collection[int]] = [{n + 1} for n in range(many - 1)] + [()]

    assert in_order([str(n) for n in range(many)], before) == list(reversed(range(many)))
