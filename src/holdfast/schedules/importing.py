"""Makes schedules of a calendar: all of them in one commit, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from holdfast.core.task import NewTask
from holdfast.errors import InvalidOption
from holdfast.schedules.book import Book
from holdfast.schedules.calendar_reading import Entry, Unread
from holdfast.schedules.calendar_writing import UID_SUFFIX
from holdfast.schedules.reading import read_schedule_name
from holdfast.schedules.series import SERIES, Series


class Imported(NamedTuple):
    """The schedules that were made, and the entries that made none."""

    made: Sequence[Series]
    unread: Sequence[Unread]


async def import_entries(
    book: Book,
    entries: Sequence[Entry | Unread],
    template: NewTask,
    words: Mapping[str, Any],
    *,
    skip_unread: bool = False,
) -> Imported:
    """Make a schedule of each entry, for the same task. If one cannot be, nothing is made, unless
    those are to be skipped. A schedule is named as its entry (UID) if that is a name, and free.
    """
    now = await book.store.now()
    names = await _free_names(book, entries)
    made: list[Series] = []
    unread: list[Unread] = []
    for entry in entries:
        each = entry if isinstance(entry, Unread) else _made(book, entry, template, words, now)
        if isinstance(each, Unread):
            unread.append(each)
        else:
            made.append(replace(each, id=names.get(entry.number, each.id)))
    if made and (skip_unread or all(each.is_fine for each in unread)):
        await book.add(made)
        return Imported(made, unread)
    return Imported((), unread)


def _made(
    book: Book, entry: Entry, template: NewTask, words: Mapping[str, Any], now: datetime
) -> Series | Unread:
    said = {
        "title": entry.summary, "description": entry.description, "category": entry.category
    }  # fmt: skip
    about = {word: text for word, text in said.items() if text is not None}
    try:
        return book.made(
            template, entry.rule, tz=None, name=None, now=now, words={**about, **words}
        )
    except InvalidOption as error:
        reason = str(error).removeprefix(f"{error.option}: ")
        return Unread(entry.number, entry.uid, entry.summary, error.option, reason)


async def _free_names(book: Book, entries: Sequence[Entry | Unread]) -> dict[int, str]:
    """The names that entries may have, by their numbers."""
    wanted: dict[str, int] = {}
    for entry in entries:
        name = (entry.uid or "").removesuffix(UID_SUFFIX)
        if name not in wanted and _is_name(name):
            wanted[name] = entry.number
    if not wanted:
        return {}
    taken = await book.store.records(SERIES, keys=list(wanted), limit=len(wanted))
    gone = {record.key for record in taken}
    return {number: name for name, number in wanted.items() if name not in gone}


def _is_name(text: str) -> bool:
    try:
        return bool(read_schedule_name(text))
    except InvalidOption:
        return False
