"""The example's agent, which waits to be killed after its model has answered."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from pathlib import Path
from typing import Any

from holdfast import AgentResult, AgentRun, Holdfast

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "assistant_agent.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("assistant_agent", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load()
app: Holdfast = example.app
folder = Path(os.environ.get("STALLED_FOLDER", "."))


def touch(name: str) -> None:
    (folder / name).touch()


@app.agent(name="stalled", max_retries=0)
async def stalled(run: AgentRun) -> AgentResult:
    made: AgentResult = await example.answer(run)
    touch(f"answered-{run.attempt}")
    while run.attempt == 1:  # noqa: ASYNC110 - until this process is killed
        await asyncio.sleep(0.05)
    return made
