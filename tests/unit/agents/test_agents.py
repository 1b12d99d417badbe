"""Agents: what they are given, what becomes of what they return, and what their steps remember."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import orjson
import pytest

from holdfast import AgentResult, AgentRun, Retry, Usage
from holdfast.agents.conversation import CONVERSATION, Message, conversation_key
from holdfast.agents.defining import agent_arguments
from holdfast.core.record import Changes, Put
from holdfast.core.task import State, Task
from holdfast.errors import InvalidOption, TaskNotFound
from holdfast.ports.records import RecordStore
from holdfast.testing import MemoryApp

ASKED = agent_arguments(
    "Summarise my inbox", title="Inbox", chat_id="c1", message_id="m1",
    timezone="Europe/Berlin", language="de",
)  # fmt: skip


@pytest.fixture
async def app() -> AsyncIterator[MemoryApp]:
    async with MemoryApp(retry_base="0s", agent=None) as made:
        yield made


async def ran(app: MemoryApp, name: str, asked: Mapping[str, Any] = ASKED) -> Task:
    """A task that was run until nothing was left to do."""
    handle = await app.submit_by_name_async(name, asked, owner="ann")
    await app.drain_async()
    return await app.get_async(handle.id)


async def say(app: MemoryApp, owner: str, *texts: str) -> None:
    """Put these messages into the chat c1 of an owner."""
    messages = [{"role": "user", "content": text, "at": "2026-03-02T12:00:00Z"} for text in texts]
    document = orjson.dumps({"messages": messages}).decode()
    put = Put(CONVERSATION, conversation_key(owner, "c1"), document)
    await app.client.store.commit(Changes(f"{owner} {texts}", records=[put]))


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_agent_is_given_what_was_asked_and_what_was_said(
    app: MemoryApp, is_async: bool
) -> None:
    seen: list[AgentRun] = []
    await say(app, "ann", *(f"message {number}" for number in range(30)))
    await say(app, "bob", "a secret")

    def work(run: AgentRun) -> str:
        seen.append(run)
        run.progress("Reading your inbox")
        run.log("two mails")
        return f"{run.purpose} for {run.owner}"

    @app.agent(name="on_the_loop")
    async def on_the_loop(run: AgentRun) -> str:
        return work(run)

    app.agent(name="plain")(work)
    task = await ran(app, "on_the_loop" if is_async else "plain")

    (run,) = seen
    assert (run.title, run.chat_id, run.message_id) == ("Inbox", "c1", "m1")
    assert (run.timezone, run.language, run.attempt) == ("Europe/Berlin", "de", 1)
    assert (run.id, run.scheduled_for) == (task.id, None)
    assert [each.content for each in run.messages] == [f"message {n}" for n in range(10, 30)]
    assert run.messages[0] == Message("user", "message 10", "2026-03-02T12:00:00Z")
    assert task.value == {
        "content": "Summarise my inbox for ann",
        "usage": {"units": 0.0, "tokens_in": 0, "tokens_out": 0, "cost": 0.0},
        "steps": ["Reading your inbox"],
        "chat_id": "c1",
        "message_id": "m1",
    }
    assert task.progress is not None
    assert task.progress.message == "Reading your inbox"


@pytest.mark.parametrize(
    ("returned", "content", "cost"),
    [
        ("text", "text", 0.5),
        (AgentResult(content="made", usage=Usage(units=1, tokens_in=2, cost=0.25)), "made", 0.75),
        ({"content": "mapped", "usage": {"cost": 0.25}, "sources": ["a"]}, "mapped", 0.75),
    ],
)
async def test_what_is_returned_and_what_was_told_is_added_up_and_reported_once(
    app: MemoryApp, returned: Any, content: str, cost: float
) -> None:
    @app.agent(name="answer")
    async def answer(run: AgentRun) -> Any:
        run.usage(3, tokens_in=10, tokens_out=20, cost=0.5)
        return returned

    task = await ran(app, "answer")

    assert task.value["content"] == content
    assert task.value["usage"]["cost"] == cost
    assert task.value["usage"]["units"] == task.cost.units
    assert task.value["usage"]["tokens_in"] == task.cost.tokens_in
    assert task.value.get("sources", ["a"]) == ["a"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_step_is_paid_once_and_remembers_its_usage_and_its_progress(
    app: MemoryApp, is_async: bool
) -> None:
    paid: list[str] = []

    def think(run: AgentRun) -> dict[str, int]:
        run.progress("Thinking")
        run.usage(tokens_in=100, tokens_out=50, cost=0.01)
        paid.append("model")
        return {"mails": 2}

    @app.agent(name="async", max_retries=3)
    async def on_the_loop(run: AgentRun) -> str:
        run.progress("Reading")
        found = await run.step("think", think, run)
        if run.attempt < 3:
            raise Retry
        return f"{found['mails']} mails"

    @app.agent(name="sync", max_retries=3)
    def in_a_thread(run: AgentRun) -> str:
        run.progress("Reading")
        found = run.step_sync("think", think, run)
        if run.attempt < 3:
            raise Retry
        return f"{found['mails']} mails"

    task = await ran(app, "async" if is_async else "sync")

    assert (task.attempt, paid) == (3, ["model"])
    assert task.value["content"] == "2 mails"
    assert task.value["usage"] == {"units": 0.0, "tokens_in": 100, "tokens_out": 50, "cost": 0.01}
    assert task.value["steps"] == ["Reading", "Thinking"]
    assert (task.cost.tokens_in, task.cost.tokens_out) == (100, 50)


async def test_steps_at_once_keep_their_usage_apart(app: MemoryApp) -> None:
    @app.agent(name="answer")
    async def answer(run: AgentRun) -> str:
        async def ask(number: int) -> int:
            run.usage(number)
            await asyncio.sleep(0)
            run.usage(number)
            return number

        await asyncio.gather(*(run.step(f"ask {n}", ask, n) for n in range(1, 4)))
        return "done"

    task = await ran(app, "answer")

    assert task.value["usage"]["units"] == task.cost.units == 12


async def test_a_failed_step_that_the_agent_survives_was_paid_all_the_same(app: MemoryApp) -> None:
    @app.agent(name="answer")
    async def answer(run: AgentRun) -> str:
        def fail() -> None:
            run.usage(cost=0.5)
            raise KeyError

        try:
            await run.step("try", fail)
        except KeyError:
            return "without it"
        return "never"

    assert (await ran(app, "answer")).value["usage"]["cost"] == 0.5


async def test_what_is_no_answer_fails_at_once(app: MemoryApp) -> None:
    @app.agent(name="answer")
    async def answer(run: AgentRun) -> Any:
        return 7

    task = await ran(app, "answer")

    assert task.state is State.FAILED
    assert task.error is not None
    assert "an agent must return text" in task.error.message


async def test_the_default_agent_is_the_first_or_the_one_that_says_so(app: MemoryApp) -> None:
    assert app.default_agent is None

    @app.agent(name="first")
    def first(run: AgentRun) -> str:
        return ""

    assert app.default_agent == "first"

    @app.agent(name="second", default=True, queue="agents", timeout="10m")
    def second(run: AgentRun) -> str:
        return ""

    assert app.default_agent == "second"
    assert (second.queue, second.timeout) == ("agents", 600.0)
    async with MemoryApp(agent="elsewhere") as other:
        assert other.default_agent == "elsewhere"


async def test_another_reader_finds_the_conversation(app: MemoryApp) -> None:
    class Reader:
        async def read(
            self, store: RecordStore, owner: str | None, chat_id: str, most: int
        ) -> Sequence[Message]:
            return [Message("user", f"{owner} {chat_id} {most}")]

    @app.agent(name="answer", context=Reader(), messages=3)
    def answer(run: AgentRun) -> str:
        return " ".join(each.content for each in run.messages)

    assert (await ran(app, "answer")).value["content"] == "ann c1 3"
    assert (await ran(app, "answer", {"purpose": "no chat"})).value["content"] == ""


def test_what_cannot_be_an_agent_is_refused_where_it_stands() -> None:
    app = MemoryApp()
    with pytest.raises(InvalidOption, match="must take one AgentRun"):
        app.agent(lambda: "")  # type: ignore[arg-type, misc] # on purpose
    with pytest.raises(InvalidOption, match="messages"):
        app.agent(messages=-1)
    with pytest.raises(InvalidOption, match="expected a function"):
        app.agent(3)  # type: ignore[call-overload] # on purpose


async def test_an_execution_tells_what_a_run_was_for_and_what_came_of_it(app: MemoryApp) -> None:
    @app.agent(name="answer", max_retries=0)
    async def answer(run: AgentRun) -> AgentResult:
        run.progress("Reading your inbox")
        run.progress("Writing")
        if run.purpose == "fail":
            raise ValueError
        return AgentResult(content="All quiet.", usage=Usage(units=2, tokens_in=7, cost=0.1))

    for name, purpose in (("good", "Summarise"), ("bad", "fail")):
        await app.schedules.create_async(
            "answer", "every 1h", name=name, owner="ann", title="Inbox", estimated_units=5,
            arguments={"purpose": purpose, "chat_id": "c1", "message_id": "m1"},
        )  # fmt: skip
    good, bad = [await app.schedules.trigger_async(name) for name in ("good", "bad")]
    waiting = await app.executions.get_async(good)
    plain = await app.submit_by_name_async("answer", {}, owner="ann")
    await app.drain_async()

    one = await app.executions.get_async(good)
    assert (waiting.status, waiting.content, waiting.steps) == ("running", None, ())
    assert (one.status, one.content, one.schedule) == ("success", "All quiet.", "good")
    assert (one.title, one.purpose, one.chat_id, one.message_id) == (
        "Inbox", "Summarise", "c1", "m1",
    )  # fmt: skip
    assert one.steps == ("Reading your inbox", "Writing")
    assert (one.estimated_units, one.usage) == (5, Usage(units=2, tokens_in=7, cost=0.1))
    assert (one.origin, one.owner, one.deliveries) == ("manual", "ann", ())
    failed = await app.executions.get_async(bad)
    assert failed.status == "failure"
    assert failed.steps == ("Reading your inbox", "Writing")
    assert failed.error is not None
    with pytest.raises(TaskNotFound):
        await app.executions.get_async(plain.id)

    async def listed(**words: Any) -> list[str]:
        return [each.id for each in (await app.executions.list_async(**words)).executions]

    assert await listed() == [bad, good]
    assert await listed(schedule="good") == [good]
    assert await listed(status="failure", owner="ann") == [bad]
    assert await listed(owner="bob") == []
    page = await app.executions.list_async(limit=1)
    assert [each.id for each in page.executions] == [bad]
    assert await listed(limit=1, after=page.next) == [good]
    with pytest.raises(InvalidOption, match="status"):
        await listed(status="done")
