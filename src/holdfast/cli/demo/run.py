"""Runs the demo: start workers, submit a storm, kill one worker half way, wait for the end, count.

Nothing here is staged beyond that: the workers are `holdfast worker` processes, the kill is a real
SIGKILL to a worker that holds tasks at that moment, and `proof` does the counting.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.cli.command import CommandFailed
from holdfast.cli.demo import journal
from holdfast.cli.demo.journal import JournalEntry
from holdfast.cli.demo.mix import DemoPlan, Planned, plan
from holdfast.cli.demo.proof import AcknowledgedTask, Proof, prove
from holdfast.cli.demo.setup import DemoSetup
from holdfast.cli.demo.show import Scene, Show
from holdfast.cli.words import duration, plural
from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import State, TaskId

if TYPE_CHECKING:
    from holdfast.client import Client

GROUPS, CONCURRENCY = 2, 8
TICK = 0.15
PATIENCE = 90.0
"""Seconds without any task ending after which the demo gives up: then a promise was broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """How the demo went."""

    proof: Proof
    seconds: float
    killed_pid: int
    held_by_killed: int
    found_lost_after_seconds: float | None
    worker_exit_codes: tuple[int, ...]

    @property
    def tasks_per_second(self) -> float:
        return self.proof.submitted / self.seconds

    @property
    def held(self) -> bool:
        return self.proof.held and not any(self.worker_exit_codes)


@dataclass(slots=True)
class DemoRun:
    """One run of the demo. `expected` holds every acknowledged task and how it must end."""

    client: Client
    setup: DemoSetup
    show: Show
    plan: DemoPlan
    expected: dict[str, State] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    killed: WorkerInfo | None = None
    kill_done: asyncio.Event = field(default_factory=asyncio.Event)
    killed_at: float = 0.0
    held_by_killed: int = 0
    found_lost_after: float | None = None

    async def run(self) -> DemoResult:
        await self._raise_curtain()
        submitting = asyncio.create_task(self._submit())
        try:
            await self._watch(submitting)
        finally:
            submitting.cancel()
        seconds = self._elapsed()
        self.show.say("every task has ended; asking the workers to leave (SIGTERM)")
        exit_codes = await asyncio.to_thread(self.setup.stop_workers)
        assert self.killed is not None
        return DemoResult(
            proof=await self._prove(),
            seconds=seconds,
            killed_pid=self.killed.pid,
            held_by_killed=self.held_by_killed,
            found_lost_after_seconds=self.found_lost_after,
            worker_exit_codes=tuple(exit_codes),
        )

    async def _raise_curtain(self) -> None:
        """Wait until every worker has registered: the clock of the demo starts with real work."""
        self.show.say(f"starting {GROUPS} workers, {CONCURRENCY} tasks at a time each")
        self.setup.start_workers(GROUPS, CONCURRENCY)
        deadline = time.monotonic() + 30.0
        while len(workers := await self._live_workers()) < GROUPS:
            if time.monotonic() > deadline or any(g.poll() is not None for g in self.setup.groups):
                raise CommandFailed(
                    "no_workers", f"the workers did not start:\n{self.setup.last_words()}"
                )
            await asyncio.sleep(TICK / 3)
        pids = " and ".join(str(worker.pid) for worker in workers)
        self.show.say(f"workers are ready: pids {pids}")
        self.began = time.monotonic()

    async def _submit(self) -> None:
        """Submit the first act, wait for the kill, submit the second."""
        self.show.say(f"submitting {plural(len(self.plan.all), 'task')}")
        await self._submit_act(self.plan.before_kill)
        await self.kill_done.wait()
        await self._submit_act(self.plan.after_kill)

    async def _submit_act(self, planned: Sequence[Planned]) -> None:
        """In waves, as work comes in life."""
        wave = max(5, len(self.plan.all) // 80)
        for start in range(0, len(planned), wave):
            part = planned[start : start + wave]
            handles = await asyncio.gather(*(each.submit() for each in part))
            # From here on these are acknowledged: losing one would be a broken promise.
            for each, handle in zip(part, handles, strict=True):
                self.expected[handle.id] = each.kind.ends
            await asyncio.sleep(0.1)

    async def _watch(self, submitting: asyncio.Task[None]) -> None:
        finished, changed_at, seen = 0, time.monotonic(), 0
        while True:
            lines = await asyncio.to_thread(journal.read, self.setup.journal)
            scene = await self._look(lines)
            self.show.update(scene)
            if scene.finished != finished:
                finished, changed_at = scene.finished, time.monotonic()
            if self.killed is None and len(self.expected) >= len(self.plan.before_kill):
                all_idle = finished >= len(self.plan.before_kill)
                await self._kill(scene.workers, lines[seen:], anyone=all_idle)
            seen = len(lines)
            self._notice_burial(scene.workers)
            if submitting.done():
                submitting.result()
                if finished >= len(self.expected):
                    return
            if time.monotonic() - changed_at > PATIENCE:
                self.show.say(f"nothing has ended for {duration(PATIENCE)}: giving up")
                return
            await asyncio.sleep(TICK)

    async def _look(self, lines: Sequence[JournalEntry]) -> Scene:
        stats = await self.client.stats()
        done = {(line.name, line.task_id) for line in lines if line.event == journal.DONE}
        ended = Counter(name for name, _ in done)
        ended["broken"] = stats.states[State.DEAD_LETTER]
        totals = Counter(planned.kind.name for planned in self.plan.all)
        return Scene(
            seconds=self._elapsed(),
            total=len(self.plan.all),
            finished=sum(stats.states[state] for state in TERMINAL),
            states={state.value: count for state, count in stats.states.items()},
            kinds={name: (ended[name], total) for name, total in totals.items()},
            workers=await self.client.workers(),
        )

    async def _kill(
        self, workers: Sequence[WorkerInfo], latest: Sequence[JournalEntry], *, anyone: bool
    ) -> None:
        """SIGKILL a worker that has just begun a slow task, so that the kill hits a running body.

        If there is none, try again at the next tick; `anyone` will do when nothing runs any more.
        """
        begun = {line.pid for line in latest if line.event == journal.START and line.name == "slow"}
        for worker in workers:
            if worker.status is WorkerStatus.ACTIVE and (anyone or worker.pid in begun):
                held = await self.client.list(state=State.RUNNING, worker_id=worker.id, limit=100)
                # Noted first: its tasks may start elsewhere before the next line here runs.
                journal.note(journal.KILLED, name="worker", pid=worker.pid)
                os.kill(worker.pid, signal.SIGKILL)
                self.killed, self.killed_at = worker, time.monotonic()
                self.held_by_killed = len(held.tasks)
                self.kill_done.set()
                self.show.say(
                    f"killed the worker with pid {worker.pid} (SIGKILL) while it held "
                    f"{plural(self.held_by_killed, 'task')}"
                )
                return

    def _notice_burial(self, workers: Sequence[WorkerInfo]) -> None:
        if self.killed is None or self.found_lost_after is not None:
            return
        if any(w.id == self.killed.id and w.status is WorkerStatus.DEAD for w in workers):
            self.found_lost_after = time.monotonic() - self.killed_at
            self.show.say(
                f"pid {self.killed.pid} was found lost after {duration(self.found_lost_after)}; "
                "its tasks start again elsewhere"
            )

    async def _live_workers(self) -> list[WorkerInfo]:
        return [w for w in await self.client.workers() if w.status is WorkerStatus.ACTIVE]

    async def _prove(self) -> Proof:
        records = {
            task_id: AcknowledgedTask(
                expected=expected,
                task=await self.client.store.get(TaskId(task_id)),
                history=await self.client.store.history(TaskId(task_id)),
            )
            for task_id, expected in self.expected.items()
        }
        return prove(records, journal.read(self.setup.journal))

    def _elapsed(self) -> float:
        return time.monotonic() - self.began


async def run_demo(setup: DemoSetup, show: Show, *, tasks: int, seed: int) -> DemoResult:
    """Run the demo on a prepared setup."""
    # Imported late: the app reads the demo's settings from the environment when it is made.
    from holdfast.cli.demo_tasks import app  # noqa: PLC0415

    async with app:
        if any((await app.client.stats()).states.values()):
            raise CommandFailed(
                "store_not_empty",
                f"the store at {setup.url} already holds tasks. The demo counts every task it "
                "finds, so give it an empty store, or leave out --url for a fresh one.",
            )
        return await DemoRun(app.client, setup, show, plan(tasks, seed)).run()
