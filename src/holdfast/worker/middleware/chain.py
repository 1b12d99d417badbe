"""How middleware is put around a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from holdfast.core.lifecycle import Outcome
from holdfast.worker.run import Run

Execute = Callable[[Run], Awaitable[Outcome]]

Middleware = Callable[[Run, Execute], Awaitable[Outcome]]
"""Surrounds a run: `await inner(run)` is the run itself. It costs coroutines the fast lane."""


def chain(middleware: Sequence[Middleware], execute: Execute) -> Execute:
    """Put each around the next, the first outermost. Without any this is `execute` itself."""
    for one in reversed(middleware):
        execute = _around(one, execute)
    return execute


def _around(middleware: Middleware, inner: Execute) -> Execute:
    return lambda run: middleware(run, inner)
