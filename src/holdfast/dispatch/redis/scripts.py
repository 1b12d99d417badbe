"""The Lua scripts, and the names of the keys that they use."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from typing import Final

from holdfast.dispatch.redis.connection import RedisConnection, Word
from holdfast.dispatch.redis.resp import ErrorReply, Reply

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
    """Runs the scripts over a connection. The hash tag `{store}` keeps all keys on one node."""

    def __init__(self, connection: RedisConnection, store: str) -> None:
        self._connection = connection
        self._stem = f"holdfast:{{{store}}}:"

    def channel(self, process: str) -> str:
        return f"{self._stem}calls:{process}"

    async def load(self) -> None:
        """Make the scripts known to the server."""
        await asyncio.gather(*map(self._load, (WAKE, SLEEP, AWAKE, BEAT)))

    async def try_out(self, process: str) -> None:
        """Write as a sleeper does, where nobody calls. A server that is full, or does not let this
        user write, refuses here; it would else be lost and back with every sleeper.
        """
        nobody, nowhere = f"{process}/0", (NOWHERE,)
        await self.sleep(nobody, nowhere, b"")
        await self.awake(nobody, nowhere)

    async def wake(self, queues: Mapping[str, int]) -> Reply:
        keys = [self._key("until"), *self._both(["", *queues])]
        return await self._run(WAKE, keys, [self.channel(""), TURN_KEPT, *queues.values()])

    async def sleep(self, listener: str, queues: Collection[str], seen: bytes) -> Reply:
        keys = [self._key("until"), *self._both(queues)]
        return await self._run(SLEEP, keys, [listener, STANDING, KEPT, seen])

    async def awake(self, listener: str, queues: Collection[str]) -> Reply:
        return await self._run(AWAKE, self._lists(queues), [listener])

    async def beat(self, listeners: Collection[str], queues: Collection[str]) -> Sequence[Reply]:
        lost = await self._run(BEAT, self._lists(queues), [STANDING, KEPT, *listeners])
        return lost if isinstance(lost, list) else []

    async def _run(self, script: Script, keys: Sequence[str], words: Sequence[Word]) -> Reply:
        command = ("EVALSHA", script.sha, len(keys), *keys, *words)
        try:
            return await self._connection.ask(*command)
        except ErrorReply as error:
            if error.code != "NOSCRIPT":
                raise
        await self._load(script)  # they were flushed
        return await self._connection.ask(*command)

    async def _load(self, script: Script) -> None:
        await self._connection.ask("SCRIPT", "LOAD", script.text, patience=1.0)

    def _lists(self, queues: Collection[str]) -> list[str]:
        return [self._key("until"), *(self._key("asleep", queue) for queue in queues)]

    def _both(self, queues: Collection[str]) -> list[str]:
        """The list of each queue, and its turn."""
        return [self._key(name, queue) for queue in queues for name in ("asleep", "turn")]

    def _key(self, name: str, queue: str = "") -> str:
        return f"{self._stem}{name}:{queue}" if queue else f"{self._stem}{name}"
