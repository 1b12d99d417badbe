"""How to test your own tasks: with pytest, without a worker, a file or any waiting.

pytest examples/test_your_tasks.py
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from holdfast import Holdfast, InvalidArguments, fixed
from holdfast.testing import InMemory, in_memory

app = Holdfast()
outbox: list[str] = []


@app.task
def send(to: str, retries: int = 0) -> str:
    outbox.append(to)
    return f"sent to {to}"


@app.task(max_retries=1, retry=fixed(600))
def fetch(url: str) -> str:
    raise ConnectionError(f"{url} is away")


@app.task
def invite(people: list[str]) -> int:
    for person in people:
        send.options(delay="1h").submit(person)
    return len(people)


def test_the_body_is_an_ordinary_function() -> None:
    assert send("ada@example.org") == "sent to ada@example.org"


def test_a_submitted_task_runs_when_drained() -> None:
    with in_memory(app) as memory:
        task = send.submit("bob@example.org")
        memory.drain()

        assert task.result() == "sent to bob@example.org"


def test_wrong_arguments_are_refused_at_submit() -> None:
    with in_memory(app), pytest.raises(InvalidArguments, match="retries"):
        send.submit("ada@example.org", retries="many")  # type: ignore[arg-type]


def test_a_retry_waits_ten_minutes_and_then_it_is_a_dead_letter() -> None:
    with in_memory(app) as memory:
        task = fetch.submit("https://example.org")
        memory.drain()
        assert task.status() == "retrying"

        memory.clock.advance(timedelta(minutes=10))
        memory.drain()
        assert task.status() == "dead_letter"


def test_delayed_work_can_be_run_to_the_end(
    holdfast_memory: Callable[[Holdfast], InMemory],
) -> None:
    memory = holdfast_memory(app)  # the pytest fixture that comes with Holdfast

    invite.submit(["ada", "bob"])
    ran = memory.drain(until="empty")

    assert [each.name.rpartition(".")[2] for each in ran] == ["invite", "send", "send"]
