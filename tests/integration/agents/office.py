"""An app with an agent whose model is a file: each call to it is a line."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast import AgentRun, Holdfast

app = Holdfast()
desk = Path(os.environ.get("OFFICE_DESK", "."))


def ask(run: AgentRun) -> str:
    """Ask the model, and pay."""
    run.progress("Asking the model")
    run.usage(1, tokens_in=900, tokens_out=100, cost=0.03)
    with (desk / "paid").open("a") as lines:
        lines.write(f"{run.id} {run.attempt}\n")
    return "an expensive answer"


@app.agent(name="answer", max_retries=0)
def answer(run: AgentRun) -> str:
    run.progress("Reading")
    text = run.step_sync("ask", ask, run)
    (desk / f"asked-{run.attempt}").touch()
    while run.attempt == 1:  # until this process is killed
        time.sleep(0.05)
    run.progress("Writing")
    return text
