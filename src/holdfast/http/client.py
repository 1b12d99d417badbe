"""`HttpClient`: the verbs of the local client against a server, for sync and for async code.

    client = HttpClient("http://127.0.0.1:8420", token="hf_…")
    task = client.submit("shop.mail", {"to": "ann"}, priority="high")
    client.result(task.task_id, timeout="1m")

Each verb is there twice, `client.get(…)` and `await client.get_async(…)`, both made from the one
conversation in `verbs`.
"""

from __future__ import annotations

import time
from asyncio import sleep
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, Unpack

from holdfast.core.duration import Duration
from holdfast.core.task import Json
from holdfast.definitions.handle import TaskRef
from holdfast.definitions.readers import read_duration
from holdfast.errors import ConfigError
from holdfast.filters import read_id
from holdfast.http.schedules import ScheduleVerbs
from holdfast.http.talk import Pause, Talk
from holdfast.http.values import RemoteEvent
from holdfast.http.verbs import NamedTask, RemoteCall, SubmitWords, TokenVerbs, Verbs, call

if TYPE_CHECKING:
    from holdfast.http.wire import Wire

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class Drives(Protocol[V_co]):
    """Something that can hold conversations of these verbs."""

    @property
    def wire(self) -> Wire: ...

    @property
    def verbs(self) -> V_co: ...


def both(
    verb: Callable[Concatenate[V, P], Talk[T]],
) -> tuple[
    Callable[Concatenate[Drives[V], P], T],
    Callable[Concatenate[Drives[V], P], Coroutine[Any, Any, T]],
]:
    """The sync and the async face of a verb."""

    @wraps(verb)
    def ask(self: Drives[V], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return held(self.wire, verb(self.verbs, *args, **kwargs))

    @wraps(verb)
    async def ask_async(self: Drives[V], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await held_async(self.wire, verb(self.verbs, *args, **kwargs))

    ask_async.__name__ = f"{verb.__name__}_async"
    return ask, ask_async


def held(wire: Wire, talk: Talk[T]) -> T:
    """Hold a conversation to its end, waiting in this thread."""
    answer: Any = None
    while True:
        try:
            step = talk.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            answer = None
        else:
            answer = wire.send(step)


async def held_async(wire: Wire, talk: Talk[T]) -> T:
    """The same without holding up the event loop."""
    answer: Any = None
    while True:
        try:
            step = talk.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(step, Pause):
            await sleep(step.seconds)
            answer = None
        else:
            answer = await wire.send_async(step)


class ServerTokens:
    """The tokens of the server; takes an admin's token."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.verbs = TokenVerbs()

    create, create_async = both(TokenVerbs.create)
    list, list_async = both(TokenVerbs.list)
    revoke, revoke_async = both(TokenVerbs.revoke)


class ServerSchedules:
    """The schedules of the server: `client.schedules.create("report", "0 9 * * 1-5")`."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.verbs = ScheduleVerbs()

    create, create_async = both(ScheduleVerbs.create)
    get, get_async = both(ScheduleVerbs.get)
    list, list_async = both(ScheduleVerbs.list)
    update, update_async = both(ScheduleVerbs.update)
    pause, pause_async = both(ScheduleVerbs.pause)
    resume, resume_async = both(ScheduleVerbs.resume)
    skip, skip_async = both(ScheduleVerbs.skip)
    trigger, trigger_async = both(ScheduleVerbs.trigger)
    backfill, backfill_async = both(ScheduleVerbs.backfill)
    delete, delete_async = both(ScheduleVerbs.delete)
    runs, runs_async = both(ScheduleVerbs.runs)
    preview, preview_async = both(ScheduleVerbs.preview)
    try_rule, try_rule_async = both(ScheduleVerbs.try_rule)
    calendar, calendar_async = both(ScheduleVerbs.calendar)
    import_calendar, import_calendar_async = both(ScheduleVerbs.import_calendar)


class HttpClient:
    """Submits, finds and steers tasks through a server: the same verbs, words and errors as the
    local client. Use it as a context manager, sync or async, to close its connections.
    """

    def __init__(self, url: str, *, token: str, timeout: Duration = 30.0) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            url: where the server is, such as `http://127.0.0.1:8420`.
            token: `hf_…`, as `holdfast token create` printed it.
            timeout: the longest wait for one answer.
        """
        if not url.startswith(("http://", "https://")):
            raise ConfigError("url", f"url: expected http://… or https://…, got {url!r}")
        try:
            from holdfast.http.wire import Wire  # noqa: PLC0415 - needs the extra
        except ModuleNotFoundError as error:
            if error.name != "httpx":
                raise
            raise ConfigError(
                "url", "HttpClient needs httpx: pip install 'holdfast[http]'"
            ) from error
        self.wire = Wire(url, token, read_duration("timeout", timeout))
        self.verbs = Verbs()
        self.tokens = ServerTokens(self.wire)
        self.schedules = ServerSchedules(self.wire)

    submit, submit_async = both(Verbs.submit)
    submit_many, submit_many_async = both(Verbs.submit_many)
    get, get_async = both(Verbs.get)
    list, list_async = both(Verbs.list)
    get_by_key, get_by_key_async = both(Verbs.get_by_key)
    history, history_async = both(Verbs.history)
    children, children_async = both(Verbs.children)
    tree, tree_async = both(Verbs.tree)
    why, why_async = both(Verbs.why)
    cancel, cancel_async = both(Verbs.cancel)
    cancel_many, cancel_many_async = both(Verbs.cancel_many)
    retry, retry_async = both(Verbs.retry)
    replay, replay_async = both(Verbs.replay)
    discard, discard_async = both(Verbs.discard)
    emit, emit_async = both(Verbs.emit)
    stats, stats_async = both(Verbs.stats)
    usage, usage_async = both(Verbs.usage)
    queues, queues_async = both(Verbs.queues)
    pause, pause_async = both(Verbs.pause)
    resume, resume_async = both(Verbs.resume)
    limits, limits_async = both(Verbs.limits)
    limit, limit_async = both(Verbs.limit)
    set_limit, set_limit_async = both(Verbs.set_limit)
    unset_limit, unset_limit_async = both(Verbs.unset_limit)
    workers, workers_async = both(Verbs.workers)
    drain, drain_async = both(Verbs.drain)
    result, result_async = both(Verbs.result)

    def call(
        self,
        name: NamedTask,
        parameters: Mapping[str, Json] | None = None,
        /,
        **options: Unpack[SubmitWords],
    ) -> RemoteCall:
        """Check the options now, submit later: `client.submit_many([client.call(…), …])`."""
        return call(name, parameters, options)

    def events(self, task_id: TaskRef, *, after: str | None = None) -> Iterator[RemoteEvent]:
        """Follow a task until it has ended: log lines, attempts, progress, states. Comes back by
        itself when the connection breaks; `after` is the id of the last event already seen.
        """
        return self.wire.events(read_id(task_id), after)

    def events_async(
        self, task_id: TaskRef, *, after: str | None = None
    ) -> AsyncIterator[RemoteEvent]:
        return self.wire.events_async(read_id(task_id), after)

    def close(self) -> None:
        """Let go of the connections of sync calls. The next use opens others."""
        self.wire.close()

    async def close_async(self) -> None:
        """Let go of the connections of this event loop, and of those of sync calls."""
        await self.wire.close_async()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    def __repr__(self) -> str:
        return f"<HttpClient {self.wire.url}>"
