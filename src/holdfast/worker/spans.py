"""How spans are put around a worker's runs (`holdfast.tracing`)."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.lifecycle import Outcome, Released
from holdfast.tracing.spans import Spans, current_in
from holdfast.worker.batch import BatchRun
from holdfast.worker.batch_claim import members_of
from holdfast.worker.middleware import Execute
from holdfast.worker.run import Run


def with_spans(spans: Spans, execute: Execute, claimed_at: Callable[[], float]) -> Execute:
    """`execute`, with a span around each attempt that is to have one."""

    async def traced(run: Run) -> Outcome:
        begun = spans.begin(members_of(run.claim), claimed_at())
        if not begun:
            return await execute(run)
        outcome: Outcome = Released()
        try:
            with current_in(begun[0][1]):
                outcome = await execute(run)
            if run.left_because_asked():
                outcome = Released()
        finally:
            ends = _ends(run, outcome)
            for claim, span in begun:
                spans.end(claim, span, ends.get(claim.task_id, outcome))
        return outcome

    return traced


def _ends(run: Run, outcome: Outcome) -> dict[str, Outcome]:
    """How the members of a batch ended."""
    if not isinstance(run, BatchRun):
        return {}
    ends = run.body.ends(outcome)
    return {one.task_id: end for one, end in zip(run.claim.members, ends, strict=True)}
