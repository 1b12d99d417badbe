"""The demo on the screen: a live picture on a terminal, a line a second elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli import words
from holdfast.cli.demo.mix import KINDS
from holdfast.cli.screen import STYLES, Screen
from holdfast.core.fleet import WorkerInfo, WorkerStatus


@dataclass(slots=True)
class Scene:
    """What there is to see at one moment."""

    seconds: float = 0.0
    total: int = 0
    finished: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Per kind: how many have ended, how many there will be."""
    workers: Sequence[WorkerInfo] = ()


class Show:
    """Where the demo tells its story. This one is for `--json`: the answer is all there is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def say(self, text: str) -> None:
        """Tell one thing that happened."""

    def update(self, scene: Scene) -> None:
        """Show where things stand."""


class PlainShow(Show):
    """For pipes and logs: events as they happen, a status line every second."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._seconds = 0.0
        self._next_line = 0.0

    def say(self, text: str) -> None:
        self._print(text)

    def update(self, scene: Scene) -> None:
        self._seconds = scene.seconds
        if scene.seconds >= self._next_line:
            self._next_line = scene.seconds + 1.0
            self._print(f"{scene.finished} of {scene.total} finished; {_in_words(scene.states)}")

    def _print(self, text: str) -> None:
        self._screen.line(f"{self._seconds:5.1f} s  {text}")
        self._screen.file.flush()


class LiveShow(Show):
    """For terminals: bars that fill, the workers and what they hold; events scroll by above."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._seconds = 0.0
        self._live: Live = Live(
            console=screen.console, refresh_per_second=8, transient=True, auto_refresh=False
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._screen.console.print(f"{self._seconds:5.1f} s  {text}", style="bold")

    def update(self, scene: Scene) -> None:
        self._seconds = scene.seconds
        self._live.update(_picture(scene, ascii_only=self._screen.ascii_only), refresh=True)


def _picture(scene: Scene, *, ascii_only: bool) -> Group:
    status = f"{scene.finished} of {scene.total} finished; {_in_words(scene.states)}"
    return Group(
        Text(""),
        _bars(scene, ascii_only=ascii_only),
        Text(""),
        _workers(scene.workers),
        Text(f"\n{scene.seconds:5.1f} s  {status}", style="cyan"),
    )


def _bars(scene: Scene, *, ascii_only: bool) -> Table:
    table = Table.grid(padding=(0, 2))
    for kind in KINDS:
        ended, total = scene.kinds.get(kind.name, (0, 0))
        bar = words.bar(ended / total if total else 0.0, 24, ascii_only=ascii_only)
        table.add_row(kind.name, bar, f"{ended:>4}/{total}", Text(kind.says, style="dim"))
    return table


def _workers(workers: Sequence[WorkerInfo]) -> Table:
    table = Table.grid(padding=(0, 2))
    for worker in sorted(workers, key=lambda worker: worker.id):
        if worker.status is not WorkerStatus.STOPPED:
            status = Text(worker.status, style=STYLES[worker.status])
            table.add_row("worker", f"pid {worker.pid}", status, f"runs {worker.load}")
    return table


def _in_words(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.items() if count)
