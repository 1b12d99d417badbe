"""What surrounds a run."""

from __future__ import annotations

import asyncio

from tests.integration.worker.workshop import Workshop

from holdfast.core.lifecycle import Outcome
from holdfast.core.task import State
from holdfast.worker.middleware.chain import Execute
from holdfast.worker.run import Run


async def test_middleware_surrounds_every_kind_of_run_outermost_first(shop: Workshop) -> None:
    seen: list[str] = []

    def noting(word: str) -> object:
        async def middleware(run: Run, inner: Execute) -> Outcome:
            seen.append(f"{word} before {run.claim.name}")
            outcome = await inner(run)
            seen.append(f"{word} after {type(outcome).__name__}")
            return outcome

        return middleware

    @shop.task()
    async def on_the_loop() -> None:
        await asyncio.sleep(0)

    @shop.task(max_retries=0)
    def in_a_thread() -> None:
        raise ValueError

    await shop.submit(on_the_loop)
    await shop.drain(middleware=[noting("outer"), noting("inner")])
    await shop.submit(in_a_thread)
    await shop.drain(middleware=[noting("outer")])

    assert seen == [
        "outer before on_the_loop",
        "inner before on_the_loop",
        "inner after Succeeded",
        "outer after Succeeded",
        "outer before in_a_thread",
        "outer after Failed",
    ]


async def test_a_middleware_that_fails_fails_the_attempt_not_the_worker(shop: Workshop) -> None:
    async def broken(run: Run, inner: Execute) -> Outcome:
        raise RuntimeError("bad plumbing")

    @shop.task(max_retries=0)
    async def work() -> None: ...

    task = await shop.submit(work)
    await shop.drain(middleware=[broken])

    assert (await shop.get(task)).state is State.DEAD_LETTER
