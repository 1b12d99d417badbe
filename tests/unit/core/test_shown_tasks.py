"""What of a task is seen when somebody prints it, or shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import SecretStr

from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import Succeeded
from holdfast.http.verbs import call
from holdfast.testing import MemoryApp


@pytest.fixture
def app() -> MemoryApp:
    return MemoryApp()


async def test_a_task_shows_arguments_and_result_as_values_and_secrets_as_stars(
    app: MemoryApp,
) -> None:
    @app.task
    def login(user: str, password: SecretStr) -> dict[str, str]:
        return {"welcome": user}

    handle = await login.submit_async("ann", SecretStr("hunter2"))
    before = await handle.task_async()
    await app.drain_async()
    task = await handle.task_async()

    assert task.arguments == {"user": "ann", "password": "**********"}
    assert (before.value, task.value) == (None, {"welcome": "ann"})
    whole = task.to_dict()
    assert (whole["parameters"], whole["result"]) == (task.arguments, task.value)
    assert (whole["task_id"], whole["status"], whole["error"]) == (task.id, "completed", None)
    assert "hunter2" not in json.dumps(whole)


async def test_what_is_printed_has_neither_arguments_nor_results(app: MemoryApp) -> None:
    printed: list[Any] = []

    @app.task(name="login")
    def login(user: str, password: SecretStr) -> str:
        return f"secret for {user}"

    made = login.call("anna-maria", SecretStr("hunter2"))
    handle = await login.submit_async("anna-maria", SecretStr("hunter2"))
    await app.drain_async()
    task = await handle.task_async()
    new = app.client.new_tasks([made])[0]
    remote = call("login", {"user": "anna-maria", "password": "hunter2"}, {})
    printed += [made, new, handle, task, Claim.of(task), remote, Succeeded(b'"secret for x"')]

    for each in printed:
        for text in (repr(each), str(each), f"{each}"):
            assert "anna-maria" not in text
            assert "hunter2" not in text
            assert "secret for" not in text
    assert f"id='{task.id}'" in repr(task)
    assert f"task_id='{task.id}'" in repr(Claim.of(task))
    assert repr(remote) == "<RemoteCall login>"
