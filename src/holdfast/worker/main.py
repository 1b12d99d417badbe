"""`python -m holdfast.worker.main <options> <fd> <parent>`: one worker process of a supervisor.

Builds the app and runs its worker. SIGTERM and SIGINT begin the drain, and a second one hurries it;
the supervisor asks for the same over the line. The two are compared by level, not added up: a
service manager signals every process of a service, and that is one request, not two.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import traceback
from contextlib import suppress
from types import TracebackType
from typing import NoReturn

from holdfast import logs
from holdfast.asyncio_tools.cancel import end
from holdfast.counting import tally_of
from holdfast.errors import ConfigError, HoldfastError
from holdfast.worker.discovery import load_app_with_tasks
from holdfast.worker.liveness import die_with_parent
from holdfast.worker.loading import LoadedApp
from holdfast.worker.options import WorkerOptions
from holdfast.worker.outage import Outage
from holdfast.worker.supervisor_channel import NOW, REFUSED_CODE, SupervisorChannel, stop_signals
from holdfast.worker.worker import Worker

log = logs.EventLog("holdfast.worker")

TELL_EVERY = 1.0
"""Seconds between two tellings of what was counted."""


class Stopper:
    """Turns requests to stop, by level, into the worker's two stops."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task
        self._worker: Worker | None = None
        self._level = 0
        self._signals = 0

    def steer(self, worker: Worker) -> None:
        """This is what is to be stopped. Before that, the waiting for the store is."""
        self._worker = worker

    def to(self, level: int) -> None:
        """Be as urgent as this, at least."""
        if self._worker is None:
            self._task.cancel()
            return
        while self._level < min(level, NOW):
            self._level += 1
            self._worker.stop()

    def signalled(self) -> None:
        """A signal came; each is more urgent than the last."""
        self._signals += 1
        self.to(self._signals)


def main(options: WorkerOptions, fd: int, parent: int) -> None:
    """Be a worker process until told to stop."""
    die_with_parent(parent)
    numbers = stop_signals()
    for number in numbers:
        # Nothing runs yet: leave at once, in good order.
        signal.signal(number, lambda *_: sys.exit(0))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    line = SupervisorChannel(fd)
    try:
        logs.before_user_code(options.log_format)
        app = load_app_with_tasks(options.app, options.include)
        settings = app.settings.override(**options.overrides())
        logs.set_up(settings.log_level, settings.log_format)
        with suppress(asyncio.CancelledError):
            asyncio.run(_work(app, options, line, numbers))
    except HoldfastError as error:
        _refuse(line, error, as_json=options.log_format == "json")


async def _work(
    app: LoadedApp,
    options: WorkerOptions,
    line: SupervisorChannel,
    numbers: tuple[signal.Signals, ...],
) -> None:
    task = asyncio.current_task()
    assert task is not None
    stopper = Stopper(task)
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, stopper.signalled)
    line.on_stop(loop, stopper.to)
    overrides = options.overrides()
    settings = app.settings.override(**overrides)
    # Before the store is opened: without tasks there is no use for it, and nothing is ready.
    include = (*settings.include, *options.include)
    worker = app.worker(burst=options.burst, app_spec=options.app, **overrides, include=include)
    await Outage("open").outlast(app.open_async, or_refused=True)
    gc.freeze()  # what is loaded now stays: collections need not look through it again and again
    line.say({"ready": settings.processes})
    stopper.steer(worker)
    telling = asyncio.ensure_future(_tell_counts(app, line, options))
    try:
        await worker.run()
        if worker.was_sent_home:
            line.say({"left": True})
    finally:
        await end([telling])
        await app.close_async()
    if worker.has_left_bodies:
        # Not the usual way out, which waits for tasks on the loop that nobody can stop.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


async def _tell_counts(app: LoadedApp, line: SupervisorChannel, options: WorkerOptions) -> None:
    """Tell the supervisor what this process counts, if anybody may ask it, to the very end."""
    if options.metrics_port is None:
        return
    tally = tally_of(app.client.store)
    try:
        while True:
            await asyncio.sleep(TELL_EVERY)
            line.say({"counts": tally.counts().to_json()})
    finally:
        line.say({"counts": tally.counts().to_json()})


def _refuse(line: SupervisorChannel, error: HoldfastError, *, as_json: bool) -> NoReturn:
    """Say once and clearly why this cannot work."""
    cause = error.__cause__
    trace = ""
    if isinstance(error, ConfigError) and cause is not None:
        # The user's own module failed: show them where, beginning in their own code.
        parts = traceback.format_exception(type(cause), cause, _own_part(cause.__traceback__))
        trace = "".join(parts)
    if as_json:
        log.error("worker.refused", error=str(error), exception=trace or None)
    else:
        sys.stderr.write(f"{trace}holdfast: {error}\n")
        sys.stderr.flush()
    line.say({"refused": str(error)})
    sys.exit(REFUSED_CODE)


def _own_part(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if not module.startswith(("holdfast.", "importlib", "__main__")):
            return trace
        trace = trace.tb_next
    return None


if __name__ == "__main__":
    main(WorkerOptions.from_json(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
