"""`holdfast worker`: a small process that keeps the worker processes alive, and beats for them.

It imports neither user code nor anything large, so nothing can crash, block or bloat it. It starts
the worker processes, beats for them, and when one dies it buries it at once and starts another,
later and later if they die young. SIGTERM or SIGINT asks them to drain, a second one to stop now, a
third kills them. They die with it: kill -9 of the supervisor leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast import logs
from holdfast.core.metrics import Counts
from holdfast.errors import ConfigError
from holdfast.logs import EventLog
from holdfast.settings import Settings
from holdfast.worker.heartbeat_sender import Stores
from holdfast.worker.liveness import describe_exit
from holdfast.worker.options import WorkerOptions
from holdfast.worker.reload import LOOK_EVERY, SourceWatch, watch_roots
from holdfast.worker.spec import app_file
from holdfast.worker.supervisor_channel import DRAIN, NOW, REFUSED_CODE, stop_signals
from holdfast.worker.worker_process import WorkerProcess

if TYPE_CHECKING:
    from holdfast.worker.metrics_port import MetricsPort

log = EventLog("holdfast.supervisor")

FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0
"""Seconds before a worker process that died is started again: doubled each time it dies young."""

GROWN_UP = 10.0
"""A process that lived this many seconds did not die of its start."""


def supervise(options: WorkerOptions) -> int:
    """Run until stopped, in this process; returns the exit code. Main thread only."""
    return asyncio.run(Supervisor(options).run())


def become_supervisor(options: WorkerOptions) -> NoReturn:
    """Turn this process into a supervisor, leaving behind all that it has imported so far."""
    arguments = [sys.executable, "-m", "holdfast.worker.supervisor", options.to_json()]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, arguments)  # noqa: S606 - our own program


class Supervisor:
    """Keeps `options.processes` worker processes going."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._stores = Stores()
        self._workers: set[WorkerProcess] = set()
        self._keepers: list[asyncio.Task[int]] = []
        self._burials: set[asyncio.Task[None]] = set()
        self._level = 0
        self._was_ready = False
        self._gone = Counts()
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()

    async def run(self) -> int:
        """Start the processes and stay until all have ended for good."""
        self._take_signals()
        try:
            port = await self._open_port()
        except OSError as error:
            log.error("supervisor.no_metrics", port=self._options.metrics_port, error=str(error))
            return REFUSED_CODE
        # The first alone: if the app cannot be imported, that is said once.
        self._add_keeper()
        watching = asyncio.ensure_future(self._watch_sources())
        while left := self._unfinished():
            await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        await asyncio.wait({watching})
        if port is not None:
            await port.close()
        await self._stores.close()
        return self._exit_code()

    def counts(self) -> Counts:
        """What all of its processes have counted, those too that have ended."""
        total = self._gone
        for worker in self._workers:
            total = total.plus(worker.counts)
        return total

    def unwell(self) -> str | None:
        """What is wrong with its processes."""
        if not self._was_ready or not self._workers:
            return "no worker process is ready"
        silent = [str(worker.pid) for worker in self._workers if worker.is_silent]
        return f"silent: {', '.join(silent)}" if silent else None

    async def _open_port(self) -> MetricsPort | None:
        options = self._options
        if options.metrics_port is None:
            return None
        from holdfast.worker.metrics_port import MetricsPort  # noqa: PLC0415 - stays small else

        port = MetricsPort(self.counts, self.unwell)
        number = await port.open(options.metrics_host, options.metrics_port)
        log.info("supervisor.metrics", host=options.metrics_host, port=number)
        return port

    def stop(self) -> None:
        """Asked once: drain. Twice: now. Three times: kill."""
        self._level += 1
        self._stopping.set()
        how = {DRAIN: "drain", NOW: "now"}.get(self._level, "kill")
        log.info("supervisor.stopping", how=how)
        for worker in self._workers:
            self._pass_on_stop(worker)

    def _pass_on_stop(self, worker: WorkerProcess) -> None:
        if self._level > NOW:
            worker.kill()
        elif self._level:
            worker.stop(self._level)

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, self.stop)

    def _add_keeper(self) -> None:
        self._keepers.append(asyncio.ensure_future(self._keep()))

    def _unfinished(self) -> list[asyncio.Future[Any]]:
        return [task for task in (*self._keepers, *self._burials) if not task.done()]

    async def _keep(self) -> int:
        """Keep one worker process going until it ends for good; returns its exit code."""
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            # Taken before the start: a change while the process fails to start must not be missed.
            changed = self._changed
            try:
                worker = await WorkerProcess.start(self._options, self._stores)
            except OSError as error:
                # No process or file left on this machine, for now.
                log.warning("worker.not_started", error=str(error))
                await self._first_of(self._stopping, within=LAST_PAUSE)
                continue
            self._workers.add(worker)
            worker.ready.add_done_callback(self._on_ready)
            self._pass_on_stop(worker)
            code = await worker.end()
            self._workers.discard(worker)
            self._gone = self._gone.plus(worker.counts)
            self._bury(worker)
            if self._is_final(worker, code):
                return code
            if worker.age > GROWN_UP or code == 0:
                pause = FIRST_PAUSE
            if worker.refused and self._options.reload:
                log.info("supervisor.waiting")
                await self._first_of(changed, self._stopping, within=None)
            else:
                await self._rest(worker, code, pause)
            pause = min(pause * 2, LAST_PAUSE)
        return 0

    def _bury(self, worker: WorkerProcess) -> None:
        # Beside the rest: a store that is away must not hold up the next start.
        burial = asyncio.ensure_future(worker.bury())
        self._burials.add(burial)
        burial.add_done_callback(self._burials.discard)

    def _is_final(self, worker: WorkerProcess, code: int) -> bool:
        if self._stopping.is_set() or (self._options.burst and code == 0):
            return True
        if worker.left:
            log.info("worker.sent_home", pid=worker.pid)
            return True
        return worker.refused and not self._was_ready and not self._options.reload

    async def _rest(self, worker: WorkerProcess, code: int, pause: float) -> None:
        if code:
            log.warning("worker.died", pid=worker.pid, how=describe_exit(code))
        await self._first_of(self._stopping, within=pause)

    def _on_ready(self, ready: asyncio.Future[int]) -> None:
        if ready.cancelled() or self._was_ready:
            return
        self._was_ready = True
        for _ in range((self._options.processes or ready.result()) - 1):
            self._add_keeper()

    async def _watch_sources(self) -> None:
        if not self._options.reload:
            return
        watch = SourceWatch(*watch_roots(app_file(self._options.app)))
        while True:
            await asyncio.sleep(LOOK_EVERY)
            changed = await asyncio.to_thread(watch.changed)
            if changed:
                log.info("supervisor.reloading", changed=changed[0].name)
                self._changed.set()
                self._changed = asyncio.Event()
                for worker in self._workers:
                    worker.stop(DRAIN)

    async def _first_of(self, *events: asyncio.Event, within: float | None) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        await asyncio.wait(waits, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    def _exit_code(self) -> int:
        codes = [keeper.result() for keeper in self._keepers]
        if REFUSED_CODE in codes:
            return REFUSED_CODE
        return 1 if any(codes) else 0


def _main(options: WorkerOptions) -> int:
    try:
        settings = Settings.load(log_level=options.log_level, log_format=options.log_format)
    except ConfigError:  # a worker process will say what is wrong
        settings = Settings()
    logs.set_up(settings.log_level, settings.log_format, runs_handlers=False)
    return supervise(options)


if __name__ == "__main__":
    sys.exit(_main(WorkerOptions.from_json(sys.argv[1])))
