"""Who of this process sleeps: tells Redis, hears calls, and notices when Redis forgot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from holdfast.dispatch.redis.ear import RedisEar
from holdfast.dispatch.redis.line import Line
from holdfast.dispatch.redis.resp import Push, Refused, Reply
from holdfast.dispatch.redis.scripts import Scripts


class Beds:
    """On the board's loop, but for `ears`, which is replaced, never changed.

    Args:
        call: Wakes so many of each queue.
    """

    def __init__(self, call: Callable[[Mapping[str, int]], None]) -> None:
        self._call = call
        self._line: Line | None = None
        self._scripts: Scripts | None = None
        self._asleep: dict[int, RedisEar] = {}
        self.ears: Mapping[int, RedisEar] = {}

    def use(self, line: Line | None, scripts: Scripts | None) -> None:
        """From now on tell it to this line. Everybody gets up and lies down anew."""
        self._line, self._scripts = line, scripts
        self._asleep.clear()
        for ear in self.ears.values():
            ear.move()

    def lie_down(self, ear: RedisEar, answer: Future[bool]) -> None:
        """Have this ear called; the answer is False if it must look for work before."""
        if self._line is None or self._scripts is None:
            answer.set_result(False)
            return
        self._asleep[ear.number] = ear  # before the answer: a call may be heard with it
        asked = self._scripts.sleep(self._line, ear.name, ear.lists, ear.seen)
        asked.add_done_callback(partial(self._lay_down, self._line, ear, answer))

    def get_up(self, ear: RedisEar) -> None:
        """Have it called no longer, if it was not."""
        if self._asleep.pop(ear.number, None) is not None:
            self._get_up(ear, self._got_up)

    def leave(self, ear: RedisEar) -> None:
        """Forget it, here and in Redis: who was called for one queue is still listed for others."""
        has_slept = self._asleep.pop(ear.number, None) is not None and not ear.was_called
        self._get_up(ear, self._got_up if has_slept else lambda *_: None)

    def pass_on(self, ear: RedisEar) -> None:
        """It was called, and will not look any more: call another one."""
        self._call(dict.fromkeys(ear.lists, 1))

    def heard(self, push: Push) -> None:
        """Somebody called one of ours."""
        if push[:1] == [b"message"] and isinstance(push[2], bytes):
            number = int(push[2])
            self._asleep.pop(number, None)
            ear = self.ears.get(number)
            if ear is not None:
                ear.is_called_for = True
                ear.ring()

    async def beat(self, line: Line, scripts: Scripts) -> None:
        """Have everybody sleep on; wake those of whom Redis does not know."""
        asleep = {ear.name.encode(): ear for ear in self._asleep.values() if not ear.was_called}
        lists = sorted({queue for ear in asleep.values() for queue in ear.lists})
        try:
            lost = await scripts.beat(line, [name.decode() for name in asleep], lists)
        except Refused as error:
            if error.code != "NOSCRIPT":
                raise
            await asyncio.gather(*scripts.load(line))
            return
        for name in lost if isinstance(lost, list) else []:
            ear = asleep[name] if isinstance(name, bytes) else None
            if ear is not None and self._asleep.pop(ear.number, None) is not None:
                ear.ring()

    def _get_up(
        self, ear: RedisEar, then: Callable[[RedisEar, asyncio.Future[Reply]], None]
    ) -> None:
        if self._line is not None and self._scripts is not None:
            asked = self._scripts.awake(self._line, ear.name, ear.lists)
            asked.add_done_callback(partial(then, ear))

    def _got_up(self, ear: RedisEar, asked: asyncio.Future[Reply]) -> None:
        if asked.exception() is None and asked.result() == 0:
            ear.is_called_for = True  # somebody has called it, and it will hear that yet
            if ear.has_left:
                self.pass_on(ear)

    def _lay_down(
        self, line: Line, ear: RedisEar, answer: Future[bool], asked: asyncio.Future[Reply]
    ) -> None:
        error = asked.exception()
        found = None if error else asked.result()
        if error is not None or isinstance(found, bytes):
            self._asleep.pop(ear.number, None)
        if isinstance(found, bytes):
            ear.seen = found
        if isinstance(error, Refused) and error.code == "NOSCRIPT" and self._scripts:
            self._scripts.load(line)
        elif error is not None:
            line.drop(ConnectionError(str(error)))
        if not answer.cancelled():
            answer.set_result(error is None and found is None)
