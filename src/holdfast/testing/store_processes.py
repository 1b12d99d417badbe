"""Other processes that act on a store when told to, all at the same moment.

    with StoreProcesses(4) as processes:
        answers = processes.race("sqlite:///tasks.db", "drain", [{}] * 4)

Each process opens the store at the URL, says it is ready, waits for the word, runs the named
function of `holdfast.testing.acts`, and answers with JSON. They are started once and serve many
races, because starting Python costs more than most races.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, Self

from holdfast.core.task import Json

READY, GO = "ready", "go"
PATIENCE = 60.0
"""Seconds an act may take, so that a race that goes wrong fails instead of hanging."""


class StoreProcess:
    """One process. It ends when its standard input does."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def tell(self, message: Json) -> None:
        """Send one message."""
        print(json.dumps(message), file=self._pipe(self._process.stdin), flush=True)

    def hear(self) -> Json:
        """Wait for one message; an error over there is raised here."""
        line = self._pipe(self._process.stdout).readline()
        if not line:
            raise EOFError(f"process {self._process.pid} ended without an answer")
        message = json.loads(line)
        if isinstance(message, dict) and "error" in message:
            raise AssertionError(message["error"])
        return message

    def prepare(self, url: str, act: str, arguments: Json) -> None:
        """Have the store opened; returns when the process only waits for the word."""
        self.tell({"url": url, "act": act, "arguments": arguments})
        assert self.hear() == READY

    def kill(self) -> None:
        """SIGKILL: no goodbye, no clean-up."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        self._pipe(self._process.stdin).close()
        self._process.wait(timeout=30)
        self._pipe(self._process.stdout).close()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


class StoreProcesses:
    """Several processes. Started when first needed."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._processes: list[StoreProcess] = []

    def race(self, url: str, act: str, arguments: Sequence[Json]) -> list[Json]:
        """Run the act in one process for each of the arguments, and return their answers.

        Blocks; call it with `asyncio.to_thread` from a coroutine.
        """
        while len(self._processes) < self.size:
            self._processes.append(StoreProcess())
        racers = self._processes[: len(arguments)]
        try:
            for process, given in zip(racers, arguments, strict=True):
                process.prepare(url, act, given)
            for process in racers:
                process.tell(GO)
            return [process.hear() for process in racers]
        except BaseException:
            self._dismiss()
            raise

    def _dismiss(self) -> None:
        """Whoever has more to say must not say it in the next race."""
        for process in self._processes:
            process.kill()
        self._processes = []

    def close(self) -> None:
        for process in self._processes:
            process.close()
        self._processes = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve() -> None:
    """What such a process does: one act for each line, until the lines end."""
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = asyncio.run(_act(order))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must hear of it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


async def _act(order: Json) -> Json:
    from holdfast.testing import acts  # noqa: PLC0415 - acts import the suites' words
    from holdfast.wiring import open_store  # noqa: PLC0415 - only processes need a store

    async with open_store(order["url"]) as store:
        print(json.dumps(READY), flush=True)
        assert json.loads(sys.stdin.readline()) == GO
        async with asyncio.timeout(PATIENCE):
            return await getattr(acts, order["act"])(store, **order["arguments"])


if __name__ == "__main__":
    serve()
