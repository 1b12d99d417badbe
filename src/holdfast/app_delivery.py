"""Recipients and inboxes of an app: `app.recipients.put(…)`, `app.recipients.put_async(…)`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from holdfast.delivery.inbox import Inbox
from holdfast.delivery.recipients import Recipients
from holdfast.sync_facade import ClientOwner

if TYPE_CHECKING:
    from holdfast.delivery.setup import DeliverySetup

P = ParamSpec("P")
R = TypeVar("R")
B = TypeVar("B")


class _Verbs(Generic[B]):
    """Verbs on something that needs an open store."""

    def __init__(self, owner: ClientOwner, delivery: DeliverySetup) -> None:
        self.owner = owner
        self._delivery = delivery

    async def book(self) -> B:
        raise NotImplementedError


def _both(
    verb: Callable[Concatenate[B, P], Coroutine[Any, Any, R]],
) -> tuple[
    Callable[Concatenate[_Verbs[B], P], R],
    Callable[Concatenate[_Verbs[B], P], Coroutine[Any, Any, R]],
]:
    """The sync and the async face of a verb."""

    @wraps(verb)
    async def call_async(self: _Verbs[B], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await verb(await self.book(), *args, **kwargs)

    @wraps(verb)
    def call(self: _Verbs[B], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.owner.wait_for(call_async(self, *args, **kwargs))

    call_async.__name__ = f"{verb.__name__}_async"
    return call, call_async


class AppRecipients(_Verbs[Recipients]):
    """Where each owner's deliveries go."""

    async def book(self) -> Recipients:
        client = await self.owner.verbs()
        hosts = client.settings.callback_hosts
        return Recipients(client.store, tuple(self._delivery.channels), hosts)

    get, get_async = _both(Recipients.get)
    put, put_async = _both(Recipients.put)
    patch, patch_async = _both(Recipients.patch)
    delete, delete_async = _both(Recipients.delete)
    unsubscribe, unsubscribe_async = _both(Recipients.unsubscribe)


class AppInbox(_Verbs[Inbox]):
    """What was delivered to be read in the product."""

    async def book(self) -> Inbox:
        client = await self.owner.verbs()
        return Inbox(client.store, client.settings.inbox_retention)

    list, list_async = _both(Inbox.list)
    get, get_async = _both(Inbox.get)
    since, since_async = _both(Inbox.since)
    mark_read, mark_read_async = _both(Inbox.mark_read)
    delete, delete_async = _both(Inbox.delete)
