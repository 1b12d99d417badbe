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
TURN_KEPT: Final = 600_000
"""Milliseconds after which nobody needs to know any more that a queue was called in vain."""
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
        keys = [self._key("until"), *self._both(queues)]
        return line.ask(*_script(SLEEP, keys, [ear, STANDING, KEPT, seen]))

    def awake(self, line: Line, ear: str, queues: Collection[str]) -> asyncio.Future[Reply]:
        keys = [self._key("until"), *(self._key("asleep", queue) for queue in queues)]
        return line.ask(*_script(AWAKE, keys, [ear]))

    def beat(
        self, line: Line, ears: Collection[str], queues: Collection[str]
    ) -> asyncio.Future[Reply]:
        keys = [self._key("until"), *(self._key("asleep", queue) for queue in queues)]
        return line.ask(*_script(BEAT, keys, [STANDING, KEPT, *ears]))

    def _waking(self, queues: Mapping[str, int]) -> list[Word]:
        keys = [self._key("until"), *self._both(["", *queues])]
        return _script(WAKE, keys, [self.channel(""), TURN_KEPT, *queues.values()])

    def _both(self, queues: Collection[str]) -> list[str]:
        """The list of each queue, and its turn."""
        return [self._key(name, queue) for queue in queues for name in ("asleep", "turn")]

    def _key(self, name: str, queue: str = "") -> str:
        return f"{self._stem}{name}:{queue}" if queue else f"{self._stem}{name}"


def _script(script: Script, keys: Sequence[str], words: Sequence[Word]) -> list[Word]:
    return ["EVALSHA", script.sha, len(keys), *keys, *words]
