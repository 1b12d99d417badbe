"""The loop of `holdfast top`: draw, read keys, act; never die of a store that is away."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import ConsoleDimensions, Group
from rich.live import Live

from holdfast.cli.screen import Screen
from holdfast.cli.terminal import Keys, keys_one_by_one
from holdfast.cli.top_facts import Eye
from holdfast.cli.top_frame import Picture
from holdfast.cli.words import plural
from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.client import Client

EVERY: Final = 1.0
PATIENCE, MOST_PATIENCE = 5.0, 60.0
"""Seconds after which a store that does not answer counts as away; and one that has much to do."""
SILENT: Final = "It does not answer."
DEAD: Final = TaskFilter(states=frozenset({State.DEAD_LETTER}))


async def watch(client: Client, eye: Eye, screen: Screen) -> None:
    """Show the store until somebody quits, or the terminal is gone."""
    with _quiet_logs():
        await _Top(client, eye, screen).run()


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """A line of log would tear the picture; what it says is on the screen in other words."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class _Top:
    def __init__(self, client: Client, eye: Eye, screen: Screen) -> None:
        self._client = client
        self._eye = eye
        self._screen = screen
        self._picture = Picture(client.store.url)
        self._fd = sys.stdin.fileno()
        self._keys = Keys(self._fd)
        self._live = Live(
            console=screen.console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._ends = asyncio.Event()
        self._agreed: Callable[[], Awaitable[str]] | None = None
        self._acting: asyncio.Task[None] | None = None
        self._terminal = ExitStack()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._ends.set)
        loop.add_signal_handler(signal.SIGWINCH, self._draw)
        loop.add_signal_handler(signal.SIGTSTP, self._step_aside)
        loop.add_reader(self._fd, self._read)
        looking, ending = asyncio.create_task(self._look()), asyncio.create_task(self._ends.wait())
        try:
            self._take_terminal()
            done, _ = await asyncio.wait({looking, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            loop.remove_reader(self._fd)
            self._terminal.close()
            for task in filter(None, (looking, ending, self._acting)):
                task.cancel()
        for task in done:
            await task  # an error of ours is to be seen

    def _take_terminal(self) -> None:
        self._terminal.enter_context(keys_one_by_one(self._fd))
        self._terminal.enter_context(self._live)
        self._draw()

    def _step_aside(self) -> None:
        """Ctrl-Z: the shell gets its terminal back, and we go on where we were."""
        self._terminal.close()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take_terminal()

    async def _look(self) -> None:
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    self._picture.see(await self._eye.look())
            except (HoldfastError, TimeoutError) as error:
                self._picture.lose(str(error) or SILENT)
            self._draw()
            await asyncio.sleep(EVERY)

    def _draw(self) -> None:
        # Not as COLUMNS and LINES have it, which stay as they were when a window changes.
        size = os.get_terminal_size(self._fd)
        self._screen.console.size = ConsoleDimensions(size.columns, size.lines)
        lines = self._picture.lines(size.columns, size.lines, ascii_only=self._screen.ascii_only)
        self._live.update(Group(*lines), refresh=True)

    def _read(self) -> None:
        keys = self._keys.read()
        if keys is None:
            self._ends.set()
        for key in keys or ():
            self._press(key)
        self._draw()

    def _press(self, key: str) -> None:
        picture = self._picture
        if self._agreed is not None:
            agreed, self._agreed, picture.question = self._agreed, None, None
            if key in ("y", "Y"):
                self._act(agreed)
            else:
                picture.message = "Nothing was done."
            return
        picture.message = ""
        match key:
            case "q" | "Q":
                self._ends.set()
            case "tab":
                picture.switch()
            case "up" | "down":
                picture.move(-1 if key == "up" else 1)
            case "p" if picture.queue is not None:
                queue, paused = picture.queue.queue, picture.queue.paused
                self._act(lambda: self._pause(queue, resumes=paused))
            case "d" if picture.worker is not None:
                worker = picture.worker.id
                self._act(lambda: self._drain(worker))
            case "r":
                self._act(self._ask_to_replay)

    def _act(self, do: Callable[[], Awaitable[str]]) -> None:
        """One thing at a time, beside the drawing; how it ended is said at the foot."""
        if self._acting is not None and not self._acting.done():
            self._picture.message = "Wait: the last key is still being worked on."
            return
        self._acting = asyncio.create_task(self._try(do))

    async def _try(self, do: Callable[[], Awaitable[str]]) -> None:
        try:
            async with asyncio.timeout(MOST_PATIENCE):
                self._picture.message = await do()
            self._picture.see(await self._eye.look())
        except (HoldfastError, TimeoutError) as error:
            self._picture.message = f"That failed: {str(error) or SILENT}"
        self._draw()

    async def _pause(self, queue: str, *, resumes: bool) -> str:
        if resumes:
            await self._client.resume(queue)
            return f"Queue {queue!r} goes on."
        await self._client.pause(queue)
        return f"Queue {queue!r} is paused; what runs goes on."

    async def _drain(self, worker_id: str) -> str:
        if await self._client.ask_to_drain(worker_id):
            return f"{worker_id} was asked to finish what it has and leave."
        return f"{worker_id} is gone."

    async def _ask_to_replay(self) -> str:
        number = await self._client.replay(DEAD, dry_run=True)
        if not number:
            return "There is no dead letter."
        self._picture.question = f"Replay {plural(number, 'dead letter')}?"
        self._agreed = self._replay
        return ""

    async def _replay(self) -> str:
        return f"Replayed {plural(await self._client.replay(DEAD), 'dead letter')}."
