"""How middleware is put around a worker's runs and their ends (`definitions.middleware`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.lifecycle import Outcome, Succeeded
from holdfast.definitions import middleware
from holdfast.definitions.context import Context
from holdfast.definitions.registry import Registry
from holdfast.errors import HoldfastError
from holdfast.logs import EventLog, trace_of
from holdfast.worker.run import Run
from holdfast.worker.verdict import came_out, judge, stopped

log = EventLog("holdfast.worker")

Execute = Callable[[Run], Awaitable[Outcome]]
Enter = Callable[[Claim, Outcome], Settlement]


def around_run(registry: Registry, execute: Execute) -> Execute:
    """`execute` in all that surrounds a run. Without any it is `execute` itself."""
    installed = registry.middleware.run
    if not installed:
        return execute

    async def surrounded(run: Run) -> Outcome:
        ctx = run.context()
        step: middleware.NextRun = _Once(run, execute)
        for surround in reversed(installed):
            step = partial(_run_through, surround, ctx, step)
        try:
            return await step()
        except Exception as error:  # noqa: BLE001 - whatever it raises is the attempt's failure
            return came_out(run, error)

    return surrounded


class _Once:
    """The run itself."""

    def __init__(self, run: Run, execute: Execute) -> None:
        self._run = run
        self._execute = execute
        self._began = False

    async def __call__(self) -> Outcome:
        if self._began:
            raise HoldfastError(
                "a middleware called `call_next()` twice. An attempt runs once; to have it run "
                "again, raise `Retry`."
            )
        self._began = True
        # Who waits in a middleware has no body yet that could be interrupted.
        if self._run.stop_reason is not None:
            return stopped(self._run)
        return await self._execute(self._run)


async def _run_through(
    surround: Callable[[Context, middleware.NextRun], Awaitable[Outcome]],
    ctx: Context,
    inner: middleware.NextRun,
) -> Outcome:
    outcome = await surround(ctx, inner)
    if not isinstance(outcome, Outcome):
        raise HoldfastError(
            f"{surround.__qualname__} returned {outcome!r}, which is no outcome. Return what "
            "`await call_next()` gives."
        )
    return outcome


def around_settle(registry: Registry, enter: Enter) -> Enter:
    """`enter` in all that surrounds the end of an attempt, or `enter` itself."""
    installed = registry.middleware.settle
    if not installed:
        return enter

    def settle(claim: Claim, outcome: Outcome) -> Settlement:
        entered: list[Settlement] = []

        def once(outcome: Outcome) -> Settlement:
            if not entered:
                entered.append(enter(claim, outcome))
            return entered[0]

        def through(
            surround: Callable[[Claim, Outcome, middleware.NextSettle], None],
            inner: middleware.NextSettle,
            outcome: Outcome,
        ) -> Settlement:
            surround(claim, outcome, inner)
            return once(outcome)  # nobody keeps an attempt from ending

        step: middleware.NextSettle = once
        for surround in reversed(installed):
            step = partial(through, surround, step)
        try:
            return step(outcome)
        except Exception as error:  # noqa: BLE001 - whatever it is, the attempt has to end
            if entered or not isinstance(outcome, Succeeded):
                log.error("middleware.failed", task_id=claim.task_id, exception=trace_of(error))
                return once(outcome)
            return once(judge(registry[claim.name], claim.payload, error))

    return settle
