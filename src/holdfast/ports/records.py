"""What a store must promise about records, and about writing several things in one commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from holdfast.core.record import Changes, Due, Record
from holdfast.core.task import Added, TaskId


class RecordStore(Protocol):
    """Keeps small versioned documents (`core.record`), whatever their kinds are.

    Kinds, keys, groups and sorts are text, compared byte by byte in UTF-8, without NUL or lone
    surrogates; documents come back as they were.
    """

    async def records(
        self,
        kind: str,
        *,
        limit: int,
        keys: Collection[str] | None = None,
        group: str | None = None,
        after: Record | None = None,
        newest_first: bool = False,
    ) -> Sequence[Record]:
        """Records of a kind: of one group by (sort, key), or of all groups by key (None); of these
        only those that have one of the `keys`, if given.

        At most `limit`, after the last one of the page before; in reverse with `newest_first`.
        """
        ...

    async def take_due(self, kind: str, *, limit: int, lease: float) -> Due:
        """Take up to `limit` records of a kind that are due, the longest due first.

        Each gets a new version and is due again after `lease` seconds, unless its taker writes or
        deletes that version before: two callers never hold the same one, however they race, and
        none is forgotten. Cheap when none is due.
        """
        ...

    async def commit(self, changes: Changes) -> Sequence[Added]:
        """Write new tasks and records together, or nothing; the answers are those of `add`.

        `RecordConflict` if a record is not of the version that it must be of, `IdempotencyConflict`
        as in `add`. Of callers who race for one version of a record one wins, the others are told.
        A repeat after an unknown outcome (same `Changes.id`) changes nothing and answers as before,
        as long as one of its tasks is kept or one of its records was not written by others since;
        after that it is a conflict.
        """
        ...


async def one_record(store: RecordStore, kind: str, key: str) -> Record | None:
    """One record as it is now."""
    return next(iter(await store.records(kind, keys=(key,), limit=1)), None)


class JournalStore(Protocol):
    """Keeps what the steps of a task came to: written once each, with `report` (`Report.steps`),
    and fenced like it. A step that is there already stays as it is. Kept over retries and requeues,
    forgotten with the task.
    """

    async def journal(self, task_id: TaskId) -> Mapping[str, bytes]:
        """The steps recorded so far, in the order in which they were written. Empty for tasks that
        recorded none, and for unknown ones.
        """
        ...
