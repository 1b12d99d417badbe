"""The client's verbs on an app, each twice: `app.get(…)` for sync code, `await app.get_async(…)`.

Both are made from the one async verb of `Client`, its signature, types and docstring included.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from holdfast.asyncio_tools.bridge import BRIDGE
from holdfast.client import Client

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Verb = Callable[Concatenate[Client, P], Coroutine[Any, Any, R]]


class ClientOwner:
    """Something that can give an open client."""

    async def verbs(self) -> Client:
        """The client, with its store open."""
        raise NotImplementedError

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work from sync code, whatever thread or event loop this is."""
        return BRIDGE.run(work)


def both(
    verb: Verb[P, R],
) -> tuple[
    Callable[Concatenate[ClientOwner, P], R],
    Callable[Concatenate[ClientOwner, P], Coroutine[Any, Any, R]],
]:
    """The sync and the async face of a verb."""

    @wraps(verb)
    async def call_async(self: ClientOwner, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await verb(await self.verbs(), *args, **kwargs)

    @wraps(verb)
    def call(self: ClientOwner, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.wait_for(call_async(self, *args, **kwargs))

    call_async.__name__ = f"{verb.__name__}_async"
    return call, call_async


class SyncFacade(ClientOwner):
    """Every verb of the client, for sync and for async code."""

    get, get_async = both(Client.get)
    get_by_key, get_by_key_async = both(Client.get_by_key)
    list, list_async = both(Client.list)
    count, count_async = both(Client.count)
    history, history_async = both(Client.history)
    children, children_async = both(Client.children)
    tree, tree_async = both(Client.tree)
    why, why_async = both(Client.why)
    cancel, cancel_async = both(Client.cancel)
    cancel_many, cancel_many_async = both(Client.cancel_many)
    retry, retry_async = both(Client.retry)
    replay, replay_async = both(Client.replay)
    discard, discard_async = both(Client.discard)
    stats, stats_async = both(Client.stats)
    workers, workers_async = both(Client.workers)
    ask_to_drain, ask_to_drain_async = both(Client.ask_to_drain)
    pause, pause_async = both(Client.pause)
    resume, resume_async = both(Client.resume)
    limits, limits_async = both(Client.limits)
    limit, limit_async = both(Client.limit)
    set_limit, set_limit_async = both(Client.set_limit)
    unset_limit, unset_limit_async = both(Client.unset_limit)
    emit, emit_async = both(Client.emit)
    usage, usage_async = both(Client.usage)
    prune, prune_async = both(Client.prune)
    doctor, doctor_async = both(Client.doctor)
