"""The tasks that `holdfast bench` measures with. `app` is set up by the environment."""

from __future__ import annotations

import time

from holdfast.app import Holdfast


async def noop(n: int) -> int:
    """Do nothing, but be validated before and stored after like any task."""
    return n


async def stamp() -> int:
    """Say when it was started: nanoseconds of the host's monotonic clock."""
    return time.monotonic_ns()


def make_app(url: str | None = None) -> Holdfast:
    """An app with these tasks, on another store than the environment's if told so."""
    made = Holdfast(url=url, include=[])
    made.task(name="bench.noop")(noop)
    made.task(name="bench.stamp")(stamp)
    return made


app = make_app()
