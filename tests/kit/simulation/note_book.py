"""What records must be, as a plain reading of `ports/records.py`."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from holdfast.core.record import Changes, Delete, Name, Record
from holdfast.core.task import TaskId


class Note(NamedTuple):
    """A record as it must be, and the commit that wrote it."""

    version: int
    document: str
    by: str


class NoteBook:
    """Every record of a history, and what must become of commits."""

    def __init__(self) -> None:
        self.notes: dict[Name, Note] = {}

    def is_repeat(self, changes: Changes, known: Collection[TaskId]) -> bool:
        names = [(each.kind, each.key) for each in changes.records]
        written = any(self.notes[name].by == changes.id for name in names if name in self.notes)
        return written or any(new.id in known for new in changes.tasks)

    def clash(self, changes: Changes) -> Name | None:
        """The record that is of another version than it must be of."""
        for change in changes.records:
            found = self.notes.get((change.kind, change.key))
            if change.version is not None and change.version != (found.version if found else 0):
                return change.kind, change.key
        return None

    def write(self, changes: Changes) -> None:
        for change in changes.records:
            name = (change.kind, change.key)
            found = self.notes.pop(name, None)
            if not isinstance(change, Delete):
                version = found.version + 1 if found else 1
                self.notes[name] = Note(version, change.document, changes.id)

    def differs(self, name: Name, record: Record | None) -> str | None:
        """What the store says of a record, if it is not what it must be."""
        expected = self.notes.get(name)
        found = None if record is None else (record.version, record.document)
        if found == (None if expected is None else expected[:2]):
            return None
        return f"{name} is {found}, not {expected}"
