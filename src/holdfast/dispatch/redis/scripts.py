"""The Lua scripts, and the names of the keys that they use."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.resources import files
from typing import Final

from holdfast.dispatch.redis.line import Line, Word
from holdfast.dispatch.redis.resp import Reply

STANDING: Final = 10_000
"""Milliseconds for which a sleeper may be called unless it says again that it sleeps."""
KEPT: Final = 60_000
"""Milliseconds after which a list that nobody lies down on is forgotten."""
TURNS_KEPT: Final = 600_000
UNKNOWN: Final = b"?"
"""The turns of somebody who has seen none."""
NOWHERE: Final = "*"
"""No queue can have this name."""


class Script:
    """A script by name, and the hash by which a server knows it."""

    def __init__(self, name: str) -> None:
        self.text = (files(__package__) / "lua" / f"{name}.lua").read_text(encoding="utf-8")
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


WAKE, SLEEP, AWAKE, BEAT = (Script(name) for name in ("wake", "sleep", "awake", "beat"))


class Scripts:
    """Asks the scripts over a line. The hash tag `{store}` keeps all keys on one node."""

    def __init__(self, store: str) -> None:
        self.tag = store
        self._stem = f"holdfast:{{{store}}}:"

    def channel(self, process: str) -> str:
        return f"{self._stem}calls:{process}"

    def load(self, line: Line) -> Sequence[asyncio.Future[Reply]]:
        """Make the scripts known to the server."""
        every = (WAKE, SLEEP, AWAKE, BEAT)
        return [line.ask("SCRIPT", "LOAD", script.text, patience=1.0) for script in every]

    def try_out(self, line: Line, process: str) -> Sequence[asyncio.Future[Reply]]:
        """Write as a sleeper does, where nobody calls. A server that is full, or does not let this
        user write, refuses here; it would else be lost and back with every sleeper.
        """
        nobody, nowhere = f"{process}/0", (NOWHERE,)
        return [self.sleep(line, nobody, nowhere, b""), self.awake(line, nobody, nowhere)]

    def wake(self, line: Line, queues: Mapping[str, int]) -> asyncio.Future[Reply]:
        return line.ask(*self._waking(queues))

    def wake_from(
        self, line: Line, queues: Mapping[str, int], then: Callable[[asyncio.Future[Reply]], None]
    ) -> bool:
        """The same from any thread; False if that cannot be done at once."""
        return line.ask_from(then, *self._waking(queues))

    def sleep(
        self, line: Line, ear: str, queues: Collection[str], seen: bytes
    ) -> asyncio.Future[Reply]:
        keys = [self._key("until"), self._key("turns"), *map(self._list, queues)]
        return line.ask(*_script(SLEEP, keys, [ear, STANDING, KEPT, seen, *queues]))

    def awake(self, line: Line, ear: str, queues: Collection[str]) -> asyncio.Future[Reply]:
        keys = [self._key("until"), *map(self._list, queues)]
        return line.ask(*_script(AWAKE, keys, [ear]))

    def beat(
        self, line: Line, ears: Collection[str], queues: Collection[str]
    ) -> asyncio.Future[Reply]:
        keys = [self._key("until"), *map(self._list, queues)]
        return line.ask(*_script(BEAT, keys, [STANDING, KEPT, *ears]))

    def _waking(self, queues: Mapping[str, int]) -> list[Word]:
        lists = [self._list(queue) for queue in queues]
        keys = [self._key("until"), self._key("turns"), self._list(""), *lists]
        counts = [word for pair in queues.items() for word in pair]
        return _script(WAKE, keys, [self.channel(""), TURNS_KEPT, *counts])

    def _key(self, name: str) -> str:
        return self._stem + name

    def _list(self, queue: str) -> str:
        return f"{self._stem}asleep:{queue}" if queue else f"{self._stem}asleep"


def _script(script: Script, keys: Sequence[str], words: Sequence[Word]) -> list[Word]:
    return ["EVALSHA", script.sha, len(keys), *keys, *words]
