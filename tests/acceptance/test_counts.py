"""Counted from outside: as many tasks as submits should make, as many starts as tasks."""

from __future__ import annotations

import signal
import time

import pytest
from tests.acceptance.conftest import MakeStage, on_sql
from tests.acceptance.stage import Stage, ids, until

from holdfast.core.query import TaskFilter

pytestmark = [pytest.mark.acceptance, on_sql]

TASKS = 5_000

SUBMIT_TOGETHER = """
import asyncio, time
async def main():
    await app.open_async()
    await asyncio.sleep(float(sys.argv[1]) - time.time())  # all processes at the same instant
    handles = await asyncio.gather(*(
        shop.noop.options(idempotency_key="once").submit_async(1) for _ in range(50)))
    for handle in handles: print(handle.id, handle.created)
asyncio.run(main())
app.close()
"""


def test_200_submits_of_one_idempotency_key_from_4_processes_make_one_task(stage: Stage) -> None:
    together = str(time.time() + 2.0)

    submitters = [stage.python(SUBMIT_TOGETHER, together) for _ in range(4)]
    lines = [line for process in submitters for line in process.communicate()[0].splitlines()]

    answers = [line.split() for line in lines]
    assert len(answers) == 200
    assert len({task_id for task_id, _ in answers}) == 1
    assert [created for _, created in answers].count("True") == 1
    assert stage.app.count(TaskFilter()) == 1
    assert [process.returncode for process in submitters] == [0, 0, 0, 0]


def test_every_task_starts_once(make_stage: MakeStage) -> None:
    stage = make_stage()
    calls = [stage.shop.noop.call(n) for n in range(TASKS)]
    handles = stage.app.submit_many(calls[: TASKS // 2])

    workers = [stage.worker("--processes", "4", "-c", "10", ready=False) for _ in range(2)]
    until(lambda: len(stage.app.workers()) == 8, within=60)
    handles += stage.app.submit_many(calls[TASKS // 2 :])
    until(lambda: not stage.unfinished(), within=60)
    for worker in workers:
        worker.signal(signal.SIGTERM)

    assert [worker.wait() for worker in workers] == [0, 0]
    starts = stage.log.starts()
    assert len(starts) == TASKS
    assert sorted(start.task_id for start in starts) == sorted(ids(handles))
    assert stage.broken(ids(handles)) == []
    assert len({start.pid for start in starts}) > 1
