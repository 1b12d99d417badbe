"""The app: settings, definitions and a store, joined. What a user's module holds as `app`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack
from weakref import WeakSet

import orjson

from holdfast.app_connection import AppConnection
from holdfast.app_features import AppFeatures
from holdfast.asyncio_tools.bridge import at_exit
from holdfast.client import Client
from holdfast.core.task import Json, Task
from holdfast.definitions.call import Call, submit_calls, submit_calls_async
from holdfast.definitions.declaration import Declaration, ScheduleKeywords
from holdfast.definitions.define import Decorator
from holdfast.definitions.definition import Definition
from holdfast.definitions.gate_makers import read_queue
from holdfast.definitions.handle import Handle, TaskRef
from holdfast.definitions.limits import LimitKeywords
from holdfast.definitions.middleware import Middleware
from holdfast.definitions.options import SubmitKeywords
from holdfast.definitions.registry import Registry
from holdfast.errors import HoldfastError, InvalidOption
from holdfast.filters import read_id
from holdfast.settings import Names, Settings, SettingsKeywords
from holdfast.timers.wake_ups import WakeUps
from holdfast.tracing import trace_submits
from holdfast.wiring import open_dispatcher, open_store, open_timer

if TYPE_CHECKING:
    from holdfast.ports.store import Store
    from holdfast.worker.discovery import Autodiscovery
    from holdfast.worker.worker import Worker

__all__ = ["Holdfast", "open_dispatcher", "open_store"]

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D", bound=Definition[..., Any, Any])
M = TypeVar("M", bound=Middleware | type[Middleware])


class Holdfast(AppFeatures):
    """A task queue: `app = Holdfast()`, `@app.task`, `f.submit(…)`.

    Keywords are settings (see `holdfast.settings`). Nothing is opened before it is needed. Use it
    as a context manager, sync or async, to let go of the store at a known moment; otherwise that
    happens at exit. After a fork the child opens its own.
    """

    def __init__(self, **settings: Unpack[SettingsKeywords]) -> None:
        self.settings = Settings.load(**settings)
        self.registry = Registry()
        self.wake_ups = WakeUps(self._store, partial(open_timer, self.settings))
        if self.settings.timer_url is not None:
            from holdfast.timers.schedules import wake_schedules  # noqa: PLC0415 - few need it

            wake_schedules(self)
        """What timers call for (`timer_url`), in deployments where nobody is always there."""
        self.registry.check_channels = self._check_channels
        self._searches: list[Autodiscovery] = []
        self._connection: AppConnection | None = None
        self._lock = threading.Lock()
        _APPS.add(self)

    @property
    def task(self) -> Decorator:
        """Make a function a task: `@app.task` or `@app.task(queue="mail", …)`."""
        return Decorator(self)

    def middleware(self, one: M) -> M:
        """Surround submits, runs or the ends of attempts: `@app.middleware` on a class, which is
        made without arguments, or `app.middleware(Timing(registry))`. The first is the outermost.
        Workers take those that are there when they start.
        """
        self.registry.middleware.add(one)
        return one

    def queue(self, name: str, /, **limits: Unpack[LimitKeywords]) -> None:
        """Bound what runs of a queue, whoever submits and whatever the task:
        `app.queue("mail", concurrency=5, rate=Rate(100, per="1m"), fair_by="{tenant}")`. A key is a
        template over the arguments' JSON values and `{owner}`, or a function of one mapping of
        these. Said again, it replaces what was said before.
        """
        self.registry.set_queue(name, read_queue(name, limits))

    def schedule(
        self,
        rule: object,
        /,
        *,
        tz: str | None = None,
        name: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        **words: Unpack[ScheduleKeywords],
    ) -> Callable[[D], D]:
        """Run a task by a rule: `@app.schedule("0 9 * * 1-5", tz="Europe/Berlin")` above
        `@app.task`. Any worker fires it. Workers bring it into the store when they start; what is
        no longer declared goes, what people have edited stays.
        """

        from holdfast.schedules.reading import check_words, read_rule  # noqa: PLC0415 - as above

        read = read_rule(rule, tz)
        check_words(words)

        def declare(definition: D) -> D:
            if not isinstance(definition, Definition):
                raise InvalidOption(
                    "schedule", "expected a task: write @app.schedule(…) above @app.task"
                )
            called = definition.name if name is None else name
            if called in self.registry.schedules:
                raise InvalidOption(
                    "name", f"there is a schedule {called!r} in the code already; choose another"
                )
            self.registry.schedules[called] = Declaration(
                name=called,
                task=definition.name,
                rule=read,
                arguments=arguments or {},
                words=words,
                module=definition.handler.__module__,
            )
            return definition

        return declare

    def autodiscover(self, packages: Names, related_name: str | None = None) -> None:
        """Take the tasks of every module of a package, or of several: `app.autodiscover("orders")`.
        With a `related_name` only of modules called so, and of what lies below packages called so:
        `app.autodiscover(["orders", "billing"], "tasks")`. Nothing is imported before `load_tasks`.
        """
        from holdfast.worker.discovery import Autodiscovery  # noqa: PLC0415 - only where it is asked for

        names = self.settings.override(include=packages)
        self._searches.append(Autodiscovery(names.include, related_name))

    def load_tasks(self) -> tuple[str, ...]:
        """Import the modules that `include` names and `autodiscover` finds; their names. A worker
        and a server do so when they start.
        """
        return self._load_tasks(self.settings)

    @property
    def client(self) -> Client:
        """The async verbs. Its store is open inside `async with app`, or after `open()`."""
        return self._connected().client

    async def verbs(self) -> Client:
        connection = self._connected()
        if not connection.is_open:
            await connection.open()
        return connection.client

    def submit_many(
        self, calls: Sequence[Call[R]], *, connection: object | None = None
    ) -> list[Handle[R]]:
        """Submit many calls in one step, all or none: `app.submit_many([f.call(1), g.call(2)])`.

        With `connection` they are part of the transaction that is open on it.
        """
        return submit_calls(self, calls, connection)

    async def submit_many_async(
        self, calls: Sequence[Call[R]], *, connection: object | None = None
    ) -> list[Handle[R]]:
        return await submit_calls_async(self, calls, connection)

    def submit_by_name(
        self, name: str, arguments: Mapping[str, Json], /, **options: Unpack[SubmitKeywords]
    ) -> Handle[Any]:
        """Submit with JSON values by parameter name: what a command line or a REST body has."""
        return submit_calls(self, [self._named(name, arguments, options)])[0]

    async def submit_by_name_async(
        self, name: str, arguments: Mapping[str, Json], /, **options: Unpack[SubmitKeywords]
    ) -> Handle[Any]:
        return (await submit_calls_async(self, [self._named(name, arguments, options)]))[0]

    def handle(self, task_id: TaskRef) -> Handle[Any]:
        """A handle on a task whose id you kept. Its result comes as the task's definition has it,
        or as plain JSON where this process does not know the task.
        """
        return Handle(self, read_id(task_id), self._result_of)

    def worker(
        self,
        *,
        burst: bool = False,
        app_spec: str | None = None,
        **settings: Unpack[SettingsKeywords],
    ) -> Worker:
        """A worker of this app, to be run inside `async with app`; settings may differ from the
        app's. `app_spec` ("module:app") is how process tasks find the app; an app that is a
        module's global is found without it.
        """
        from holdfast.builtin.worker import BuiltInKeeper  # noqa: PLC0415
        from holdfast.worker.discovery import refuse_without_tasks  # noqa: PLC0415
        from holdfast.worker.worker import Worker  # noqa: PLC0415 - only workers need it

        chosen = self.settings.override(**settings)
        chosen = replace(chosen, include=self._load_tasks(chosen))
        spec = app_spec or _spec_of(self)
        refuse_without_tasks(self.registry, chosen, spec)
        client = self.client
        return Worker(
            client.store,
            client.dispatcher,
            self.registry,
            chosen,
            app_spec=spec,
            burst=burst,
            beside=BuiltInKeeper(self, is_server=False),
        )

    async def run_worker(
        self,
        *,
        burst: bool = False,
        app_spec: str | None = None,
        handle_signals: bool = False,
        **settings: Unpack[SettingsKeywords],
    ) -> None:
        """Work in this very process until cancelled; with `burst` until nothing is left to do.

        With `handle_signals` SIGTERM or Ctrl-C begins the drain, as with `holdfast worker`, and a
        second one ends it: this returns, and nothing is raised. Only in the main thread.
        """
        await self.verbs()
        worker = self.worker(burst=burst, app_spec=app_spec, **settings)
        if not handle_signals:
            await worker.run()
            return
        with on_signals(worker.stop):
            await worker.run()

    async def maintain(self) -> None:
        """Rescue the tasks of lost workers and prune old history until cancelled, as every worker
        does beside its work: for a process that runs none, such as a server.
        """
        from holdfast.schedules.declared import DeclarationKeeper  # noqa: PLC0415 - few need it
        from holdfast.worker.maintenance.forgetter import Forgetter  # noqa: PLC0415
        from holdfast.worker.maintenance.loop import maintain  # noqa: PLC0415

        client = await self.verbs()
        remote = client.remote
        try:
            declared = DeclarationKeeper(client.schedules)
            timers = () if self.settings.timer_url is None else (self.wake_ups,)
            forgetter = Forgetter(client.store, self.registry)
            more = (remote.timeouts, remote.breakers, forgetter, declared, *timers)
            await maintain(client.store, client.dispatcher, self.settings, more=more)
        finally:
            await remote.close()

    def migrate(self) -> Sequence[int]:
        """Bring the store's schema to this release's version; the versions applied."""
        return self.wait_for(self.migrate_async())

    async def migrate_async(self) -> Sequence[int]:
        # Not through an open connection: a store with an old schema refuses to open.
        store = open_store(self.settings.url)
        try:
            return await store.migrate()
        finally:
            await store.close()

    def open(self) -> Self:
        """Open the store now rather than at the first use."""
        self.wait_for(self.verbs())
        return self

    async def open_async(self) -> Self:
        await self.verbs()
        return self

    def close(self) -> None:
        """Let go of the store. The next use opens it again."""
        self.wait_for(self.close_async())

    async def close_async(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
        await self.wake_ups.close()
        if connection is not None:
            await connection.close()

    def swap_connection(self, connection: AppConnection | None) -> AppConnection | None:
        """Use another store from now on; returns the connection that was in use. For tests."""
        with self._lock:
            before, self._connection = self._connection, connection
            return before

    async def _check_channels(self, owner: str | None, channels: Sequence[str]) -> None:
        from holdfast.delivery.choosing import channels_for  # noqa: PLC0415 - others should not pay

        await channels_for(await self._store(), self.delivery, owner, channels)

    async def _store(self) -> Store:
        return (await self.verbs()).store

    def _connected(self) -> AppConnection:
        with self._lock:
            if self._connection is None:
                trace_submits(self.settings, self.registry.middleware)
                self._connection = AppConnection(
                    open_store(self.settings.url),
                    open_dispatcher(self.settings),
                    self.registry,
                    self.settings,
                )
            return self._connection

    def _named(
        self, name: str, arguments: Mapping[str, Json], options: SubmitKeywords
    ) -> Call[Any]:
        if name not in self.registry:
            self.load_tasks()
        return self.registry[name].options(**options).call_json(arguments)

    def _load_tasks(self, settings: Settings) -> tuple[str, ...]:
        if not settings.include and not self._searches:
            return ()
        from holdfast.worker.discovery import load_tasks  # noqa: PLC0415 - few need it

        return load_tasks(settings.include, self._searches)

    def _result_of(self, task: Task) -> Any:
        definition = self.registry.get(task.name)
        if definition is None:
            return orjson.loads(task.result or b"null")
        return definition.result_of(task)

    def _forget(self) -> None:
        """Begin anew in a forked child: a store must not be carried over, not even to be closed."""
        if self._connection is not None:
            _LEFT_BEHIND.append(self._connection)
        self._lock = threading.Lock()
        self._connection = None
        self.wake_ups.forget()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await self.open_async()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close_async()

    def __repr__(self) -> str:
        return f"<Holdfast {self.settings.url.partition('://')[0]}, {len(self.registry)} tasks>"


@contextmanager
def on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for every SIGTERM and SIGINT while this lasts."""
    loop, numbers = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    try:
        for number in numbers:
            loop.add_signal_handler(number, stop)
    except (ValueError, RuntimeError) as error:
        raise InvalidOption(
            "handle_signals", f"signals reach the main thread only: call it from there ({error})"
        ) from None
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _spec_of(app: Holdfast) -> str | None:
    """Where the app can be imported from: a module's global, or a script's."""
    for name, module in sys.modules.copy().items():
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if value is app:
                place = getattr(module, "__file__", None) if name == "__main__" else name
                return f"{place}:{attribute}" if place else None
    return None


_APPS: WeakSet[Holdfast] = WeakSet()
_LEFT_BEHIND: list[AppConnection] = []


def _close_all() -> None:
    for app in list(_APPS):
        if app._connection is not None and app._connection.is_open:
            with suppress(HoldfastError):
                app.close()


def _forget_all() -> None:
    for app in list(_APPS):
        app._forget()


at_exit(_close_all)
os.register_at_fork(after_in_child=_forget_all)
