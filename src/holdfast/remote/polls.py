"""Polls: those that are answered at once, and those that wait (`waiting.py`).

A poll that is cancelled, because its client hung up or the server stops, ends only when nothing is
under way for it any more; what a claim has brought meanwhile goes back, uncharged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.asyncio_tools.cancel import end
from holdfast.asyncio_tools.shield import to_the_end
from holdfast.core.attempt import Claim, Claimed
from holdfast.core.lifecycle import Outcome
from holdfast.core.priority import Aging
from holdfast.core.task import WorkerId
from holdfast.counting import StoreClock, tally_of
from holdfast.engine.napping import Napper
from holdfast.errors import StoreUnavailable
from holdfast.flow.breakers import Breakers, given_back
from holdfast.flow.starting import must_look
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.remote.leases import Leases
from holdfast.remote.registrations import Registrations, RemoteWorker
from holdfast.remote.waiting import LongPoll, WaitingPolls

log = EventLog("holdfast.remote")

_Key = tuple[tuple[str, ...] | None, frozenset[str]]


class Polls:
    """All polls of this process."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        registrations: Registrations,
        leases: Leases,
        *,
        poll: float,
        aging: Aging,
        on_claimed: Callable[[Sequence[Claim]], None],
        look: Callable[[Claim], Awaitable[Claim | Outcome]],
        breakers: Breakers,
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._registrations = registrations
        self._leases = leases
        self._every = poll
        self._aging = aging
        self._tally, self._clock = tally_of(store), StoreClock(store)
        self._on_claimed = on_claimed
        self._look = look
        self._breakers = breakers
        self._waiting: dict[_Key, WaitingPolls] = {}
        self._polls: dict[WorkerId, list[LongPoll]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()

    async def poll(self, worker: RemoteWorker, *, limit: int, wait: float) -> Sequence[Claim]:
        """Up to `limit` tasks for the worker, as soon as there is one; none after `wait` seconds.

        Raises what the claim raises: `WorkerGone`, `StoreUnavailable`.
        """
        poll = LongPoll(worker, limit)
        self._make_way(poll)
        polls = self._polls.setdefault(worker.id, [])
        polls.append(poll)
        try:
            return await self._answer(poll, wait)
        except asyncio.CancelledError:
            await to_the_end(self._clear(poll))
            raise
        finally:
            polls.remove(poll)
            if not polls and self._polls.get(worker.id) is polls:
                del self._polls[worker.id]

    async def dismiss(self, worker_id: WorkerId) -> None:
        """Answer what this worker has waiting here; it will get no more."""
        polls = list(self._polls.get(worker_id, ()))
        for poll in polls:
            poll.close()
        if polls:
            await asyncio.wait([poll.answer for poll in polls])

    def nudge(self, due_in: float) -> None:
        """Some task will be ready in that many seconds."""
        for waiting in self._waiting.values():
            waiting.nudge(due_in)

    async def close(self) -> None:
        """Answer everybody, and let go of the listeners."""
        for worker_id in list(self._polls):
            await self.dismiss(worker_id)
        await end(self._tasks)

    async def _answer(self, poll: LongPoll, wait: float) -> Sequence[Claim]:
        waiting = self._waiting_with(poll.worker)
        wake_ups = waiting.wake_ups
        deadline = asyncio.get_running_loop().time() + wait
        claimed = await asyncio.shield(self._keep(self._claim(poll)))
        if not poll.answer.done() and wait > 0:
            waiting.enter(poll, next_due=claimed and claimed.next_due, wake_ups=wake_ups)
            try:
                left = deadline - asyncio.get_running_loop().time()
                await asyncio.wait({poll.answer}, timeout=max(0.0, left))
            finally:
                waiting.leave(poll)
        poll.close()
        # Not `await poll.answer`: a cancellation must not take the future along.
        await asyncio.wait({poll.answer})
        return poll.answer.result()

    async def _serve(self, poll: LongPoll) -> Claimed | None:
        """Claim for a poll that has waited. Its worker may have been given something meanwhile, by
        another server too: one that has no room is answered, and keeps nobody behind it waiting.
        """
        try:
            free = await self._registrations.free_capacity(poll.worker)
            poll.limit = min(poll.limit, max(0, free))
        except Exception as error:  # noqa: BLE001 - whatever it is, its poll is told
            poll.fail(error)
            return None
        except BaseException:
            poll.close()
            raise
        if poll.limit == 0:
            poll.close()
            return Claimed(claims=(), next_due=None)
        return await self._claim(poll)

    async def _claim(self, poll: LongPoll) -> Claimed | None:
        """Claim for this poll. None if that failed, which the poll is told."""
        if poll.answer.done():
            return None
        poll.begin()
        try:
            claimed, to_run = await self._claim_what_runs(poll)
        except Exception as error:  # noqa: BLE001 - whatever it is, its poll is told
            poll.fail(error)
            return None
        except BaseException:
            poll.land([])
            poll.close()
            raise
        poll.land(to_run)
        return claimed

    async def _claim_what_runs(self, poll: LongPoll) -> tuple[Claimed, Sequence[Claim]]:
        """Claim until something is to be run: what ended without a run may have let others pass."""
        info = poll.worker.info
        while True:
            now_us = await self._clock.now_us()
            with self._tally.timed("claim"):
                claimed = await self._store.claim(
                    info.id, queues=info.queues, capabilities=info.capabilities, limit=poll.limit
                )
            self._tally.claimed(claimed, now_us, self._aging)
            self._on_claimed(claimed.claims)
            try:
                to_run = await self._looked_at(await self._admitted(claimed.claims))
            except BaseException:
                await to_the_end(self._leases.give_back(claimed.claims))
                raise
            if to_run or not claimed.claims or poll.is_closing:
                return claimed, to_run

    async def _admitted(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Those that no breaker keeps from running; the others go back."""
        if not self._breakers.has_shut:
            return claims
        claims, kept = await self._breakers.admit(claims)
        try:
            await self._leases.settle([(claim, given_back()) for claim in kept])
        except StoreUnavailable as error:
            log.warning("tasks.not_given_back", tasks=len(kept), error=str(error))
        return claims

    async def _looked_at(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Those that are to be run, of claims that may have to do with other tasks; the others have
        ended.
        """
        if not any(map(must_look, claims)):
            return claims
        to_run: list[Claim] = []
        ended: list[tuple[Claim, Outcome]] = []
        for claim in claims:
            looked_at = await self._look(claim) if must_look(claim) else claim
            if isinstance(looked_at, Claim):
                to_run.append(looked_at)
            else:
                ended.append((claim, looked_at))
        if ended:
            await self._leases.settle(ended)
        return to_run

    async def _clear(self, poll: LongPoll) -> None:
        """Nobody waits for this poll's answer any more."""
        poll.close()
        await asyncio.wait({poll.answer})
        if poll.answer.exception() is None and poll.answer.result():
            await self._leases.give_back(poll.answer.result())

    def _make_way(self, poll: LongPoll) -> None:
        """A worker's polls together never ask for more than it has room for: the oldest is
        answered. It is one whose client is gone without a word, and asks again.
        """
        others = list(self._polls.get(poll.worker.id, ()))
        held = self._leases.count(poll.worker.id)
        free = max(poll.limit, poll.worker.info.capacity - held)
        while others and sum(other.limit for other in others) + poll.limit > free:
            others.pop(0).close()

    def _waiting_with(self, worker: RemoteWorker) -> WaitingPolls:
        """Those who could take the same tasks."""
        key = (worker.info.queues, worker.info.capabilities)
        if key not in self._waiting:
            for idle in [k for k, one in self._waiting.items() if not one.is_listening]:
                del self._waiting[idle]
            napper = Napper(self._dispatcher, worker.info.queues, poll=self._every)
            self._waiting[key] = WaitingPolls(napper, serve=self._serve, spawn=self._keep)
        return self._waiting[key]

    def _keep(self, work: Awaitable[Any]) -> asyncio.Future[Any]:
        """Run it beside, and hold on to it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
