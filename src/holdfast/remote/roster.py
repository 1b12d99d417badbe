"""Who the workers over HTTP are, as far as this process knows; the store knows all of them."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from holdfast.core.fleet import ALIVE, HTTP, WorkerInfo, WorkerStatus, held_by, may_speak_for
from holdfast.core.task import WorkerId
from holdfast.errors import WorkerGone, WorkerNotFound
from holdfast.ports.store import Store

ASK_AGAIN = 1.0
"""Seconds for which an answer about draining is good."""


@dataclass(slots=True)
class Member:
    """A living worker. Times by the monotonic clock."""

    info: WorkerInfo
    beat_at: float = 0.0
    heard_at: float | None = None
    """When its last heartbeat came in here; None if it has sent none."""
    asked_at: float = 0.0
    is_leaving: bool = False
    """An operator wants it to leave, or it said itself that it will. That is not taken back."""
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has handed in results here."""

    @property
    def id(self) -> WorkerId:
        return self.info.id


class Roster:
    """Registers workers, and finds them again."""

    def __init__(self, store: Store, *, heartbeat: float) -> None:
        self._store = store
        self._heartbeat = heartbeat
        self._members: dict[WorkerId, Member] = {}

    async def register(
        self,
        *,
        capabilities: Collection[str],
        capacity: int,
        queues: Collection[str] | None,
        version: str,
        host: str,
        token_id: str | None,
    ) -> Member:
        """Take in a new worker, under an id that nobody had before."""
        token = set() if token_id is None else {held_by(token_id)}
        info = WorkerInfo(
            id=WorkerId(f"{HTTP}-{secrets.token_hex(8)}"),
            host=host,
            pid=0,
            version=version,
            queues=None if queues is None else tuple(dict.fromkeys(queues)),
            capabilities=frozenset(capabilities) | {HTTP} | token,
            capacity=capacity,
            kind=HTTP,
        )
        await self._store.register(info)
        member = self._members[info.id] = Member(info, beat_at=time.monotonic())
        return member

    async def find(self, worker_id: WorkerId) -> WorkerInfo:
        """The worker, dead or alive. `WorkerNotFound` for whoever is none of ours."""
        known = self._members.get(worker_id)
        if known is not None:
            return known.info
        for info in await self._store.workers():
            if info.id == worker_id and info.kind == HTTP:
                return info
        raise WorkerNotFound(worker_id)

    async def refuse_others(self, worker_id: WorkerId, token_id: str) -> None:
        """`WorkerNotFound` unless the worker registered with this token."""
        if not may_speak_for(token_id, (await self.find(worker_id)).capabilities):
            raise WorkerNotFound(worker_id)

    async def member(self, worker_id: WorkerId) -> Member:
        """The living worker. `WorkerGone` if it was buried or has left."""
        known = self._members.get(worker_id)
        if known is None:
            info = await self.find(worker_id)
            if info.status not in ALIVE:
                raise WorkerGone(worker_id)
            leaving = info.drain_requested or info.status is WorkerStatus.DRAINING
            known = self._members.setdefault(worker_id, Member(info, is_leaving=leaving))
        return known

    async def beat(self, member: Member) -> None:
        """Say that it is alive. `WorkerGone` if the store has given it up."""
        member.beat_at = time.monotonic()
        status = WorkerStatus.DRAINING if member.is_leaving else None
        if not await self._store.beat(member.id, status=status):
            self.forget(member.id)
            raise WorkerGone(member.id)

    async def leave(self, member: Member) -> None:
        """It said that it will leave: every server must know."""
        member.is_leaving = True
        await self._store.ask_to_drain(member.id)

    async def saw(self, member: Member) -> None:
        """It asked for something, so it lives: beat for it, unless that has just been done."""
        if time.monotonic() - member.beat_at >= self._heartbeat / 2:
            await self.beat(member)

    def heard(self, member: Member) -> None:
        """It sent a heartbeat of its own."""
        member.heard_at = time.monotonic()

    def longest_wait(self, member: Member) -> float:
        """How long its poll may wait: one that sends no heartbeats lives by its polls alone."""
        if member.heard_at is not None and (
            time.monotonic() - member.heard_at < 2 * self._heartbeat
        ):
            return math.inf
        return 0.8 * self._heartbeat

    async def is_leaving(self, member: Member) -> bool:
        """Whether it must not be given more. Asks the store, about once a second at most."""
        if not member.is_leaving and time.monotonic() - member.asked_at >= ASK_AGAIN:
            member.asked_at = time.monotonic()
            member.is_leaving = await self._store.drain_requested(member.id)
        return member.is_leaving

    def freed(self, worker_id: WorkerId) -> None:
        """It has handed in results."""
        if worker_id in self._members:
            self._members[worker_id].freed.set()

    def forget(self, worker_id: WorkerId) -> None:
        self._members.pop(worker_id, None)

    def keep(self, alive: Collection[WorkerId]) -> None:
        """Forget everybody else. (One that registered a moment ago is found again.)"""
        for worker_id in self._members.keys() - set(alive):
            del self._members[worker_id]
