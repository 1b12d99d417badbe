"""Tasks that come after others, and take their results."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from holdfast import Handle, InvalidArguments, InvalidOption, PayloadRefused, State, Task
from holdfast.core.flow import Flow, flow_of
from holdfast.definitions.definition import Definition
from holdfast.definitions.open import open_call
from holdfast.definitions.options import NO_OPTIONS
from holdfast.testing import MemoryApp

Add = Definition[..., int, int]


@pytest.fixture
def add(app: MemoryApp) -> Add:
    @app.task
    def add(x: int, y: int = 0) -> int:
        return x + y

    return add


def flow(handle: Handle[Any]) -> Flow:
    return flow_of(handle.task().payload) or Flow()


@pytest.mark.parametrize("when", [None, "success", "failure", "always"])
def test_a_task_may_come_after_others(add: Add, when: str | None) -> None:
    first, second = add.submit(1), add.submit(2)

    last = add.options(after=[first, second.id.upper()], when=when).submit(3)

    expected = when or "success"
    assert last.status() is State.BLOCKED
    assert flow(last).after == ((first.id, expected), (second.id, expected))
    assert last.task().arguments == {"x": 3}


def test_a_result_to_be_is_an_argument_that_is_waited_for(add: Add) -> None:
    first, second = add.submit(1), add.submit(2)

    last = add.submit(first.result_ref(), y=second.result_ref())

    assert last.status() is State.BLOCKED
    assert flow(last).after == ((first.id, "success"), (second.id, "success"))
    assert flow(last).results == {"x": ("one", (first.id,)), "y": ("one", (second.id,))}
    assert last.task().arguments == {}


def test_a_list_of_results_is_an_argument(app: MemoryApp, add: Add) -> None:
    @app.task
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    parts = [add.submit(n) for n in range(3)]

    last = total.submit([part.result_ref() for part in parts])

    assert flow(last).results == {"numbers": ("each", tuple(part.id for part in parts))}
    with pytest.raises(InvalidArguments, match="numbers: a list with a result"):
        total.submit([parts[0].result_ref(), 5])


def test_a_result_needs_success_whatever_else_is_said_of_its_task(add: Add) -> None:
    first = add.submit(1)

    last = add.options(after=first, when="always").submit(first.result_ref())

    assert flow(last).after == ((first.id, "success"),)


def test_what_is_known_is_checked_at_submit(add: Add) -> None:
    first = add.submit(1)

    with pytest.raises(InvalidArguments, match=r"y: .*integer"):
        add.submit(first.result_ref(), y="two")
    with pytest.raises(InvalidArguments, match="no parameter"):
        add.submit(first.result_ref(), other=2)


def test_a_task_that_has_ended_may_be_named_too(add: Add) -> None:
    first = add.submit(1)
    first.cancel()

    last = add.options(after=first, when="always").submit(2)

    assert last.status() is State.QUEUED


def test_a_task_that_does_not_exist_cannot_be_waited_for(app: MemoryApp, add: Add) -> None:
    unknown = str(uuid4())

    with pytest.raises(InvalidOption, match=f"after: there is no task {unknown}"):
        add.options(after=unknown).submit(1)
    with pytest.raises(InvalidOption, match=f"after: there is no task {unknown}"):
        add.submit(app.handle(unknown).result_ref())

    assert app.count() == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"after": "soon"}, "after: expected a handle or the id of a task, got 'soon'"),
        ({"after": ["soon"]}, r"after\[0\]: expected a handle"),
        ({"when": "always"}, "when: says how what it comes `after`"),
        ({"after": str(uuid4()), "when": "maybe"}, "when: expected success, failure, always"),
    ],
)
def test_what_makes_no_sense_is_refused(add: Add, options: Any, says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        add.options(**options)


def test_a_lock_made_of_a_result_to_be_is_refused(app: MemoryApp, add: Add) -> None:
    @app.task(lock="doc:{doc}")
    def edit(doc: int, text: int) -> None: ...

    first = add.submit(1)

    with pytest.raises(InvalidOption, match="lock: is made from the arguments, and doc will only"):
        edit.submit(first.result_ref(), 5)
    assert edit.submit(7, first.result_ref()).task().lock == "doc:7"
    assert edit.options(lock="x").submit(first.result_ref(), 5).task().lock == "x"


def test_a_key_stands_for_the_results_too(add: Add) -> None:
    first, second = add.submit(1), add.submit(2)

    def submit(of: Handle[int]) -> Handle[int]:
        return add.options(idempotency_key="k").submit(of.result_ref())

    made = submit(first)

    assert submit(first).id == made.id
    with pytest.raises(InvalidOption, match="already used"):
        submit(second)


def shown(task: Task) -> Any:
    return task.to_dict()["parameters"]


def test_secrets_stay_hidden_beside_results_to_be(app: MemoryApp, add: Add) -> None:
    @app.task(secret_fields="password")
    def login(password: str, attempts: int) -> None: ...

    task = login.submit("hunter2", add.submit(1).result_ref()).task()

    assert "hunter2" not in str(shown(task))
    assert "hunter2" not in str(app.registry[task.name].masked(task.payload))


def test_nobody_writes_by_hand_what_a_task_has_to_do_with_others(app: MemoryApp) -> None:
    with pytest.raises(PayloadRefused, match="keeps for itself"):
        open_call("render", {"$flow": {"after": []}}, NO_OPTIONS)
