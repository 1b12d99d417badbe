"""Groups of any size, stored in slices as their members come, in bounded memory.

The parent comes first. It cannot end while members are still to come: the latch of its children is
counted up by one too many, which is counted down after the last slice. If the submitter dies, what
is stored is cancelled by whoever does the chore that every slice puts off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from holdfast.core.chore import CHORE, GIVE_UP, chore, chore_key
from holdfast.core.composition import Parent
from holdfast.core.gate import Count
from holdfast.core.record import Changes, Delete, Put
from holdfast.core.task import Added, TaskId
from holdfast.definitions.composing import SLICE, Composable, Composite, Link
from holdfast.errors import HoldfastError, InvalidOption, RecordConflict
from holdfast.flow.bodies import latch_of_children
from holdfast.flow.submitting import Composer, Make
from holdfast.flow.trees import Trees
from holdfast.ports.store import Store

PATIENCE: Final = 600.0
"""Seconds between two slices after which nobody is thought to store more."""


class Slices:
    """One large group on its way into the store."""

    def __init__(
        self, store: Store, composer: Composer, trees: Trees, part: Composite[Any], make: Make
    ) -> None:
        self._store = store
        self._composer = composer
        self._trees = trees
        self._part = part
        self._make = make
        self._version = 0
        self._stored = 0
        self._parent: Parent | None = None

    async def begin(self) -> Added:
        """Store the parent. If it was stored before, as its key says, that is all."""
        added = await self._composer.submit_parent(self._part, self._make, self._hold)
        if added.created:
            self._parent = Parent(added.task_id, self._part.said)
        return added

    async def store(self, some: Sequence[Composable[Any]]) -> None:
        """Store some more members."""
        assert self._parent is not None
        _refuse_named(some)
        self._version += 1
        try:
            await self._composer.submit_slice(some, self._parent, self._make, self._hold)
        except RecordConflict:
            raise HoldfastError(
                f"group {self._parent.id} was given up: no member came for {PATIENCE:g} s, so its "
                "submitter was thought to be dead. What was stored of it is cancelled."
            ) from None
        if self._part.body is None:
            _remember(self._part.decoders, some, self._stored)
        self._stored += len(some)

    async def end(self) -> None:
        """That was the last one."""
        assert self._parent is not None
        parent_id = self._parent.id
        gone = Delete(CHORE, chore_key(GIVE_UP, parent_id), self._version + 1)
        count = Count(latch_of_children(parent_id), -1)
        await self._store.commit(Changes(uuid4().hex, records=(gone,), counts=(count,)))

    async def give_up(self) -> None:
        """Cancel what is stored: not all of it can be."""
        if self._parent is None:
            return
        await self._trees.give_up({"parent": self._parent.id})
        gone = Delete(CHORE, chore_key(GIVE_UP, self._parent.id))
        await self._store.commit(Changes(uuid4().hex, records=(gone,)))

    def _hold(self, parent_id: TaskId) -> Put:
        about = {"parent": parent_id}
        return chore(GIVE_UP, parent_id, about, due_in=PATIENCE, version=self._version)


def _refuse_named(members: Sequence[Composable[Any]]) -> None:
    for member in members:
        if member.name is not None or member.siblings:
            raise InvalidOption(
                "after",
                f"members of a group of more than {SLICE:,} cannot wait for each other: they are "
                "stored in slices. Give them as a list",
            )


def _remember(known: list[Composable[Any]], more: Sequence[Composable[Any]], number: int) -> None:
    """Remember who can read the results of these: one for all, as long as they are alike."""
    one = known[0] if known else more[0]
    alike = isinstance(one, Link) and all(
        isinstance(each, Link) and each.definition is one.definition for each in more
    )
    if alike and len(known) <= 1:
        known[:] = [one]
        return
    known[:] = [*(known * number if len(known) == 1 else known), *more]
