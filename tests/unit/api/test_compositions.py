"""Compositions as they are stored: whose children tasks are, what they wait for and take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from holdfast import (
    Handle,
    Holdfast,
    IdempotencyConflict,
    InvalidArguments,
    InvalidOption,
    Middleware,
    State,
    Task,
    batch,
    chain,
    chord,
    group,
    result_of,
)
from holdfast.core.flow import BATCH, Flow, flow_of
from holdfast.definitions.composing import Composable, Link
from holdfast.definitions.definition import Definition
from holdfast.testing import MemoryApp


class Shop(NamedTuple):
    """Some tasks to compose."""

    app: MemoryApp
    one: Definition[[int], int, int]
    add: Definition[..., int, int]
    total: Definition[[list[int]], int, int]


@pytest.fixture
def shop(app: MemoryApp) -> Shop:
    @app.task(queue="sums")
    def one(x: int) -> int:
        return x

    @app.task
    def add(x: int, y: int, z: int = 0) -> int:
        return x + y + z

    @app.task(queue="totals")
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    return Shop(app, one, add, total)


def stored(app: Holdfast) -> list[Task]:
    """All there is, in the order of ids."""
    return list(reversed(app.list(limit=1000).tasks))


def flow(task: Task) -> Flow:
    return flow_of(task.payload) or Flow()


def after(task: Task) -> list[tuple[str, str]]:
    return [(each.task_id, each.when.value) for each in flow(task).after]


def takes(task: Task) -> dict[str, tuple[str, ...]]:
    return {name: (ref.source, *ref.task_ids) for name, ref in flow(task).results.items()}


def test_a_chain_gives_each_link_the_result_before_in_place_of_what_it_lacks(shop: Shop) -> None:
    handle = chain(shop.one.s(1), shop.add.s(y=5), shop.add.s(7)).submit()

    a, b, c, parent = stored(shop.app)
    assert (parent.id, parent.name, parent.queue) == (handle.id, BATCH, "sums")
    assert flow(parent).children == ("none", "sequence", "cancel_rest", "last")
    assert [task.parent_id for task in (a, b, c)] == [parent.id] * 3
    assert [after(task) for task in (a, b, c)] == [[], [(a.id, "success")], [(b.id, "success")]]
    assert takes(b) == {"x": ("one", a.id)}
    assert takes(c) == {"y": ("one", b.id)}
    assert [task.arguments for task in (a, b, c)] == [{"x": 1}, {"y": 5}, {"x": 7}]
    assert [task.state for task in (a, b, c, parent)] == [State.QUEUED, *[State.BLOCKED] * 3]


def test_a_link_that_lacks_nothing_only_waits(shop: Shop) -> None:
    chain(shop.one.s(1), shop.one.s(2)).submit()

    a, b, _ = stored(shop.app)
    assert (after(b), takes(b)) == ([(a.id, "success")], {})


def test_a_group_in_a_chain_takes_the_result_before_and_gives_a_list(shop: Shop) -> None:
    chain(shop.one.s(1), group(shop.one.s(), shop.add.s(y=1)), shop.total.s()).submit()

    a, b, c, inner, last, outer = stored(shop.app)
    assert [b.parent_id, c.parent_id, inner.parent_id] == [inner.id, inner.id, outer.id]
    assert [takes(b), takes(c)] == [{"x": ("one", a.id)}] * 2
    assert [after(task) for task in (b, c, inner)] == [[(a.id, "success")]] * 3
    assert takes(last) == {"numbers": ("children", inner.id)}
    assert after(last) == [(inner.id, "success")]


def test_a_chord_is_its_callback_with_the_group_as_children(shop: Shop) -> None:
    handle = chord(shop.one.map([1, 2]), shop.total.s()).submit()

    a, b, parent = stored(shop.app)
    assert (parent.id, parent.name) == (handle.id, shop.total.name)
    assert parent.queue == "totals"
    assert [a.parent_id, b.parent_id] == [parent.id] * 2
    assert flow(parent).children == ("after", "parallel", "fail_parent", "all")
    assert takes(parent) == {"numbers": ("children", parent.id)}


def test_children_in_sequence_run_on_unless_a_failure_cancels_the_rest(shop: Shop) -> None:
    batch(None, [shop.one.s(1), shop.one.s(2)], order="sequence").submit()
    a, b, _ = stored(shop.app)
    assert after(b) == [(a.id, "always")]


def test_a_body_that_runs_first_has_the_smallest_id(shop: Shop) -> None:
    handle = batch(shop.one.s(1), [shop.one.s(2)], body="before").submit()

    parent, child = stored(shop.app)
    assert (parent.id, parent.state, child.state) == (handle.id, State.QUEUED, State.BLOCKED)
    assert flow(child).body_of == parent.id


def test_named_members_wait_for_each_other_whatever_their_order(shop: Shop) -> None:
    batch(
        None,
        {
            "sum": shop.add.s(result_of("left"), result_of("right")),
            "left": shop.one.s(1),
            "right": shop.one.s(2),
            "tell": shop.one.s(3).after("sum", when="always"),
            "all": shop.total.s(result_of("left", "right")),
        },
    ).submit()

    left, right, both, tell, every, _ = stored(shop.app)
    assert takes(both) == {"x": ("one", left.id), "y": ("one", right.id)}
    assert after(both) == [(left.id, "success"), (right.id, "success")]
    assert after(tell) == [(both.id, "always")]
    assert takes(every) == {"numbers": ("each", left.id, right.id)}


def test_what_a_member_waits_for_holds_for_all_below_it(shop: Shop) -> None:
    batch(
        None,
        {
            "first": shop.one.s(1),
            "then": group(chain(shop.one.s(2), shop.one.s()), shop.one.s(3)).after("first"),
        },
    ).submit()

    first, *below = stored(shop.app)[:-1]
    a, b, *others = below  # a chain's first link keeps the rest
    assert after(b) == [(a.id, "success")]
    assert [after(task) for task in (a, *others)] == [[(first.id, "success")]] * 4


def test_a_composition_may_come_after_tasks_that_exist(shop: Shop) -> None:
    before = shop.one.submit(1)

    group(shop.one.s(2), shop.one.s(3)).options(after=before, when="always").submit()

    _, *rest = stored(shop.app)
    assert [after(task) for task in rest] == [[(before.id, "always")]] * 3
    assert {task.state for task in rest} == {State.BLOCKED}


def test_when_a_composition_starts_is_said_of_all_of_it(shop: Shop) -> None:
    group(shop.one.s(2), shop.one.options(delay=5).s(3)).options(delay="1h").submit()

    a, b, parent = stored(shop.app)
    delays = [round((task.run_at - task.created_at).total_seconds()) for task in (a, b, parent)]
    assert delays == [3600, 5, 3600]


def test_one_trace_goes_through_a_composition(shop: Shop) -> None:
    chain(shop.one.s(1), group(shop.one.s())).submit()

    assert len({task.trace_id for task in stored(shop.app)}) == 1


def test_a_link_alone_is_a_task(shop: Shop) -> None:
    handle = shop.one.s(4).submit()

    (task,) = stored(shop.app)
    assert (task.id, task.arguments, handle.created) == (handle.id, {"x": 4}, True)


Build = Callable[[Shop], Composable[Any]]

WRONG: list[tuple[str, Build, str]] = [
    ("group of nothing", lambda shop: group([]), "a group of nothing"),
    ("chain of nothing", lambda shop: chain(), "a chain of nothing"),
    ("map of nothing", lambda shop: shop.one.map([]), "a group of nothing"),
    ("no link", lambda shop: group(shop.one.s(1), 5), "[1]: expected a link"),  # type: ignore[call-overload] # on purpose
    ("no callback", lambda shop: chord([shop.one.s(1)], 5), "callback: expected a link"),  # type: ignore[arg-type] # on purpose
    (
        "two alike",
        lambda shop: group(shop.one.s(1).named("a"), shop.one.s(1).named("a")),
        "two members are called 'a'",
    ),
    (
        "unknown name",
        lambda shop: batch(None, {"a": shop.one.s(1).after("b")}),
        "no member of this composition is called 'b'. There are: 'a'",
    ),
    (
        "circle",
        lambda shop: batch(None, {"a": shop.one.s(1).after("b"), "b": shop.one.s(result_of("a"))}),
        "a -> b -> a",
    ),
    (
        "circle in a sequence",
        lambda shop: batch(
            None, [shop.one.s(1).after("b"), shop.one.s(2).named("b")], order="sequence"
        ),
        "member 0 -> b -> member 0",
    ),
    ("unique key", lambda shop: group(shop.one.options(unique_key="k").s(1)), "unique_key:"),
    (
        "idempotency key",
        lambda shop: group(shop.one.options(idempotency_key="k").s(1)),
        "idempotency_key: belongs to the composition",
    ),
    ("connection", lambda shop: group(shop.one.options(connection=1).s(1)), "connection:"),
    ("when", lambda shop: shop.one.s(1).after("x", when="sometimes"), "expected success, failure"),
    ("order", lambda shop: batch(None, [shop.one.s(1)], order="random"), "order: expected"),
    ("body", lambda shop: batch(None, [shop.one.s(1)], body="after"), "body: a parent without"),
    ("no body", lambda shop: batch(shop.one.s(1), [shop.one.s(1)], body="none"), "body: expected"),
    ("after", lambda shop: group(shop.one.options(after="soon").s(1)), "after: expected a handle"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("build", "says"), [(b, s) for _, b, s in WRONG], ids=[n for n, *_ in WRONG]
)
def test_what_cannot_be_is_refused_and_nothing_is_stored(
    shop: Shop, build: Build, says: str
) -> None:
    with pytest.raises(InvalidOption, match=re.escape(says)):
        build(shop).submit()

    assert stored(shop.app) == []


def test_arguments_that_are_known_are_checked_at_submit(shop: Shop) -> None:
    with pytest.raises(InvalidArguments, match=r"y: .*integer"):
        chain(shop.one.s(1), shop.add.s(y="five")).submit()
    with pytest.raises(InvalidArguments, match=r"y: .*required"):
        chain(shop.one.s(1), shop.add.s()).submit()
    with pytest.raises(InvalidArguments, match="z1: is no parameter"):
        shop.add.s(z1=3)

    assert stored(shop.app) == []


def test_a_task_that_is_unique_or_not_kept_is_no_member(app: MemoryApp) -> None:
    @app.task(unique=True)
    def single(x: int) -> int:
        return x

    @app.task(keep=False)
    def fleeting(x: int) -> int:
        return x

    with pytest.raises(InvalidOption, match=r"unique: of task .*single"):
        group(single.s(1)).submit()
    with pytest.raises(InvalidOption, match=r"keep: task .*fleeting"):
        group(fleeting.s(1)).submit()
    assert stored(app) == []


def nested(part: Link[int], levels: int) -> Composable[Any]:
    whole: Composable[Any] = part
    for _ in range(levels):
        whole = group(whole)
    return whole


def test_children_are_nested_64_levels_deep_and_no_deeper(shop: Shop) -> None:
    nested(shop.one.s(1), 64).submit()
    assert len(stored(shop.app)) == 65

    with pytest.raises(InvalidOption, match="nested deeper than 64 levels"):
        nested(shop.one.s(1), 65).submit()
    assert len(stored(shop.app)) == 65


def test_an_idempotency_key_of_the_whole_creates_it_once(shop: Shop) -> None:
    def submit(*values: int) -> Handle[Any]:
        return shop.one.map(values).options(idempotency_key="order 7").submit()

    first = submit(1, 2)
    again = submit(1, 2)

    assert (again.id, again.created, first.created) == (first.id, False, True)
    assert len(stored(shop.app)) == 3
    with pytest.raises(IdempotencyConflict, match="'order 7' was already used"):
        submit(1, 3)
    assert len(stored(shop.app)) == 3


def test_a_key_whose_composition_is_forgotten_is_free_again(shop: Shop) -> None:
    def submit() -> Handle[Any]:
        return chord([shop.one.s(1)], shop.total.s()).options(idempotency_key="k").submit()

    first = submit()
    shop.app.cancel_many(ids=[task.id for task in stored(shop.app)])
    shop.app.discard(state="cancelled")

    again = submit()

    assert again.created
    assert again.id != first.id


def test_keys_are_the_owners_own(shop: Shop) -> None:
    for owner in ("ann", "bob"):
        whole = shop.one.map([1]).options(idempotency_key="k", owner=owner)
        assert whole.submit().created

    assert len(stored(shop.app)) == 4


def test_a_generator_makes_a_group(shop: Shop) -> None:
    def links() -> Iterator[Link[int]]:
        for n in range(3):
            yield shop.one.s(n)

    group(links()).submit()

    assert [task.arguments for task in stored(shop.app)] == [{"x": 0}, {"x": 1}, {"x": 2}, {}]


def test_what_only_waits_is_where_its_first_child_is(shop: Shop) -> None:
    group(group(shop.one.options(owner="ann", priority="low").s(1))).submit()

    assert {(task.queue, task.owner, task.priority.value) for task in stored(shop.app)} == {
        ("sums", "ann", "low")
    }


def test_a_middleware_sees_every_task_of_a_composition(shop: Shop) -> None:
    seen: list[str] = []

    @shop.app.middleware
    class Stamp(Middleware):
        async def submit(self, calls: Any, call_next: Any) -> Any:
            seen.extend(call.definition.name for call in calls)
            return await call_next([call.with_options(tags=["stamped"]) for call in calls])

    chain(shop.one.s(1), shop.one.s()).submit()

    assert seen == [shop.one.name, shop.one.name, BATCH]
    assert {task.tags for task in stored(shop.app)} == {("stamped",)}


def test_what_a_parent_says_of_its_children_is_kept(shop: Shop) -> None:
    batch(None, [shop.one.s(1)], on_failure="continue", order="sequence").submit()

    *_, parent = stored(shop.app)
    assert flow(parent).children == ("none", "sequence", "continue", "all")
