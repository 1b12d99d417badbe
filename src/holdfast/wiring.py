"""Chooses adapters by URL: the only place that knows which stores and dispatchers there are.

Light on purpose, each adapter imported when it is chosen: the heartbeat process of a worker comes
here for a store and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from holdfast.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.ports.clock import Clock
    from holdfast.ports.dispatcher import Dispatcher
    from holdfast.ports.mirror import Documents
    from holdfast.ports.store import Store
    from holdfast.ports.timer import Timer
    from holdfast.settings import Settings
    from holdfast.stores.mongo.watching import Watching

_POSTGRES = ("postgresql", "postgres")
_MONGO = ("mongodb", "mongodb+srv")
_SCHEMES = ("memory", "sqlite", *_POSTGRES, *_MONGO)
_EXTRAS = {
    "asyncpg": ("postgresql", "postgres"),
    "pymongo": ("mongodb", "mongo"),
    "google": ("gcloud", "gcloud"),
    "grpc": ("gcloud", "gcloud"),
}
"""Drivers that are not always installed: whose URLs need one, and which extra brings it."""


def open_store(url: str, clock: Clock | None = None) -> Store:
    """The store at this URL, not yet opened: `memory://`, `sqlite:///tasks.db` (relative to the
    working directory), `sqlite:////var/lib/tasks.db`, `postgresql://user@host/database` or
    `mongodb://user@host/database`.

    `clock` replaces the host's, for tests.
    """
    if _scheme(url) == "memory":
        from holdfast.stores.memory.store import MemoryStore  # noqa: PLC0415

        return MemoryStore(clock=clock)
    if _scheme(url) in _POSTGRES:
        return _postgres_store(url, clock)
    if _scheme(url) in _MONGO:
        return _mongo_store(url, clock)
    from holdfast.stores.sqlite.store import SQLiteStore  # noqa: PLC0415

    return SQLiteStore(_path(url), clock=clock)


def open_dispatcher(settings: Settings) -> Dispatcher:
    """Who wakes the workers of the store at `settings.url`: through Redis, if there is one."""
    own = _own_dispatcher(settings.url)
    if settings.redis_url is None:
        return own
    from holdfast.dispatch.redis.dispatcher import RedisDispatcher  # noqa: PLC0415

    name = _name_of_store(settings.url)
    return RedisDispatcher(settings.redis_url, store=name, fallback=own)


def open_timer(settings: Settings) -> Timer | None:
    """Who calls the server at a given time, if `timer_url` names somebody."""
    if settings.timer_url is None:
        return None
    from holdfast.timers.address import parse_timer_url  # noqa: PLC0415

    address = parse_timer_url(settings.timer_url)
    if address.oidc is None and not settings.timer_secrets:
        raise ConfigError(
            "timer_secret",
            "timer_secret: expected a secret that timers are signed with, or an account in "
            "`timer_url` (&oidc=…), got neither: anybody could call in their name.",
        )
    with _naming_the_extra("timer_url"):
        from holdfast.timers.cloud_tasks import CloudTasksTimer  # noqa: PLC0415
    return CloudTasksTimer(address, settings.timer_secrets)


def open_mirror(settings: Settings) -> Documents | None:
    """Where schedules are mirrored to, if `firestore_url` says so."""
    if settings.firestore_url is None:
        return None
    from holdfast.mirror.address import parse_firestore_url  # noqa: PLC0415

    address = parse_firestore_url(settings.firestore_url)
    with _naming_the_extra("firestore_url", ("firestore", "firestore")):
        from holdfast.mirror.firestore import FirestoreDocuments  # noqa: PLC0415
    return FirestoreDocuments(address)


def _own_dispatcher(url: str) -> Dispatcher:
    """The store's own."""
    if _scheme(url) == "memory":
        from holdfast.dispatch.in_process import InProcessDispatcher  # noqa: PLC0415

        return InProcessDispatcher()
    if _scheme(url) in _POSTGRES:
        return _postgres_dispatcher(url)
    if _scheme(url) in _MONGO:
        return _mongo_dispatcher(url)
    from holdfast.dispatch.local.dispatcher import LocalDispatcher  # noqa: PLC0415

    return LocalDispatcher(_path(url))


def _name_of_store(url: str) -> Callable[[], Awaitable[str]]:
    """How to learn what this store is called among others."""
    from holdfast.dispatch import store_name  # noqa: PLC0415

    if _scheme(url) == "memory":
        return store_name.of_this_process
    if _scheme(url) in _POSTGRES:
        from holdfast.stores.postgres.address import parse  # noqa: PLC0415

        address = parse(url)
        return partial(store_name.of_postgres, address.dsn, address.schema)
    if _scheme(url) in _MONGO:
        return partial(store_name.of_mongo, url)
    return partial(store_name.of_file, _path(url))


def schema_script(url: str) -> tuple[int, str]:
    """The schema version that this release expects of the store at this URL, and the SQL (for
    MongoDB: the lines of `mongosh`) that makes it from nothing.
    """
    if _scheme(url) == "memory":
        return 1, ""
    if _scheme(url) in _POSTGRES:
        return _postgres_schema(url)
    if _scheme(url) in _MONGO:
        return _mongo_schema(url)
    from holdfast.stores.sqlite.schema import expected_version, migrations  # noqa: PLC0415

    return expected_version(), "\n".join(sql for _, sql in sorted(migrations().items()))


def raw_drain_rate(url: str, tasks: int) -> float | None:
    """Tasks a second if the store did a drain's row changes alone, on an empty store made for it.

    None for a store that has no such limit to measure.
    """
    if _scheme(url) in ("memory", *_MONGO):
        return None
    if _scheme(url) in _POSTGRES:
        with _naming_the_extra():
            from holdfast.stores.postgres import limit  # noqa: PLC0415
        return limit.drain_rate(url, tasks)
    from holdfast.stores.sqlite.limit import drain_rate  # noqa: PLC0415

    return drain_rate(_path(url), tasks)


@contextmanager
def scratch_store(url: str) -> Iterator[str]:
    """The URL of an empty store in the same database server, gone afterwards. Not for SQLite, whose
    scratch stores are files.
    """
    with _naming_the_extra(), _scratch_schema(url) as fresh:
        yield fresh


def is_on_a_server(url: str) -> bool:
    """Whether `scratch_store` can make another store where this one is."""
    return _scheme(url) in (*_POSTGRES, *_MONGO)


def _scratch_schema(url: str) -> AbstractContextManager[str]:
    if _scheme(url) in _MONGO:
        from holdfast.stores.mongo.scratch import scratch_collections  # noqa: PLC0415

        return scratch_collections(url)
    from holdfast.stores.postgres.limit import scratch_schema  # noqa: PLC0415

    return scratch_schema(url)


def _postgres_store(url: str, clock: Clock | None) -> Store:
    with _naming_the_extra():
        from holdfast.stores.postgres.store import PostgresStore  # noqa: PLC0415
    return PostgresStore(url, clock=clock)


def _postgres_dispatcher(url: str) -> Dispatcher:
    from holdfast.dispatch.postgres.dispatcher import PostgresDispatcher  # noqa: PLC0415
    from holdfast.stores.postgres.address import parse  # noqa: PLC0415

    address = parse(url)
    return PostgresDispatcher(address.dsn, schema=address.schema)


def _postgres_schema(url: str) -> tuple[int, str]:
    with _naming_the_extra():
        from holdfast.stores.postgres import address, queries, schema  # noqa: PLC0415
    sql = queries.queries(address.parse(url).schema)
    return schema.expected_version(sql), schema.script(sql)


def _mongo_store(url: str, clock: Clock | None) -> Store:
    with _naming_the_extra():
        from holdfast.stores.mongo.store import MongoStore  # noqa: PLC0415
    return MongoStore(url, clock=clock)


def _mongo_dispatcher(url: str) -> Dispatcher:
    from holdfast.dispatch.mongo.dispatcher import MongoDispatcher  # noqa: PLC0415

    def watching() -> Watching:
        from holdfast.stores.mongo.watching import Watching  # noqa: PLC0415

        return Watching(url)

    return MongoDispatcher(watching)


def _mongo_schema(url: str) -> tuple[int, str]:
    with _naming_the_extra():
        from holdfast.stores.mongo import address, schema  # noqa: PLC0415
    return schema.VERSION, schema.script(address.parse(url).schema)


@contextmanager
def _naming_the_extra(setting: str = "url", needs: tuple[str, str] | None = None) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        driver = (error.name or "").partition(".")[0]
        if driver not in _EXTRAS:
            raise
        scheme, extra = needs or _EXTRAS[driver]
        raise ConfigError(
            setting,
            f"{setting}: {scheme}:// needs the driver {driver}: pip install 'holdfast[{extra}]'",
        ) from error


def _scheme(url: str) -> str:
    scheme = url.partition("://")[0]
    if scheme in _SCHEMES:
        return scheme
    expected = (
        "url: expected memory://, sqlite:///path, postgresql://host/database "
        "or mongodb://host/database"
    )
    close = get_close_matches(scheme.lower(), _SCHEMES, n=1)
    hint = f" Did you mean {close[0]}://?" if close else ""
    raise ConfigError("url", f"{expected}, got {scheme}://….{hint}")


def _path(url: str) -> Path:
    host, slash, path = url.partition("://")[2].partition("/")
    if host or not slash or not path or path == ":memory:" or "?" in path:
        raise ConfigError(
            "url",
            f"url: expected sqlite:///relative/path.db or sqlite:////absolute/path.db, got {url!r}."
            " For a store in memory use memory://.",
        )
    return Path(unquote(path)).absolute()
