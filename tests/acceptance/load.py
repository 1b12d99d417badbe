"""A steady load on a store that comes and goes, and what must be true of it afterwards."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Self

from tests.acceptance.stage import PATIENCE, Stage, WorkerProcess, ids, overload, until
from tests.kit.checker import Picture

from holdfast.core.task import AttemptEnd, State
from holdfast.errors import StoreUnavailable

SETTINGS = {"heartbeat": "1s", "sweep": "1s", "poll": "0.5s"}
"""The lease stays at its 30 s: an outage is no reason to give a living worker up."""
BATCH = 10
PAUSE = 0.05


class Load:
    """Submits small batches until it is told to stop.

    Bodies never fail here, so that each must run exactly once. A submit may answer that the store
    is away; then its tasks may be there or not, as nobody was promised anything.
    """

    def __init__(self, stage: Stage, *, seconds: float = 0.02, pause: float = PAUSE) -> None:
        self.acknowledged: list[str] = []
        self.refused = 0
        self.failure: BaseException | None = None
        self._stage = stage
        self._seconds = seconds
        self._pause = pause
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._enough.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._enough.wait(self._pause):
                self._submit()
        except BaseException as failure:  # noqa: BLE001 - the test must hear of it
            self.failure = failure

    def _submit(self) -> None:
        shop = self._stage.shop
        calls = [
            *(shop.noop.call(n) for n in range(BATCH // 2)),
            *(shop.nap.call(self._seconds) for _ in range(BATCH // 2 - 1)),
            shop.locked.call(f"d{len(self.acknowledged) % 7}", self._seconds),
        ]
        try:
            self.acknowledged += ids(self._stage.app.submit_many(calls))
        except StoreUnavailable:
            self.refused += 1


class Trial:
    """Workers under load, one process each, that must live through whatever happens."""

    def __init__(
        self, stage: Stage, *, workers: int = 2, url: str | None = None, pause: float = PAUSE
    ) -> None:
        self.stage = stage
        way = {"HOLDFAST_URL": url or stage.environment["HOLDFAST_URL"]}
        self.workers = stage.fleet(workers, "-c", "4", environment=way)
        self.load = Load(stage, pause=pause)
        self.load.start()
        self._families = {worker.pid: set(worker.children()) for worker in self.workers}
        self._returns: list[tuple[datetime, float]] = []
        self.progress(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.load.stop()

    def came_back(self, tasks: int, *, soon: float = 2.0) -> None:
        """The store is there again: a task must start this soon, and more of them must end."""
        self._returns.append((now(), soon))
        self.progress(tasks)

    def progress(self, tasks: int) -> None:
        """Wait until that many more tasks are finished."""
        goal = until(lambda: self._finished() + 1, within=2 * PATIENCE) - 1 + tasks
        until(lambda: self._finished() >= goal, within=2 * PATIENCE)

    def _finished(self) -> int:
        """-1 while the store is away: this looks on from outside, and is thrown out like all."""
        try:
            return self.stage.finished()
        except StoreUnavailable:
            return -1

    def end(self) -> list[Picture]:
        """Stop the load, let everything end, and judge what every trial must have kept."""
        self.load.stop()
        assert self.load.failure is None
        until(lambda: not self.stage.unfinished(), within=2 * PATIENCE)
        pictures = self.stage.pictures()
        assert self.stage.broken(self.load.acknowledged, pictures=pictures) == []
        assert Counter(picture.task.state for picture in pictures).keys() == {State.COMPLETED}
        self._assert_once(pictures)
        self._assert_same_processes()
        for returned, soon in self._returns:
            assert_prompt(pictures, returned, within=soon)
        return pictures

    def _assert_once(self, pictures: list[Picture]) -> None:
        """No body ran twice, and whatever did not run was handed back, not lost."""
        runs = Counter(start.task_id for start in self.stage.log.starts())
        assert {task: n for task, n in runs.items() if n != 1} == {}
        assert len(runs) == len(pictures)
        ends = {a.ended for picture in pictures for a in picture.history.attempts}
        assert ends <= {AttemptEnd.COMPLETED, AttemptEnd.RELEASED}

    def _assert_same_processes(self) -> None:
        for worker in self.workers:
            assert worker.is_running, worker.said()
            assert set(worker.children()) == self._families[worker.pid], worker.said()


def assert_prompt(pictures: list[Picture], returned: datetime, *, within: float) -> None:
    """Some task was claimed soon after the store came back."""
    starts = [a.started_at for picture in pictures for a in picture.history.attempts]
    first = min(start for start in starts if start >= returned)
    assert first - returned < timedelta(seconds=within * overload())


def assert_calm(said: str, *, seconds: float) -> None:
    """At most one line per second and process: the worker's, and its supervisor's who beats."""
    lines = [line for line in said.splitlines() if "store.lost" in line]
    heartbeats = [line for line in lines if "doing=beat" in line or "doing=bury" in line]
    assert len(heartbeats) <= seconds + 2, said
    assert len(lines) - len(heartbeats) <= seconds + 2, said


def now() -> datetime:
    return datetime.now(UTC)


def said_since(worker: WorkerProcess, before: str) -> str:
    return worker.said()[len(before) :]
