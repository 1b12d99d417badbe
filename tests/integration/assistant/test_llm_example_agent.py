"""The example's agent against a real endpoint's protocol: streamed, retried, paid once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.assistant.readings import KEY
from tests.kit.servers import model
from tests.kit.servers.model import ModelServer

from holdfast import Holdfast
from holdfast.core.task import State, Task
from holdfast.errors import TaskFailed
from holdfast.testing.eventually import eventually

STALLED = Path(__file__).with_name("stalled.py")
ANSWER = model.streams(["Three ", "mails, ", "none urgent."])


@contextmanager
def worker(folder: Path, model_url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process; what is left of it is killed at the end."""
    settings = {
        "URL": f"sqlite:///{folder}/tasks.db", "LEASE": "1500ms", "HEARTBEAT": "300ms",
        "SWEEP": "200ms", "POLL": "100ms", "LLM_URL": model_url, "LLM_KEY": KEY,
        "LLM_MODEL": "scripted",
    }  # fmt: skip
    variables = {f"HOLDFAST_{name}": value for name, value in settings.items()}
    with (folder / "log").open("ab") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "worker", f"{STALLED}:app"],
            cwd=folder, env={**os.environ, **variables, "STALLED_FOLDER": str(folder)},
            stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield running
        finally:
            running.kill()
            running.wait()


def there(folder: Path) -> Holdfast:
    """The app as a caller has it: the agents are run by the workers."""
    app = Holdfast(url=f"sqlite:///{folder}/tasks.db")
    for name in ("assistant", "stalled"):

        @app.task(name=name, max_retries=0 if name == "stalled" else 3)
        def agent(purpose: str) -> dict[str, Any]: ...  # type: ignore[empty-body] # not run here

    return app


async def finished(app: Holdfast, task_id: str) -> Task | None:
    task = await app.get_async(task_id)
    return task if task.state in {State.COMPLETED, State.FAILED, State.DEAD_LETTER} else None


async def test_a_run_killed_after_its_answer_does_not_ask_the_model_again(tmp_path: Path) -> None:
    with ModelServer(ANSWER) as server:
        async with there(tmp_path) as app:
            handle = await app.submit_by_name_async("stalled", {"purpose": "Summarise my inbox"})
            with worker(tmp_path, server.url):
                await eventually((tmp_path / "answered-1").exists, within=60)
            with worker(tmp_path, server.url):
                task = await eventually(lambda: finished(app, handle.id), within=60)

    assert len(server.asked) == 1, "the model was paid twice"
    assert server.asked[0].body["stream"] is True
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert task is not None
    assert task.attempt == 2
    assert task.value["content"] == "Three mails, none urgent."
    assert task.value["usage"] == {"units": 1.0, "tokens_in": 100, "tokens_out": 20, "cost": 0.0}
    assert KEY not in (tmp_path / "log").read_text()


async def test_an_answer_that_stops_in_the_middle_and_a_busy_endpoint_are_asked_again(
    tmp_path: Path,
) -> None:
    broken = model.streams(["Three "], finish=None)
    with ModelServer(model.status(429, retry_after="0"), broken, ANSWER) as server:
        async with there(tmp_path) as app:
            handle = await app.submit_by_name_async(
                "assistant", {"purpose": "Summarise"}, retry="fixed(0.05s)"
            )
            with worker(tmp_path, server.url):
                task = await eventually(lambda: finished(app, handle.id), within=60)

    assert task is not None
    assert task.value["content"] == "Three mails, none urgent."
    assert len(server.asked) == 3


async def test_a_wrong_key_ends_it_at_once_and_is_shown_to_nobody(tmp_path: Path) -> None:
    with ModelServer(model.status(401)) as server:
        async with there(tmp_path) as app:
            handle = await app.submit_by_name_async("assistant", {"purpose": "Summarise"})
            with worker(tmp_path, server.url):
                task = await eventually(lambda: finished(app, handle.id), within=60)
            with pytest.raises(TaskFailed) as failed:
                await handle

    assert task is not None
    assert task.state is State.FAILED
    assert len(server.asked) == 1
    assert "the endpoint said 401" in str(failed.value)
    for text in (str(failed.value), repr(task), (tmp_path / "log").read_text()):
        assert KEY not in text
