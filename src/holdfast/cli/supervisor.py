"""Keeps several commands going as one: starts them, restarts what dies, stops them together.

One signal asks every part to leave in good order, a second one to hurry, a third kills them. A part
that leaves in good order by itself (a worker that was asked to drain) stays away. One that says it
cannot work as it was told (exit code 2), or that dies young again and again, ends the whole: better
a clear end than a loop that nobody reads.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from holdfast.cli.children import COMMAND, tied
from holdfast.logs import EventLog
from holdfast.worker.exits import when_exited
from holdfast.worker.liveness import describe_exit
from holdfast.worker.supervisor_channel import REFUSED_CODE, stop_signals

log = EventLog("holdfast.up")

FIRST_PAUSE, LAST_PAUSE = 0.2, 5.0
"""Seconds before a part that died is started again: doubled each time it dies young."""
GROWN_UP = 10.0
"""A part that lived this many seconds did not die of its start."""
MOST_EARLY_DEATHS = 5


@dataclass(frozen=True, slots=True)
class Part:
    """One command: what to call it, and `python -m module arguments`."""

    name: str
    arguments: Sequence[str]
    module: str = COMMAND


class CommandSupervisor:
    """Several parts that live and leave together."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stops = 0
        self._stopping = asyncio.Event()
        self._failure = 0

    async def run(self) -> int:
        """Keep all parts going until asked to stop; returns the exit code of the whole."""
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, self.stop)
        codes = await asyncio.gather(*(self._keep(part) for part in self._parts))
        return self._failure or max(map(abs, codes))

    def stop(self) -> None:
        """Asked once: leave in good order. Twice: hurry. Three times: killed."""
        self._stops += 1
        self._stopping.set()
        for process in self._running.values():
            self._tell(process)

    def _tell(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError):
            if self._stops > 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.terminate()

    async def _keep(self, part: Part) -> int:
        """Keep one part going until the end; returns its last exit code."""
        early_deaths, pause = 0, FIRST_PAUSE
        while not self._stopping.is_set():
            born = time.monotonic()
            code = await self._live(part)
            if self._stopping.is_set():
                return code
            if code == 0:
                log.info("part.left", part=part.name)
                return code
            if time.monotonic() - born > GROWN_UP:
                early_deaths, pause = 0, FIRST_PAUSE
            early_deaths += 1
            if code == REFUSED_CODE or early_deaths > MOST_EARLY_DEATHS:
                self._give_up(part, code)
                return code
            log.warning("part.died", part=part.name, how=describe_exit(code))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(pause * 2, LAST_PAUSE)
        return 0

    async def _live(self, part: Part) -> int:
        process = self._start(part)
        exited = asyncio.Event()
        when_exited(process.pid, asyncio.get_running_loop(), exited.set)
        await exited.wait()
        del self._running[part.name]
        code = process.wait()
        # Asked to leave before it had learned to listen: it left, and nothing was under way.
        return 0 if self._stops and code == -signal.SIGTERM else code

    def _start(self, part: Part) -> subprocess.Popen[bytes]:
        # In this thread, which stays: a part ends with the thread that started it.
        process = self._running[part.name] = subprocess.Popen(
            tied(part.module, *part.arguments), stdin=subprocess.DEVNULL, start_new_session=True
        )
        return process

    def _give_up(self, part: Part, code: int) -> None:
        self._failure = code if code > 0 else 1
        why = "cannot start" if code == REFUSED_CODE else f"{describe_exit(code)} again and again"
        log.error("part.given_up", part=part.name, error=f"{why}; its own message is above")
        self.stop()
