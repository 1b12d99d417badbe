"""The small face, for those who want the minimum: functions on one default app.

    from holdfast import Config, init, submit_task, task

    init(Config(url="sqlite:///tasks.db"))

    @task
    def greet(name: str) -> str: ...

    handle = await submit_task(greet, name="Ann", priority="high")

Tasks may be defined before `init()`; submitting before it raises `NotInitialised`, unless
HOLDFAST_URL says where the store is. A worker runs them by `holdfast worker module`, where that
module has them or imports them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar, Unpack

from holdfast.app import Holdfast
from holdfast.asyncio_tools.bridge import BRIDGE
from holdfast.client import Client
from holdfast.core.duration import Duration
from holdfast.core.task import Priority, Task
from holdfast.definitions.define import Decorator
from holdfast.definitions.definition import Definition
from holdfast.definitions.handle import Handle, TaskRef
from holdfast.definitions.options import Tags
from holdfast.definitions.registry import Registry
from holdfast.definitions.submittable import WithOptions
from holdfast.errors import ConfigError, InvalidOption, NotInitialised
from holdfast.filters import FilterKeywords
from holdfast.settings import Settings, SettingsKeywords

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _NotGiven:
    def __repr__(self) -> str:
        return "…"


NOT_GIVEN: Any = _NotGiven()
"""What an option is by default: None would hide that a task's own argument of this name was meant.
"""


class Config:
    """Settings for `init()`, the same names as everywhere; checked right here."""

    def __init__(self, **settings: Unpack[SettingsKeywords]) -> None:
        self.given = settings
        self.settings = Settings.load(**settings)


class _DefaultHome:
    """The default app as its definitions see it: they may exist before the app does."""

    def __init__(self) -> None:
        self.registry = Registry()
        self._app: Holdfast | None = None
        self._lock = threading.Lock()

    def init(self, settings: SettingsKeywords) -> Holdfast:
        app = Holdfast(**settings)
        app.registry = self.registry
        before = self.swap_app(app)
        if before is not None:
            before.close()
        return app

    def swap_app(self, app: Holdfast | None) -> Holdfast | None:
        """Use another app from now on; returns the one that was in use. For tests."""
        with self._lock:
            before, self._app = self._app, app
            return before

    @property
    def app(self) -> Holdfast:
        if self._app is None:
            if not os.environ.get("HOLDFAST_URL"):
                raise NotInitialised(
                    "Holdfast does not know its store yet. Call holdfast.init() once at start-up "
                    '(for example init(Config(url="sqlite:///holdfast.db"))), or set HOLDFAST_URL. '
                    "Nothing was submitted."
                )
            return self.init({})
        return self._app

    @property
    def is_used(self) -> bool:
        """Whether there are tasks on it, or somebody called `init`."""
        return self._app is not None or len(self.registry) > 0

    @property
    def settings(self) -> Settings:
        return self.app.settings

    async def verbs(self) -> Client:
        return await self.app.verbs()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return BRIDGE.run(work)


HOME = _DefaultHome()


def init(config: Config | None = None, /, **settings: Unpack[SettingsKeywords]) -> Holdfast:
    """Say which store the default app uses, and return the app: `init(Config(url=…))` or
    `init(url=…)`. Called again, it is another app from then on.
    """
    if config is not None and settings:
        raise ConfigError(next(iter(settings)), "init: give a Config or keywords, not both")
    return HOME.init(settings if config is None else config.given)


async def run_worker(
    *, burst: bool = False, handle_signals: bool = False, **settings: Unpack[SettingsKeywords]
) -> None:
    """Work on the default app's tasks in this process until cancelled; with `burst` until nothing
    is left to do. With `handle_signals` SIGTERM or Ctrl-C begins the drain.
    """
    await HOME.app.run_worker(burst=burst, handle_signals=handle_signals, **settings)


task = Decorator(HOME)
"""Make a function a task of the default app; as `Holdfast.task`."""


async def submit_task(
    func: Definition[..., R, Any],
    /,
    *args: Any,
    delay_seconds: Duration | None = NOT_GIVEN,
    max_retries: int | None = NOT_GIVEN,
    timeout_seconds: Duration | None = NOT_GIVEN,
    priority: str | Priority | None = NOT_GIVEN,
    tags: Tags | None = NOT_GIVEN,
    **kwargs: Any,
) -> Handle[R]:
    """Submit a task: `await submit_task(greet, name="Ann", delay_seconds=5, priority="high")`.

    A type checker cannot see into the task's arguments here. It can in
    `greet.options(delay=5).submit_async(name="Ann")`, which has every option.
    """
    return await _prepared(
        func,
        delay_seconds=delay_seconds,
        max_retries=max_retries,
        timeout_seconds=timeout_seconds,
        priority=priority,
        tags=tags,
    ).submit_async(*args, **kwargs)


async def get_task(task_id: TaskRef) -> Task:
    """The whole picture of a task; `TaskNotFound` if there is none."""
    return await HOME.app.get_async(task_id)


async def list_tasks(*, limit: int = 100, **words: Unpack[FilterKeywords]) -> list[Task]:
    """The newest matching tasks: `await list_tasks(state="dead_letter")`. For more than `limit`,
    and page by page, use `app.list(…)`.
    """
    return list((await HOME.app.list_async(limit=limit, **words)).tasks)


def _sync(verb: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    @wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return BRIDGE.run(verb(*args, **kwargs))

    call.__doc__ = f"`{verb.__name__}` for sync code."
    return call


submit_task_sync = _sync(submit_task)
get_task_sync = _sync(get_task)
list_tasks_sync = _sync(list_tasks)


def _prepared(func: Definition[..., R, Any], **options: Any) -> WithOptions[..., R]:
    if not isinstance(func, Definition):
        called = getattr(func, "__qualname__", repr(func))
        raise InvalidOption(
            "func",
            f"{called} is not a task. Put @task above its definition. Nothing was submitted.",
        )
    _ = func.home.settings  # raises `NotInitialised` before anything else is looked at
    given = {name: value for name, value in options.items() if value is not NOT_GIVEN}
    for name in given:
        if name in func.parameters:
            raise InvalidOption(
                name,
                f"is an option of submit_task and a parameter of task {func.name!r}. Give the "
                f"parameter by its place, or use {func.__name__}.options(…).submit(…), which keeps "
                "them apart.",
            )
    return func.options(**{name.removesuffix("_seconds"): given[name] for name in given})
