"""Schedules that code declares: `@app.schedule("0 9 * * 1-5")`. A worker and a server write them
down when they start.

What was declared and is not any more is deleted, if the module that it stood in is one of this app,
or gone: apps that share a store, or a package, leave each other's alone. What people have edited
stays as they want it, and the log says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from importlib.util import find_spec
from typing import Final

import orjson

from holdfast.core.record import Delete, Put, Record
from holdfast.definitions.declaration import Declaration
from holdfast.errors import RecordConflict
from holdfast.logs import EventLog
from holdfast.ports.records import one_record
from holdfast.schedules.book import Book
from holdfast.schedules.series import SERIES, Series, Status, dump_series, load_series

log = EventLog("holdfast.schedules")

PAGE: Final = 1000
NEVER_AGAIN: Final = 1e9
_OF_THE_CODE: Final = (
    "rule", "template", "overlap", "catch_up", "jitter", "pause_after_failures", "about",
)  # fmt: skip


@dataclass(slots=True)
class Reconciled:
    """What the code changed, by name. `kept` are those that people had edited."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


class DeclarationKeeper:
    """Reconciles once, when a process starts. A maintenance agent."""

    def __init__(self, book: Book) -> None:
        self._book = book

    async def tick(self) -> float:
        done = await reconcile(self._book, self._book.registry.schedules.values())
        if done.added or done.changed or done.removed:
            log.info(
                "schedule.reconciled", added=done.added, changed=done.changed, removed=done.removed
            )
        return NEVER_AGAIN


async def reconcile(
    book: Book, declarations: Iterable[Declaration], *, force: bool = False
) -> Reconciled:
    """Bring the store's schedules to what the code declares."""
    done, now, declarations = Reconciled(), await book.store.now(), list(declarations)
    wanted = {each.name: _made(book, each, now) for each in declarations}
    known = {record.key: record for record in await _declared(book)}
    for name, series in wanted.items():
        fresh = replace(series, declared=fingerprint(series))
        await _bring(book, fresh, known.get(name), done, force=force)
    modules = {each.module for each in declarations} | _modules(book)
    for name, record in known.items():
        if name not in wanted:
            await _remove(book, record, modules, done, force=force)
    return done


def _made(book: Book, each: Declaration, now: datetime) -> Series:
    series = book.made(
        book.template(each.task, each.arguments), each.rule, tz=None, name=each.name, now=now,
        words=each.words, may_be_over=True,
    )  # fmt: skip
    return replace(series, declared_in=each.module)


def fingerprint(series: Series) -> str:
    """Of what the code says; how far it has come does not matter."""
    said = orjson.loads(dump_series(series))
    return sha256(orjson.dumps([said[name] for name in _OF_THE_CODE])).hexdigest()[:16]


async def _bring(
    book: Book, fresh: Series, record: Record | None, done: Reconciled, *, force: bool
) -> None:
    if record is None:
        if await _committed(book, fresh, fresh.put(0)):
            done.added.append(fresh.id)
            return
        record = await one_record(book.store, SERIES, fresh.id)
        if record is None:  # somebody has added it, and somebody else deleted it
            return
    old = load_series(record)
    if old.declared == fresh.declared and not (force and old.edited):
        return
    if (old.edited or old.declared is None) and not force:
        _keep(old, done)
        return
    new = _changed(old, fresh)
    if await _committed(book, new, new.put(record.version)):
        done.changed.append(old.id)


def _changed(old: Series, fresh: Series) -> Series:
    """What the code says now, as far as it has come."""
    new = replace(
        fresh,
        version=old.version + 1,
        created_at=old.created_at,
        last_at=old.last_at,
        runs=old.runs,
        failures=old.failures,
        open=old.open,
    )
    if old.rule == fresh.rule and old.status is not Status.FAILED:
        new = replace(
            new,
            next_at=old.next_at,
            next_wall=old.next_wall,
            tz_version=old.tz_version,
            skips=old.skips,
            status=old.status,
            note=old.note,
        )
    if old.status is Status.PAUSED:
        until = old.paused_until
        new = replace(new, status=Status.PAUSED, note=old.note, paused_until=until)
    return new


def _keep(old: Series, done: Reconciled) -> None:
    done.kept.append(old.id)
    log.warning("schedule.kept_as_edited", schedule=old.id)


async def _remove(
    book: Book, record: Record, modules: set[str], done: Reconciled, *, force: bool
) -> None:
    old = load_series(record)
    if old.declared_in is None or not _is_of(old.declared_in, modules):
        return
    if old.edited and not force:
        _keep(old, done)
    elif await _committed(book, old, Delete(SERIES, old.id, record.version)):
        done.removed.append(old.id)


async def _declared(book: Book) -> list[Record]:
    found: list[Record] = []
    after: Record | None = None
    while page := await book.store.records(SERIES, limit=PAGE, after=after):
        found += [record for record in page if '"declared":null' not in record.document]
        after = page[-1]
    return found


def _modules(book: Book) -> set[str]:
    return {each.handler.__module__ for each in book.registry.values()}


def _is_of(module: str, modules: set[str]) -> bool:
    """Whether a declaration of this module is this app's to remove."""
    if module in modules:
        return True
    package = module.partition(".")[0]
    return package in {each.partition(".")[0] for each in modules} and not _exists(module)


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # its package is gone, or it is the main script
        return False


async def _committed(book: Book, series: Series, change: Put | Delete) -> bool:
    with suppress(RecordConflict):  # somebody else has done it, or changed it meanwhile
        await book.commit(series, change)
        return True
    return False
