"""Compositions from submit to result, in memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, NamedTuple

import pytest

from holdfast import (
    Composite,
    Handle,
    State,
    TaskFailed,
    batch,
    chain,
    chord,
    group,
    result_of,
)
from holdfast.core.flow import BATCH
from holdfast.core.task import Reason
from holdfast.core.tree import TaskTree
from holdfast.definitions.definition import Definition
from holdfast.testing import MemoryApp

Ints = Definition[..., int, int]


class Shop(NamedTuple):
    """Some tasks to compose."""

    app: MemoryApp
    inc: Ints
    add: Ints
    total: Ints
    broken: Ints
    day: Definition[[int], date, date]

    def ran(self, whole: Composite[Any]) -> Handle[Any]:
        handle = whole.submit()
        self.app.drain()
        assert self.app.count(state=["queued", "blocked", "running", "retrying"]) == 0
        return handle


@pytest.fixture
def shop(app: MemoryApp) -> Shop:
    @app.task
    def inc(x: int) -> int:
        return x + 1

    @app.task
    def add(x: int, y: int) -> int:
        return x + y

    @app.task
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task(max_retries=0)
    def broken(x: int = 0) -> int:
        raise ValueError("no luck")

    @app.task
    def day(n: int) -> date:
        return date(2030, 1, 1) + timedelta(days=n)

    return Shop(app, inc, add, total, broken, day)


GOOD: dict[str, tuple[Callable[[Shop], Composite[Any]], Any]] = {
    "chain": (lambda s: chain(s.inc.s(1), s.add.s(y=3), s.inc.s()), 6),
    "chain of one": (lambda s: chain(s.inc.s(1)), 2),
    "group": (lambda s: group(s.inc.s(3), s.inc.s(1)), [4, 2]),
    "map": (lambda s: s.inc.map(range(4)), [1, 2, 3, 4]),
    "chord": (lambda s: chord(s.inc.map([1, 2]), s.total.s()), 5),
    "chord of chains": (lambda s: chord([chain(s.inc.s(1), s.inc.s())], s.total.s()), 3),
    "group in a chain": (
        lambda s: chain(s.inc.s(0), group(s.inc.s(), s.add.s(y=5)), s.total.s()),
        8,
    ),
    "chain that ends with a group": (lambda s: chain(s.inc.s(0), group(s.inc.s())), [2]),
    "types of their own": (
        lambda s: group(s.day.s(1), chain(s.inc.s(1), s.day.s())),
        [date(2030, 1, 2), date(2030, 1, 3)],
    ),
    "body after": (lambda s: batch(s.total.s(), [s.inc.s(1), s.inc.s(2)]), 5),
    "body before": (lambda s: batch(s.inc.s(1), [s.inc.s(2)], body="before"), 2),
    "sequence": (lambda s: batch(None, [s.inc.s(1), s.inc.s(2)], order="sequence"), [2, 3]),
    "names": (
        lambda s: batch(
            None,
            {
                "left": s.inc.s(1),
                "right": s.inc.s(2),
                "sum": s.add.s(result_of("left"), result_of("right")),
                "all": s.total.s(result_of("left", "sum")),
            },
        ),
        [2, 3, 5, 7],
    ),
    "continue": (lambda s: group(s.broken.s(), s.inc.s(1), on_failure="continue"), [None, 2]),
    "after a failure": (
        lambda s: batch(
            None,
            {"bad": s.broken.s(), "mend": s.inc.s(1).after("bad", when="failure")},
            on_failure="continue",
        ),
        [None, 2],
    ),
}


@pytest.mark.parametrize(("build", "result"), GOOD.values(), ids=GOOD)
def test_a_composition_has_a_result(
    shop: Shop, build: Callable[[Shop], Composite[Any]], result: Any
) -> None:
    assert shop.ran(build(shop)).result(timeout=5) == result


BAD: dict[str, Callable[[Shop], Composite[Any]]] = {
    "chain": lambda s: chain(s.inc.s(1), s.broken.s(), s.inc.s()),
    "group": lambda s: group(s.broken.s(), s.inc.s(1)),
    "chord": lambda s: chord([s.broken.s(), s.inc.s(1)], s.total.s()),
    "cancel rest": lambda s: group(s.broken.s(), s.inc.s(1), on_failure="cancel_rest"),
    "nested": lambda s: group(group(chain(s.inc.s(1), s.broken.s()))),
}


@pytest.mark.parametrize("build", BAD.values(), ids=BAD)
def test_a_composition_fails_with_what_failed_in_it(
    shop: Shop, build: Callable[[Shop], Composite[Any]]
) -> None:
    handle = shop.ran(build(shop))

    with pytest.raises(TaskFailed, match=r"broken\) ended as dead_letter: ValueError: no luck"):
        handle.result(timeout=5)


def test_what_stands_behind_a_failed_link_is_cancelled_and_names_it(shop: Shop) -> None:
    handle = shop.ran(chain(shop.broken.s(), shop.inc.s(), shop.inc.s()))

    culprit, *others = handle.children()
    assert [(task.state, task.reason) for task in others] == [
        (State.CANCELLED, Reason.DEPENDENCY_FAILED)
    ] * 2
    assert all(task.error and culprit.id in task.error.message for task in others)


def test_a_result_that_does_not_fit_is_refused_when_the_next_task_starts(
    app: MemoryApp, shop: Shop
) -> None:
    @app.task(max_retries=0)
    def text() -> str:
        return "five"

    handle = shop.ran(chain(text.s(), shop.inc.s()))

    _, last = handle.children()
    assert last.state is not State.COMPLETED
    assert last.error is not None
    assert "x: " in last.error.message


def test_results_flow_by_reference(shop: Shop) -> None:
    first = shop.inc.submit(1)
    second = shop.add.submit(first.result_ref(), y=first.result_ref())
    many = shop.inc.map([1, 2]).submit()
    both = shop.total.submit([first.result_ref(), second.result_ref()])
    every = shop.total.submit(many.result_ref())

    shop.app.drain()

    assert [second.result(), both.result(), every.result()] == [4, 6, 5]


def shape(tree: TaskTree) -> Any:
    name = tree.name.rpartition(".")[2]
    told = f"{name} {tree.state} {tree.ended}/{tree.total}" if tree.total else name
    return (told, *map(shape, tree.children)) if tree.children else told


def test_a_tree_shows_all_of_it_with_how_many_have_ended(shop: Shop) -> None:
    late = shop.inc.options(delay="1h")
    handle = chain(shop.inc.s(1), group(shop.inc.s(), late.s())).submit()
    shop.app.drain()

    assert shape(handle.tree()) == (
        "batch blocked 1/2", "inc", ("batch blocked 1/2", "inc", "inc"),
    )  # fmt: skip
    shop.app.clock.advance(3600)
    shop.app.drain()
    assert shape(handle.tree()) == (
        "batch completed 2/2", "inc", ("batch completed 2/2", "inc", "inc"),
    )  # fmt: skip


def test_a_tree_of_a_task_without_children_is_the_task(shop: Shop) -> None:
    tree = shop.inc.submit(1).tree()

    assert (tree.name, tree.total, tree.left_out, tree.children) == (shop.inc.name, 0, 0, ())


def test_a_large_tree_is_shown_in_part_and_counted_whole(shop: Shop) -> None:
    handle = shop.ran(group(shop.inc.map(range(600)), shop.inc.map(range(700))))

    tree = handle.tree()

    assert (tree.ended, tree.total, tree.left_out) == (2, 2, 0)
    first, second = tree.children
    assert (len(first.children), first.ended, first.total, first.left_out) == (600, 600, 600, 0)
    assert (len(second.children), second.ended, second.total, second.left_out) == (
        397,
        700,
        700,
        303,
    )


def test_a_list_that_is_too_long_to_be_kept_is_read_from_the_children(shop: Shop) -> None:
    handle = shop.ran(shop.inc.map(range(1500)))

    assert handle.task().result == b"null"
    assert handle.result(timeout=5) == list(range(1, 1501))
    assert shop.app.handle(handle.id).result(timeout=5) == list(range(1, 1501))


def test_a_callback_is_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    app = MemoryApp(callback_secret="x" * 32, callback_hosts=["example.org"])

    @app.task
    def inc(x: int) -> int:
        return x + 1

    handle = inc.map([1]).options(callback="https://example.org/done").submit()

    assert app.count(parent_id=handle.id) == 2
    assert [task.name for task in handle.children()] == [inc.name]
    tree = handle.tree()
    assert (tree.name, tree.total, len(tree.children)) == (BATCH, 1, 1)
