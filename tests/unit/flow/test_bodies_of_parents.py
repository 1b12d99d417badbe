"""A body that runs before its children: its task ends after them, with what the body returned."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.kit.weaving import family, linked, parent, stored

from holdfast import Context, HoldfastError, State, context
from holdfast.core.flow import Body, OnFailure
from holdfast.core.task import Cause, NewTask, Reason, Task
from holdfast.flow.bodies import BODY
from holdfast.ports.records import one_record
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

    @app.task(name="plan")
    def plan(n: int = 0) -> str:
        return f"planned {n}"

    return app


def submit(app: MemoryApp, tasks: Sequence[NewTask]) -> None:
    app.wait_for(app.client.store.commit(stored(tasks)))


def found(app: MemoryApp, task_id: str) -> Task:
    return app.wait_for(app.client.get(task_id))


def test_children_start_when_the_body_has_returned_and_the_parent_ends_after_them(
    app: MemoryApp,
) -> None:
    father = parent("plan", {"n": 3}, body=Body.BEFORE)
    submit(app, family(father, [linked("add", {"x": n}, body_of=father) for n in range(2)]))

    ran = app.drain()

    assert [(each.name, each.state) for each in ran] == [
        ("plan", State.BLOCKED),
        ("add", State.COMPLETED),
        ("add", State.COMPLETED),
        ("plan", State.COMPLETED),
    ]
    task = found(app, father.id)
    assert (task.value, task.attempt, task.charged, task.cause) == (
        "planned 3",
        2,
        0,
        Cause.RESUMED,
    )
    assert app.wait_for(one_record(app.client.store, BODY, father.id)) is None


def test_children_of_a_body_that_failed_never_run_and_name_it(app: MemoryApp) -> None:
    father = parent("break", {"x": 3}, body=Body.BEFORE)
    child = linked("add", {"x": 1}, body_of=father)
    submit(app, family(father, [child]))

    app.drain()

    task = found(app, child.id)
    assert (task.state, task.reason) == (State.CANCELLED, Reason.DEPENDENCY_FAILED)
    assert task.error is not None
    assert task.error.message.startswith(f"task {father.id} (break) ended as dead_letter")


def test_children_of_a_cancelled_parent_never_run(app: MemoryApp) -> None:
    father = parent("plan", body=Body.BEFORE, delay=60.0)
    child = linked("add", {"x": 1}, body_of=father)
    submit(app, family(father, [child]))

    app.wait_for(app.client.cancel(father.id))
    app.drain()

    assert found(app, child.id).state is State.CANCELLED


class TestSubmittingChildren:
    def test_a_task_ends_after_the_children_that_it_submitted(self, app: MemoryApp) -> None:
        @app.task(name="split")
        def split(ctx: Context, n: int) -> int:
            for number in range(n):
                ctx.submit_child(app.registry["add"], x=number)
            return n

        handle = split.submit(3)

        ran = app.drain()

        assert [(each.name, each.state) for each in ran] == [
            ("split", State.BLOCKED),
            *[("add", State.COMPLETED)] * 3,
            ("split", State.COMPLETED),
        ]
        assert handle.result() == 3
        children = app.wait_for(app.client.ended_children(handle.id))
        assert [child.value for child in children] == [1, 2, 3]
        assert {child.parent_id for child in children} == {handle.id}

    def test_it_fails_with_its_children_and_its_body_does_not_run_again(
        self, app: MemoryApp
    ) -> None:
        bodies: list[int] = []

        @app.task(name="split", max_retries=3)
        def split(ctx: Context) -> int:
            bodies.append(ctx.attempt)
            ctx.submit_child(app.registry["break"])
            return 1

        handle = split.submit()

        app.drain()

        task = handle.task()
        assert (task.state, bodies) == (State.FAILED, [1])
        assert task.error is not None
        assert task.error.type == "ChildFailed"

    def test_a_body_that_fails_has_no_children(self, app: MemoryApp) -> None:
        @app.task(name="split", max_retries=1)
        def split(ctx: Context) -> int:
            child = ctx.submit_child(app.registry["add"], x=ctx.attempt)
            if ctx.attempt == 1:
                raise ValueError("not yet")
            assert child.id
            return 1

        handle = split.submit()

        app.drain("empty")

        children = app.wait_for(app.client.ended_children(handle.id))
        assert [child.value for child in children] == [3]

    def test_follow_ups_are_no_children(self, app: MemoryApp) -> None:
        @app.task(name="split")
        def split(ctx: Context) -> int:
            ctx.submit(app.registry["break"])
            ctx.submit_child(app.registry["add"], x=1)
            return 1

        handle = split.submit()

        app.drain()

        assert handle.result() == 1
        assert len(app.wait_for(app.client.ended_children(handle.id))) == 1

    def test_children_may_have_children(self, app: MemoryApp) -> None:
        @app.task(name="tree")
        def tree(ctx: Context, depth: int) -> int:
            if depth:
                ctx.submit_child(tree, depth - 1)
                ctx.submit_child(tree, depth - 1)
            return depth

        handle = tree.submit(3)

        ran = app.drain()

        assert handle.result() == 3
        assert ran[-1].task_id == handle.id
        assert sum(each.state is State.COMPLETED for each in ran) == 15

    def test_a_handler_that_does_not_take_its_context_is_told_to(self, app: MemoryApp) -> None:
        @app.task(name="hidden")
        def hidden() -> None:
            context().submit_child(app.registry["add"], x=1)

        hidden.submit()

        with pytest.raises(HoldfastError, match=r"ctx\.submit_child.*ctx: Context"):
            app.drain(reraise=True)


class TestLookingAtChildren:
    def test_a_body_that_runs_after_its_children_sees_how_they_ended(self, app: MemoryApp) -> None:
        @app.task(name="judge")
        def judge(ctx: Context) -> list[object]:
            return [[child.name, child.state, child.value] for child in ctx.children_sync()]

        @app.task(name="judge_async")
        async def judge_async(ctx: Context) -> list[object]:
            return [[child.name, child.state, child.value] for child in await ctx.children()]

        fathers = [
            parent(name, body=Body.AFTER, on_failure=OnFailure.CONTINUE)
            for name in ("judge", "judge_async")
        ]
        for father in fathers:
            submit(app, family(father, [linked("add", {"x": 1}), linked("break")]))

        app.drain()

        for father in fathers:
            assert found(app, father.id).value == [
                ["add", "completed", 2],
                ["break", "dead_letter", None],
            ]
