"""Polls: those that are answered at once, and those that wait (`room.py`).

A poll that is cancelled, because its client hung up or the server stops, ends only when nothing is
under way for it any more; what a claim has brought meanwhile goes back, uncharged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from holdfast.core.attempt import Claim, Claimed
from holdfast.core.task import WorkerId
from holdfast.ending import end
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import TaskStore
from holdfast.remote.room import Room
from holdfast.remote.roster import Member
from holdfast.remote.seat import Seat
from holdfast.shielding import to_the_end

_Key = tuple[tuple[str, ...] | None, frozenset[str]]


class Hall:
    """All polls of this process."""

    def __init__(
        self,
        store: TaskStore,
        dispatcher: Dispatcher,
        *,
        poll: float,
        on_claimed: Callable[[Sequence[Claim]], None],
        give_back: Callable[[Sequence[Claim]], Coroutine[Any, Any, None]],
        running: Callable[[WorkerId], int],
        room: Callable[[Member], Awaitable[int]],
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._poll = poll
        self._on_claimed = on_claimed
        self._give_back = give_back
        self._running = running
        self._room_for = room
        self._rooms: dict[_Key, Room] = {}
        self._seats: dict[WorkerId, list[Seat]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()

    async def poll(self, member: Member, *, limit: int, wait: float) -> Sequence[Claim]:
        """Up to `limit` tasks for the worker, as soon as there is one; none after `wait` seconds.

        Raises what the claim raises: `WorkerGone`, `StoreUnavailable`.
        """
        seat = Seat(member, limit)
        self._make_way(seat)
        seats = self._seats.setdefault(member.id, [])
        seats.append(seat)
        try:
            return await self._answer(seat, wait)
        except asyncio.CancelledError:
            await to_the_end(self._clear(seat))
            raise
        finally:
            seats.remove(seat)
            if not seats and self._seats.get(member.id) is seats:
                del self._seats[member.id]

    async def dismiss(self, worker_id: WorkerId) -> None:
        """Answer what this worker has waiting here; it will get no more."""
        seats = list(self._seats.get(worker_id, ()))
        for seat in seats:
            seat.close()
        if seats:
            await asyncio.wait([seat.answer for seat in seats])

    def nudge(self, due_in: float) -> None:
        """Some task will be ready in that many seconds."""
        for room in self._rooms.values():
            room.nudge(due_in)

    async def close(self) -> None:
        """Answer everybody, and let go of the listeners."""
        for worker_id in list(self._seats):
            await self.dismiss(worker_id)
        await end(self._tasks)

    async def _answer(self, seat: Seat, wait: float) -> Sequence[Claim]:
        room = self._room(seat.member)
        rings = room.rings
        deadline = asyncio.get_running_loop().time() + wait
        claimed = await asyncio.shield(self._keep(self._claim(seat)))
        if not seat.answer.done() and wait > 0:
            room.enter(seat, next_due=claimed and claimed.next_due, rings=rings)
            try:
                left = deadline - asyncio.get_running_loop().time()
                await asyncio.wait({seat.answer}, timeout=max(0.0, left))
            finally:
                room.leave(seat)
        seat.close()
        # Not `await seat.answer`: a cancellation must not take the future along.
        await asyncio.wait({seat.answer})
        return seat.answer.result()

    async def _serve(self, seat: Seat) -> Claimed | None:
        """Claim for a seat that has waited. Its worker may have been given something meanwhile, by
        another server too: one that has no room is answered, and keeps nobody behind it waiting.
        """
        try:
            seat.limit = min(seat.limit, max(0, await self._room_for(seat.member)))
        except Exception as error:  # noqa: BLE001 - whatever it is, its poll is told
            seat.fail(error)
            return None
        except BaseException:
            seat.close()
            raise
        if seat.limit == 0:
            seat.close()
            return Claimed(claims=(), next_due=None)
        return await self._claim(seat)

    async def _claim(self, seat: Seat) -> Claimed | None:
        """Claim for this seat. None if that failed, which the seat is told."""
        if seat.answer.done():
            return None
        info = seat.member.info
        seat.begin()
        try:
            claimed = await self._store.claim(
                info.id, queues=info.queues, capabilities=info.capabilities, limit=seat.limit
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, its poll is told
            seat.fail(error)
            return None
        except BaseException:
            seat.land([])
            seat.close()
            raise
        self._on_claimed(claimed.claims)
        seat.land(claimed.claims)
        return claimed

    async def _clear(self, seat: Seat) -> None:
        """Nobody waits for this seat's answer any more."""
        seat.close()
        await asyncio.wait({seat.answer})
        if seat.answer.exception() is None and seat.answer.result():
            await self._give_back(seat.answer.result())

    def _make_way(self, seat: Seat) -> None:
        """A worker's polls together never ask for more than it has room for: the oldest is
        answered. It is one whose client is gone without a word, and asks again.
        """
        others = list(self._seats.get(seat.member.id, ()))
        room = max(seat.limit, seat.member.info.capacity - self._running(seat.member.id))
        while others and sum(other.limit for other in others) + seat.limit > room:
            others.pop(0).close()

    def _room(self, member: Member) -> Room:
        key = (member.info.queues, member.info.capabilities)
        room = self._rooms.get(key)
        if room is None:
            for empty in [k for k, one in self._rooms.items() if one.is_idle]:
                del self._rooms[empty]
            room = self._rooms[key] = Room(
                self._dispatcher,
                member.info.queues,
                poll=self._poll,
                serve=self._serve,
                spawn=self._keep,
            )
        return room

    def _keep(self, work: Awaitable[Any]) -> asyncio.Future[Any]:
        """Run it beside, and hold on to it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
