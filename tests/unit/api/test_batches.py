"""`batch=`: each submit gives one item, the handler takes a list, each task ends by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from holdfast import (
    Batch,
    BatchContext,
    Context,
    Fatal,
    Holdfast,
    InvalidArguments,
    InvalidOption,
    Retry,
    Snooze,
    State,
    chain,
    context,
)
from holdfast.core.task import Cost
from holdfast.testing import MemoryApp


@dataclass
class Doc:
    id: int
    text: str = ""


@pytest.fixture
def ran() -> list[list[Any]]:
    return []


def test_the_handler_takes_what_was_submitted_one_by_one(
    app: MemoryApp, ran: list[list[Any]]
) -> None:
    @app.task(batch=Batch(max=3, within="5s"))
    def index(docs: list[Doc]) -> list[int]:
        ran.append(docs)
        return [doc.id * 10 for doc in docs]

    handles = [index.submit(Doc(n)) for n in range(5)]
    app.drain()

    assert ran == [[Doc(0), Doc(1), Doc(2)], [Doc(3), Doc(4)]]
    assert [handle.result() for handle in handles] == [0, 10, 20, 30, 40]
    assert index([Doc(7)]) == [70], "a direct call is the function's"


def test_a_submit_is_checked_against_the_type_of_one_item(app: MemoryApp) -> None:
    @app.task(batch=Batch())
    def index(docs: list[Doc]) -> None: ...

    with pytest.raises(InvalidArguments, match="docs"):
        index.submit("no document")  # type: ignore[arg-type] # the point
    with pytest.raises(InvalidArguments, match="docs"):
        index.submit([Doc(1)])  # type: ignore[arg-type] # the point

    handle = app.submit_by_name(index.name, {"docs": {"id": 3, "text": "x"}})
    assert handle.task().arguments == {"docs": {"id": 3, "text": "x"}}


async def test_an_async_handler_with_a_context_knows_its_members(app: MemoryApp) -> None:
    seen: list[object] = []

    @app.task(batch=Batch(max=10))
    async def index(ctx: BatchContext, docs: list[int]) -> list[str]:
        assert context() is ctx
        seen.extend((member.id, member.attempt, member.owner) for member in ctx.members)
        ctx.log("all of us")
        ctx.progress(1, 2)
        ctx.members[1].log("only me")
        ctx.cost(3.0, tokens_in=7)
        return [str(doc) for doc in docs]

    one = await index.options(owner="ann").submit_async(1)
    two = await index.submit_async(2)
    await app.drain_async()

    assert seen == [(one.id, 1, "ann"), (two.id, 1, None)]
    assert await one == "1"
    lines = [
        [e.detail for e in (await h.history_async()).events if e.kind == "log"] for h in (one, two)
    ]
    assert lines == [["all of us"], ["all of us", "only me"]]
    costs = [(await handle.task_async()).cost for handle in (one, two)]
    assert costs == [Cost(units=1.5, tokens_in=4), Cost(units=1.5, tokens_in=3)]


def test_each_member_ends_as_its_own_result_says(app: MemoryApp) -> None:
    @app.task(batch=Batch(), max_retries=1, retry="fixed(1m)")
    def work(words: list[str]) -> list[str | Exception]:
        ends = {
            "bad": ValueError("no good"),
            "fatal": Fatal("never"),
            "later": Retry(after=7200),
            "snooze": Snooze(after=10800),
            "odd": object(),
        }
        return [ends.get(word, word.upper()) for word in words]  # type: ignore[misc] # the odd one

    words = ["good", "bad", "fatal", "later", "snooze", "odd"]
    handles = dict(zip(words, app.submit_many([work.call(word) for word in words]), strict=True))
    now = app.clock.now
    app.drain()
    tasks = {word: handle.task() for word, handle in handles.items()}

    assert {word: task.state.value for word, task in tasks.items()} == {
        "good": "completed", "bad": "retrying", "fatal": "failed", "later": "retrying",
        "snooze": "queued", "odd": "failed",
    }  # fmt: skip
    assert handles["good"].result() == "GOOD"
    assert tasks["bad"].error is not None
    assert tasks["bad"].error.message == "no good"
    waits = [(tasks[word].run_at - now).total_seconds() for word in ("bad", "later", "snooze")]
    assert waits == [60.0, 7200.0, 10800.0]
    assert (tasks["bad"].charged, tasks["snooze"].charged) == (1, 0)


def test_what_the_handler_raises_fails_every_member(app: MemoryApp, ran: list[list[Any]]) -> None:
    @app.task(batch=Batch(), max_retries=2, retry="fixed(1m)")
    def work(words: list[str]) -> None:
        ran.append(words)
        raise RuntimeError("all of it")

    handles = app.submit_many([work.call(word) for word in ("a", "b")])
    app.drain()
    assert [handle.status() for handle in handles] == [State.RETRYING] * 2

    app.drain("empty")
    assert [handle.status() for handle in handles] == [State.DEAD_LETTER] * 2
    assert ran == [["a", "b"], ["a", "b"], ["a"], ["b"]], "the last try is made alone"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([1], "a list of 2 results, one for each item, got 1"),
        ({"a": 1}, "expected a list or None, got dict"),
        ("ab", "expected a list or None, got str"),
    ],
)
def test_a_result_that_is_not_one_for_each_item_fails_them(
    app: MemoryApp, answer: Any, says: str
) -> None:
    @app.task(batch=Batch())
    def work(words: list[str]) -> Any:
        return answer

    handles = app.submit_many([work.call(word) for word in ("a", "b")])
    app.drain()

    for handle in handles:
        error = handle.task().error
        assert error is not None
        assert says in error.message


def test_a_member_that_does_not_fit_any_more_is_left_out(
    app: MemoryApp, ran: list[list[Any]]
) -> None:
    @app.task(batch=Batch(), name="work")
    def work(items: list[Any]) -> list[int]:
        return []

    handles = app.submit_many([work.call(item) for item in (1, "x", 3)])

    newer = Holdfast(url="memory://")

    @newer.task(batch=Batch(), name="work")
    def work_now(items: list[int]) -> list[int]:
        ran.append(items)
        return items

    app.registry = newer.registry
    app.drain()

    assert ran == [[1, 3]]
    states = [handle.status().value for handle in handles]
    assert states == ["completed", "dead_letter", "completed"]


def test_a_follow_up_goes_with_the_completion_of_its_member(app: MemoryApp) -> None:
    @app.task
    def tell(n: int) -> None: ...

    @app.task(batch=Batch(), max_retries=0)
    def work(ctx: BatchContext, items: list[int]) -> list[int | Exception]:
        for member, item in zip(ctx.members, items, strict=True):
            member.submit(tell, item)
        return [ValueError() if item == 2 else item for item in items]

    app.submit_many([work.call(n) for n in (1, 2, 3)])
    told = [one.name.rpartition(".")[2] for one in app.drain()]

    assert told.count("tell") == 2


def test_what_belongs_to_one_task_is_refused_for_all(app: MemoryApp) -> None:
    @app.task(batch=Batch(), max_retries=0)
    def work(ctx: BatchContext, items: list[str]) -> None:
        match items[0]:
            case "submit":
                ctx.submit(work, "x")
            case "transaction":
                ctx.members[0].transaction()
            case "step":
                ctx.members[0].step_sync("one", len, "x")
            case "sleep":
                ctx.sleep_sync("1h")

    handles = []
    for word in ("submit", "transaction", "step", "sleep"):
        handles.append(work.submit(word))
        app.drain()

    errors = [handle.task().error for handle in handles]
    assert all(error is not None and error.type == "Unsupported" for error in errors)


def test_secrets_of_all_members_are_stars_in_an_error(app: MemoryApp) -> None:
    @app.task(batch=Batch(), max_retries=0)
    def work(keys: list[SecretStr]) -> None:
        raise ValueError(" ".join(key.get_secret_value() for key in keys))

    handles = app.submit_many([work.call(SecretStr(word)) for word in ("hunter2-a", "hunter2-b")])
    app.drain()

    for handle in handles:
        error = handle.task().error
        assert error is not None
        assert "hunter2" not in error.message


def test_keys_are_made_from_the_item(app: MemoryApp) -> None:
    @app.task(batch=Batch(), lock="doc:{docs.id}")
    def index(docs: list[Doc]) -> None: ...

    assert index.call(Doc(7)).lock == "doc:7"


def test_middleware_surrounds_the_whole_run(app: MemoryApp) -> None:
    from holdfast import Middleware, NextRun, Outcome

    seen: list[int] = []

    @app.middleware
    class Counting(Middleware):
        async def run(self, ctx: Context, call_next: NextRun) -> Outcome:
            assert isinstance(ctx, BatchContext)
            seen.append(len(ctx.members))
            return await call_next()

    @app.task(batch=Batch())
    def work(items: list[int]) -> None: ...

    app.submit_many([work.call(n) for n in range(4)])
    app.drain()

    assert seen == [4]


@pytest.mark.parametrize(
    ("function", "batch", "says"),
    [
        (lambda: None, Batch(), r"^batch: .*must have one parameter"),
        (lambda a, b: None, Batch(), r"^batch: .*must have one parameter"),
        (lambda *a: None, Batch(), r"^batch: .*must have one parameter"),
        (lambda a=(): None, Batch(), r"^batch: .*must have one parameter"),
        (lambda a: None, 100, r"^batch: expected Batch\("),
        (lambda a: None, Batch(max=0), r"^batch.max: expected 1 to 2,000, got 0"),
        (lambda a: None, Batch(within="soon"), r"^batch.within: expected"),
    ],
)
def test_a_batch_that_cannot_be_is_refused(
    app: MemoryApp, function: Any, batch: Any, says: str
) -> None:
    with pytest.raises(InvalidOption, match=says):
        app.task(name="work", batch=batch)(function)


def test_a_handler_whose_parameter_is_no_list_is_refused(app: MemoryApp) -> None:
    def index(doc: dict[str, int]) -> None: ...

    with pytest.raises(InvalidOption, match="annotate it with a list, got dict"):
        app.task(batch=Batch())(index)  # type: ignore[arg-type] # the point


def test_a_member_may_take_the_result_of_another_task_and_have_children(
    app: MemoryApp, ran: list[list[Any]]
) -> None:
    @app.task
    def double(n: int) -> int:
        return 2 * n

    @app.task(batch=Batch(max=10))
    def work(ctx: BatchContext, items: list[int]) -> list[int]:
        ran.append(items)
        ctx.members[0].submit_child(double, 100)
        return [item + 1 for item in items]

    chained = [chain(double.s(n), work.s()).submit() for n in (1, 2)]
    app.drain()

    assert ran == [[2, 4]]
    assert [handle.result() for handle in chained] == [3, 5]
