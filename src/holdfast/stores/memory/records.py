"""Records in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from holdfast.core.record import PAUSE, Changes, Delete, Due, Kept, Name, Put, Record, in_order
from holdfast.core.task import TaskId
from holdfast.ports.clock import Clock
from holdfast.stores.memory.guarded import Guarded
from holdfast.stores.values import as_time, span_us


class KeepsRecords(Guarded):
    """All of `ports.records` but `commit`, which writes tasks too."""

    def __init__(self, clock: Clock | None) -> None:
        super().__init__(clock)
        self._records: dict[Name, Record] = {}
        self._written_by: dict[Name, str] = {}
        self._journals: dict[TaskId, dict[str, bytes]] = {}

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
        with self._lock:
            found = [r for r in self._of(kind) if keys is None or r.key in keys]
        return in_order(found, limit=limit, group=group, after=after, newest_first=newest_first)

    async def take_due(self, kind: str, *, limit: int, lease: float) -> Due:
        with self._lock:
            now = self._clock.now_us()
            line = sorted((r.due_at, r.key, r) for r in self._of(kind) if r.due_at is not None)
            due = [record for at, _, record in line if at <= as_time(now)][: max(0, limit)]
            taken = [
                r._replace(version=r.version + 1, due_at=as_time(now + span_us(lease))) for r in due
            ]
            for record in taken:
                self._keep(record, "")
            waits = [r.due_at for r in self._of(kind) if r.due_at is not None]
            next_due = (min(waits) - as_time(now)).total_seconds() if waits else None
            return Due(taken, None if next_due is None else max(0.0, next_due))

    async def journal(self, task_id: TaskId) -> Mapping[str, bytes]:
        with self._lock:
            return dict(self._journals.get(task_id, {}))

    # Steps; the lock is held.

    @property
    def _paused(self) -> set[str]:
        return {record.key for record in self._of(PAUSE)}

    def _of(self, kind: str) -> Iterable[Record]:
        return (record for record in self._records.values() if record.kind == kind)

    def _kept(self, changes: Changes) -> dict[Name, Kept]:
        return {
            name: Kept(self._records[name].version, self._written_by[name])
            for name in changes.names
            if name in self._records
        }

    def _write_records(self, records: Sequence[Put | Delete], by: str, now: int) -> None:
        for change in records:
            name = (change.kind, change.key)
            if isinstance(change, Delete):
                self._records.pop(name, None)
                self._written_by.pop(name, None)
                continue
            due = change.due_at
            if due is None and change.due_in is not None:
                due = as_time(now + span_us(change.due_in))
            old = self._records.get(name)
            version = 1 if old is None else old.version + 1
            self._keep(Record(*name, version, change.document, change.group, change.sort, due), by)

    def _keep(self, record: Record, by: str) -> None:
        self._records[record.kind, record.key] = record
        self._written_by[record.kind, record.key] = by
