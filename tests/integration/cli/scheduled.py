"""An app that declares schedules; `RULE` in the environment is what a deploy changes."""

from __future__ import annotations

import os

from holdfast.app import Holdfast

app = Holdfast()


@app.task
def clean() -> None: ...


if rule := os.environ.get("RULE", "0 2 * * *"):
    app.schedule(rule, tz="Europe/Berlin", name="nightly")(clean)
app.schedule("every 15m", name="poll")(clean)
