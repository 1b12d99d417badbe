"""The inbox: what was delivered to an owner, to be read in the product itself.

Each item is a record, in its owner's group, numbered by a record that counts: the items of one
owner appear in the order of their numbers and without gaps, whoever writes them. So a listener that
says which number it saw last misses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple
from uuid import uuid4

import orjson

from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.core.task import Json
from holdfast.errors import RecordConflict
from holdfast.filters import page_size
from holdfast.ports.channel import Message
from holdfast.ports.records import one_record
from holdfast.ports.store import Store

INBOX: Final = "inbox"
"""The kind of the items. The key is the delivery, the group is the owner ("" for nobody)."""
COUNTER: Final = "inbox_counter"
"""The kind of the records that count an owner's items. The key is the owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """`number` is its place among its owner's, from 1."""

    id: str
    number: int
    owner: str | None
    title: str
    content: str
    is_failure: bool
    execution: str | None
    schedule: str | None
    created_at: datetime
    read_at: datetime | None = None


class InboxPage(NamedTuple):
    """Items, newest first; `next`, passed as `before`, brings older ones."""

    items: Sequence[InboxItem]
    next: int | None


@dataclass(frozen=True, slots=True)
class Inbox:
    """The inboxes of one store. `keep` is for how many seconds items are kept."""

    store: Store
    keep: float

    async def add(self, message: Message) -> bool:
        """Put a message in its owner's inbox; False if it is there already."""
        while True:
            if await one_record(self.store, INBOX, message.id) is not None:
                return False
            counter = await one_record(self.store, COUNTER, message.owner or "")
            number = 1 if counter is None else int(counter.document) + 1
            item = InboxItem(
                id=message.id, number=number, owner=message.owner, title=message.title,
                content=message.content, is_failure=message.is_failure,
                execution=message.execution, schedule=message.schedule, created_at=message.at,
            )  # fmt: skip
            version = 0 if counter is None else counter.version
            count = Put(COUNTER, message.owner or "", str(number), version)
            try:
                await self.store.commit(Changes(uuid4().hex, records=[count, self._put(item, 0)]))
            except RecordConflict:
                continue  # another item came in between, or this very one
            return True

    async def list(
        self,
        owner: str | None,
        *,
        before: int | None = None,
        limit: int = 100,
        unread: bool = False,
    ) -> InboxPage:
        """A page of an owner's items, newest first."""
        size, found = page_size(limit), list[InboxItem]()
        edge = None if before is None else Record(INBOX, "", 0, "", sort=_sort(before))
        while True:
            page = await self.store.records(
                INBOX, group=owner or "", after=edge, limit=size + 1, newest_first=True
            )
            items = map(load_item, page)
            found += [item for item in items if not (unread and item.read_at is not None)]
            if len(page) <= size or len(found) > size:
                break
            edge = page[-1]
        return InboxPage(found[:size], found[size - 1].number if len(found) > size else None)

    async def since(self, owner: str | None, number: int, *, limit: int) -> Sequence[InboxItem]:
        """Items after this number, oldest first."""
        edge = Record(INBOX, "", 0, "", sort=_sort(number + 1))
        page = await self.store.records(INBOX, group=owner or "", after=edge, limit=limit)
        return [load_item(record) for record in page]

    async def last_number(self, owner: str | None) -> int:
        """The number of the newest item that ever was; 0 if there was none."""
        counter = await one_record(self.store, COUNTER, owner or "")
        return 0 if counter is None else int(counter.document)

    async def get(self, owner: str | None, item_id: str) -> InboxItem | None:
        """An item of this owner; None if it has none of that id."""
        record = await self._record(owner, item_id)
        return None if record is None else load_item(record)

    async def find(self, item_id: str) -> InboxItem | None:
        """An item, whoever's it is: for those who may see all."""
        record = await one_record(self.store, INBOX, item_id)
        return None if record is None else load_item(record)

    async def mark_read(
        self, owner: str | None, item_id: str, *, is_read: bool = True
    ) -> InboxItem | None:
        """Note that it was read, or take that back; None if there is no such item."""
        while (record := await self._record(owner, item_id)) is not None:
            item = load_item(record)
            if (item.read_at is not None) == is_read:
                return item
            new = replace(item, read_at=await self.store.now() if is_read else None)
            try:
                put = self._put(new, record.version)
                await self.store.commit(Changes(uuid4().hex, records=[put]))
            except RecordConflict:
                continue
            return new
        return None

    async def delete(self, owner: str | None, item_id: str) -> bool:
        """Forget an item; whether there was one."""
        record = await self._record(owner, item_id)
        if record is not None:
            await self.store.commit(Changes(uuid4().hex, records=[Delete(INBOX, record.key)]))
        return record is not None

    async def _record(self, owner: str | None, item_id: str) -> Record | None:
        record = await one_record(self.store, INBOX, item_id)
        return record if record is not None and record.group == (owner or "") else None

    def _put(self, item: InboxItem, version: int) -> Put:
        document = orjson.dumps(asdict(item)).decode()
        return Put(
            INBOX, item.id, document, version, group=item.owner or "", sort=_sort(item.number),
            due_in=self.keep,
        )  # fmt: skip


def load_item(record: Record) -> InboxItem:
    """What an inbox wrote."""
    said = orjson.loads(record.document)
    for name in ("created_at", "read_at"):
        said[name] = None if said[name] is None else datetime.fromisoformat(said[name])
    return InboxItem(**said)


def _sort(number: int) -> str:
    return f"{number:012d}"


def shown_item(item: InboxItem) -> dict[str, Json]:
    """An item as JSON."""
    said = asdict(item)
    return {"item_id": said.pop("id"), **said}
