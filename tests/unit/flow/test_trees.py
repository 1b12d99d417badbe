"""Cancelling and starting again act on what belongs together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.kit.weaving import chained, family, linked, one, parent, stored

from holdfast import Context, State
from holdfast.core.chore import CHORE, chore
from holdfast.core.dropping import DROPPED
from holdfast.core.flow import Body, OnFailure
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes
from holdfast.core.task import NewTask, Reason, Task
from holdfast.flow.trees import CANCEL_TREE, START_AGAIN, START_TREE
from holdfast.testing import MemoryApp
from holdfast.testing.factories import HEAD_STARTS


@pytest.fixture
def app() -> MemoryApp:
    app = MemoryApp(max_retries=0)
    app.luck = False  # type: ignore[attr-defined]

    @app.task(name="add")
    def add(x: int, y: int = 1) -> int:
        return x + y

    @app.task(name="try")
    def tried(x: int = 0) -> int:
        if not app.luck:  # type: ignore[attr-defined]
            raise ValueError("no luck")
        return x

    @app.task(name="total")
    def total(x: list[int]) -> int:
        return sum(x)

    return app


def submit(app: MemoryApp, tasks: Sequence[NewTask]) -> None:
    app.wait_for(app.client.store.commit(stored(tasks)))


def found(app: MemoryApp, new: NewTask) -> Task:
    return app.wait_for(app.client.get(new.id))


def states(app: MemoryApp, tasks: Sequence[NewTask]) -> list[State]:
    return [found(app, task).state for task in tasks]


def be_lucky(app: MemoryApp) -> None:
    app.luck = True  # type: ignore[attr-defined]


def retry(app: MemoryApp, new: NewTask) -> None:
    app.wait_for(app.client.retry(new.id))


class TestCulprits:
    def test_starting_the_culprit_again_revives_what_it_cancelled(self, app: MemoryApp) -> None:
        links = chained([("try", {"x": 5}), ("add", {}), ("add", {}), ("add", {})])
        submit(app, links)
        app.drain()
        be_lucky(app)

        retry(app, links[0])
        app.drain()

        assert states(app, links) == [State.COMPLETED] * 4
        assert found(app, links[-1]).value == 8
        assert not app.wait_for(app.client.store.records(DROPPED, limit=1))

    def test_replaying_by_filter_revives_too(self, app: MemoryApp) -> None:
        links = chained([("try", {"x": 5}), ("add", {}), ("add", {})])
        submit(app, links)
        app.drain()
        be_lucky(app)

        assert app.wait_for(app.client.replay(name="try")) == 1
        app.drain()

        assert states(app, links) == [State.COMPLETED] * 3

    def test_a_culprit_that_fails_again_drops_them_again(self, app: MemoryApp) -> None:
        links = chained([("try", {}), ("add", {}), ("add", {})])
        submit(app, links)
        app.drain()

        retry(app, links[0])
        app.drain()

        assert states(app, links) == [State.DEAD_LETTER, State.CANCELLED, State.CANCELLED]
        be_lucky(app)
        retry(app, links[0])
        app.drain()
        assert states(app, links) == [State.COMPLETED] * 3

    def test_a_parent_that_failed_because_of_a_child_is_revived_with_it(
        self, app: MemoryApp
    ) -> None:
        father = parent()
        bad = linked("try", {"x": 5})
        after = linked("total", after=[father], results={"x": one(father)})
        tasks = [*family(father, [linked("add", {"x": 1}), bad]), after]
        submit(app, tasks)
        app.drain()
        assert states(app, [father, after]) == [State.FAILED, State.CANCELLED]
        be_lucky(app)

        retry(app, bad)
        assert found(app, father).state is State.BLOCKED
        app.drain()

        assert states(app, [father, after]) == [State.COMPLETED] * 2
        assert found(app, after).value == 7


class TestStartingTreesAgain:
    def test_a_parent_starts_again_with_its_children_that_did_not_complete(
        self, app: MemoryApp
    ) -> None:
        father, grandfather = parent(), parent()
        good, bad = linked("add", {"x": 1}), linked("try", {"x": 5})
        inner = family(father, [good, bad])
        submit(app, [*family(grandfather, inner[:1]), *inner[1:]])
        app.drain()
        be_lucky(app)

        retry(app, grandfather)
        ran = app.drain()

        assert states(app, [grandfather, father, good, bad]) == [State.COMPLETED] * 4
        assert [each.task_id for each in ran] == [bad.id, father.id, grandfather.id]

    def test_the_body_that_ran_before_its_children_does_not_run_again(self, app: MemoryApp) -> None:
        bodies: list[int] = []

        @app.task(name="split")
        def split(ctx: Context) -> str:
            bodies.append(ctx.attempt)
            ctx.submit_child(app.registry["try"], x=1)
            ctx.submit_child(app.registry["add"], x=1)
            return "split"

        handle = split.submit()
        app.drain()
        assert handle.status() is State.FAILED
        be_lucky(app)

        handle.retry()
        app.drain()

        assert (handle.result(), bodies) == ("split", [1])

    def test_a_completed_parent_that_submits_children_does_so_again(self, app: MemoryApp) -> None:
        @app.task(name="split")
        def split(ctx: Context) -> int:
            ctx.submit_child(app.registry["add"], x=ctx.attempt)
            return ctx.attempt

        handle = split.submit()
        app.drain()

        handle.retry()
        ran = app.drain()

        assert [(each.name, each.state) for each in ran] == [
            ("split", State.BLOCKED),
            ("add", State.COMPLETED),
            ("split", State.COMPLETED),
        ]
        assert handle.result() == 3

    def test_children_behind_a_body_that_returned_do_not_wait_for_it_again(
        self, app: MemoryApp
    ) -> None:
        father = parent("add", {"x": 1}, body=Body.BEFORE)
        child = linked("try", {"x": 5}, body_of=father, max_retries=1)
        submit(app, family(father, [child]))
        app.drain("empty")
        assert states(app, [father, child]) == [State.FAILED, State.DEAD_LETTER]

        retry(app, father)
        app.drain()
        assert states(app, [father, child]) == [State.BLOCKED, State.RETRYING]
        be_lucky(app)
        app.drain("empty")

        assert states(app, [father, child]) == [State.COMPLETED] * 2

    def test_a_body_that_failed_runs_again_and_its_children_after_it(self, app: MemoryApp) -> None:
        father = parent("try", {"x": 1}, body=Body.BEFORE)
        children = [linked("add", {"x": n}, body_of=father) for n in range(3)]
        submit(app, family(father, children))
        app.drain()
        assert states(app, [father, *children]) == [State.DEAD_LETTER] + [State.CANCELLED] * 3
        be_lucky(app)

        retry(app, father)
        app.drain()

        assert states(app, [father, *children]) == [State.COMPLETED] * 4


class TestCancellingTrees:
    def test_cancelling_a_parent_cancels_all_below_it(self, app: MemoryApp) -> None:
        father, grandfather, other = parent(), parent(), parent()
        inner = family(father, [linked("add", {"x": n}) for n in range(3)])
        tasks = [*family(grandfather, inner[:1]), *inner[1:]]
        strangers = family(other, [linked("add", {"x": 1})])
        submit(app, [*tasks, *strangers])

        app.wait_for(app.client.cancel(grandfather.id))

        assert set(states(app, tasks)) == {State.CANCELLED}
        app.drain()
        assert states(app, strangers) == [State.COMPLETED] * 2

    def test_a_cancelled_tree_can_be_started_again(self, app: MemoryApp) -> None:
        father, grandfather = parent(), parent()
        inner = family(father, [linked("add", {"x": n}) for n in range(3)])
        tasks = [*family(grandfather, inner[:1]), *inner[1:]]
        submit(app, tasks)
        app.wait_for(app.client.cancel(grandfather.id))

        retry(app, grandfather)
        app.drain()

        assert states(app, tasks) == [State.COMPLETED] * 5

    def test_cancelling_by_filter_cancels_all_below(self, app: MemoryApp) -> None:
        father = parent()
        tasks = family(father, [linked("add", {"x": n}) for n in range(3)])
        submit(app, tasks)

        app.wait_for(app.client.cancel_many(name=father.name))

        assert set(states(app, tasks)) == {State.CANCELLED}


class TestCancellingTheRest:
    def test_when_one_fails_the_others_are_cancelled_at_once(self, app: MemoryApp) -> None:
        father = parent(on_failure=OnFailure.CANCEL_REST)
        bad = linked("try", rest_of=father)
        sub = parent(delay=None)
        late = [linked("add", {"x": n}, rest_of=father, delay=3600.0) for n in range(3)]
        below = family(sub, [linked("add", {"x": 1}, delay=3600.0)])
        tasks = family(father, [bad, *late, below[0]])
        submit(app, [*tasks, *below[1:]])

        app.drain()

        assert states(app, [father, bad]) == [State.FAILED, State.DEAD_LETTER]
        for task in [*late, *below]:
            assert (found(app, task).state, found(app, task).reason) == (
                State.CANCELLED,
                Reason.DEPENDENCY_FAILED,
            )
        error = found(app, father).error
        assert error is not None
        assert bad.id in error.message

    def test_the_culprit_revives_them(self, app: MemoryApp) -> None:
        father = parent(on_failure=OnFailure.CANCEL_REST)
        bad = linked("try", rest_of=father)
        late = [linked("add", {"x": n}, rest_of=father, delay=3600.0) for n in range(3)]
        tasks = family(father, [bad, *late])
        submit(app, tasks)
        app.drain()
        be_lucky(app)

        retry(app, bad)
        app.drain()

        assert states(app, tasks) == [State.COMPLETED] * 5

    def test_one_that_was_about_to_start_does_not(self, app: MemoryApp) -> None:
        father = parent(on_failure=OnFailure.CANCEL_REST)
        bad = linked("try", rest_of=father)
        next_one = linked("add", {"x": 1}, rest_of=father)
        tasks = family(father, [bad, next_one])
        submit(app, tasks)

        ran = app.drain()

        assert "add" not in [each.name for each in ran if each.state is State.COMPLETED]
        assert found(app, next_one).reason is Reason.DEPENDENCY_FAILED


class TestFinishingWhatOthersBegan:
    def test_a_tree_that_was_cancelled_in_part_is_cancelled_whole(self, app: MemoryApp) -> None:
        father, grandfather = parent(), parent()
        inner = family(father, [linked("add", {"x": n}, delay=60.0) for n in range(3)])
        tasks = [*family(grandfather, inner[:1]), *inner[1:]]
        submit(app, tasks)
        about = {"parents": [grandfather.id], "reason": "cancelled"}
        left(app, CANCEL_TREE, about)
        ids = (grandfather.id, father.id)
        app.wait_for(app.client.store.cancel(TaskFilter(ids=ids), limit=2))

        app.drain()

        assert set(states(app, tasks)) == {State.CANCELLED}
        assert not app.wait_for(app.client.store.records(CHORE, limit=1))

    def test_a_tree_that_was_started_again_in_part_is_started_whole(self, app: MemoryApp) -> None:
        father, grandfather = parent(), parent()
        bad = [linked("try", {"x": n}) for n in range(2)]
        inner = family(father, bad)
        tasks = [*family(grandfather, inner[:1]), *inner[1:]]
        submit(app, tasks)
        app.drain()
        be_lucky(app)
        left(app, START_TREE, {"root": grandfather.id})
        one_of_them = TaskFilter(ids=(bad[0].id,))
        app.wait_for(app.client.store.requeue(one_of_them, limit=1, head_starts=HEAD_STARTS))

        app.drain()

        assert states(app, tasks) == [State.COMPLETED] * 4

    def test_victims_whose_culprit_alone_was_started_again_are_revived(
        self, app: MemoryApp
    ) -> None:
        links = chained([("try", {"x": 5}), ("add", {}), ("add", {})])
        submit(app, links)
        app.drain()
        be_lucky(app)
        left(app, START_AGAIN, {"culprits": [links[0].id]})
        culprit = TaskFilter(ids=(links[0].id,))
        app.wait_for(app.client.store.requeue(culprit, limit=1, head_starts=HEAD_STARTS))

        app.drain()

        assert states(app, links) == [State.COMPLETED] * 3

    def test_a_chore_of_a_newer_release_is_left_to_those_who_know_it(self, app: MemoryApp) -> None:
        app.open()
        left(app, "fly", {})

        app.drain()

        (record,) = app.wait_for(app.client.store.records(CHORE, limit=2))
        assert record.key == "fly left"


def left(app: MemoryApp, name: str, about: object) -> None:
    """Somebody began this and died."""
    record = chore(name, "left", about)
    app.wait_for(app.client.store.commit(Changes(f"{name} left", records=(record,))))
