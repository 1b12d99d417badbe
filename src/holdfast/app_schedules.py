"""The schedules of an app: `app.schedules.create(…)`, `await app.schedules.create_async(…)`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from holdfast.schedules.book import Book
from holdfast.schedules.declared import Reconciled, reconcile
from holdfast.sync_facade import ClientOwner

P = ParamSpec("P")
R = TypeVar("R")
Verb = Callable[Concatenate[Book, P], Coroutine[Any, Any, R]]


def _both(
    verb: Verb[P, R],
) -> tuple[
    Callable[Concatenate[AppSchedules, P], R],
    Callable[Concatenate[AppSchedules, P], Coroutine[Any, Any, R]],
]:
    """The sync and the async face of a verb."""

    @wraps(verb)
    async def call_async(self: AppSchedules, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await verb((await self.owner.verbs()).schedules, *args, **kwargs)

    @wraps(verb)
    def call(self: AppSchedules, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.owner.wait_for(call_async(self, *args, **kwargs))

    call_async.__name__ = f"{verb.__name__}_async"
    return call, call_async


class AppSchedules:
    """Every verb of schedules, for sync and for async code."""

    def __init__(self, owner: ClientOwner) -> None:
        self.owner = owner

    create, create_async = _both(Book.create)
    get, get_async = _both(Book.get)
    list, list_async = _both(Book.list)
    update, update_async = _both(Book.update)
    pause, pause_async = _both(Book.pause)
    resume, resume_async = _both(Book.resume)
    skip, skip_async = _both(Book.skip)
    trigger, trigger_async = _both(Book.trigger)
    backfill, backfill_async = _both(Book.backfill)
    delete, delete_async = _both(Book.delete)
    runs, runs_async = _both(Book.runs)

    async def reconcile_async(self, *, force: bool = False) -> Reconciled:
        """Bring the store to what `@app.schedule` declares, as workers do when they start; with
        `force` also what people have edited.
        """
        book = (await self.owner.verbs()).schedules
        return await reconcile(book, book.registry.schedules.values(), force=force)

    def reconcile(self, *, force: bool = False) -> Reconciled:
        return self.owner.wait_for(self.reconcile_async(force=force))
