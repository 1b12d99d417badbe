"""Counted from outside: as many tasks as submits should make, as many starts as tasks."""

from __future__ import annotations

import signal
import time

import pytest
from tests.acceptance.conftest import MakeStage, on_every_version
from tests.acceptance.stage import Stage, ids, until

from holdfast.core.query import TaskFilter

pytestmark = [pytest.mark.acceptance, on_every_version]

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


@pytest.mark.parametrize(
    ("commands", "processes", "slots", "tasks"),
    [(3, 1, 1, 100), (2, 4, 10, 5_000)],
    ids=["3 processors, 100 tasks", "8 processors, 5000 tasks"],
)
def test_every_task_starts_once(
    make_stage: MakeStage, commands: int, processes: int, slots: int, tasks: int
) -> None:
    stage = make_stage()
    if stage.is_slow and tasks > 1000:
        tasks //= 10
        processes //= 2
    calls = [stage.shop.noop.call(n) for n in range(tasks)]
    handles = stage.app.submit_many(calls[: tasks // 2])

    arguments = ("--processes", str(processes), "-c", str(slots))
    workers = [stage.worker(*arguments, ready=False) for _ in range(commands)]
    until(lambda: len(stage.app.workers()) == commands * processes, within=60)
    handles += stage.app.submit_many(calls[tasks // 2 :])
    until(lambda: not stage.unfinished(), within=60)
    for worker in workers:
        worker.signal(signal.SIGTERM)

    assert [worker.wait() for worker in workers] == [0] * commands
    starts = stage.log.starts()
    assert len(starts) == tasks
    assert sorted(start.task_id for start in starts) == sorted(ids(handles))
    assert stage.broken(ids(handles)) == []
    if tasks > 100:  # what one of them may take at a time
        assert len({start.pid for start in starts}) > 1
