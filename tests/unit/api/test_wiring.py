"""From a URL to a store, and no further than needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.app import open_dispatcher, open_store
from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.dispatch.local.dispatcher import LocalDispatcher
from holdfast.dispatch.mongo.dispatcher import MongoDispatcher
from holdfast.dispatch.redis.dispatcher import RedisDispatcher
from holdfast.errors import ConfigError
from holdfast.settings import Settings
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing import FakeClock


def test_memory_and_sqlite_are_chosen_by_url(tmp_path: Path) -> None:
    assert isinstance(open_store("memory://"), MemoryStore)
    assert isinstance(open_store("sqlite:///tasks.db"), SQLiteStore)
    assert open_store("sqlite:///a%20b.db").url == f"sqlite:///{tmp_path / 'a b.db'}"
    assert open_store(f"sqlite:///{tmp_path}/x.db").url == f"sqlite:///{tmp_path}/x.db"


def test_a_clock_may_be_given(tmp_path: Path) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path}/x.db"):
        assert open_store(url, FakeClock()).url == url


def test_dispatchers_go_with_the_store(tmp_path: Path) -> None:
    chosen = open_dispatcher(Settings(url="memory://"))
    assert isinstance(chosen, InProcessDispatcher)
    chosen_local = open_dispatcher(Settings(url=f"sqlite:///{tmp_path}/x.db"))
    assert isinstance(chosen_local, LocalDispatcher)
    chosen_mongo = open_dispatcher(Settings(url="mongodb://host/db"))
    assert isinstance(chosen_mongo, MongoDispatcher)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("mongodb://u:secret@h/db?schema=a-b", "letters, digits and underscores, got 'a-b'"),
        ("mongodb://u:secret@h/a b", "expected mongodb://host/database"),
        ("mongodb:///db", "expected mongodb://host/database"),
        ("postgresql://u:secret@h/db?schema=a-b", "letters, digits and underscores, got 'a-b'"),
        ("postgresql://u:secret@h/db?pgbouncer=x", "expected pgbouncer=true or pgbouncer=false"),
        ("sqlit:///x.db", "Did you mean sqlite://"),
        ("memroy://", "Did you mean memory://"),
        ("mysql://h", "or mongodb://host/database, got mysql://"),
        ("sqlite://", "expected sqlite:///relative"),
        ("sqlite:///", "expected sqlite:///relative"),
        ("sqlite://host/x.db", "expected sqlite:///relative"),
        ("sqlite:///:memory:", "use memory://"),
        ("sqlite:///x.db?mode=ro", "expected sqlite:///relative"),
    ],
)
def test_other_urls_are_refused_with_what_was_expected(url: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_store(url)

    assert text in str(refused.value)
    assert "secret" not in str(refused.value)
    assert refused.value.setting == "url"


def test_redis_goes_before_the_stores_own_dispatcher() -> None:
    chosen = open_dispatcher(Settings(url="memory://", redis_url="redis://h"))
    assert isinstance(chosen, RedisDispatcher)


def test_a_wrong_redis_url_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match=r"redis_url: expected redis://"):
        open_dispatcher(Settings(url="memory://", redis_url="http://h"))


@pytest.mark.parametrize(
    ("url", "modules", "extra"),
    [
        ("postgresql://h/db", ["asyncpg"], "postgres"),
        ("mongodb://h/db", ["pymongo", "bson"], "mongo"),
    ],
)
def test_a_missing_driver_is_a_wrong_setting_that_names_the_extra(
    url: str, modules: list[str], extra: str
) -> None:
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({modules}))\n"
        "from holdfast.errors import ConfigError\n"
        "from holdfast.wiring import open_store, schema_script\n"
        "for wanted in (open_store, schema_script):\n"
        f"    try: wanted({url!r})\n"
        "    except ConfigError as refused: print(refused)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout.count(f"{modules[0]}: pip install 'holdfast[{extra}]'") == 2


def modules_after(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import holdfast",
        "import holdfast.settings",
        "import holdfast.wiring",
        "from holdfast import Retry, State, Settings",
        "import holdfast.testing.plugin",
        "import holdfast.worker.supervisor",
    ],
)
def test_light_parts_stay_light(statement: str) -> None:
    heavy = {"pydantic", "orjson", "structlog", "typer", "rich", "sqlite3"}

    assert modules_after(statement) & heavy == set()


def test_an_app_needs_no_command_line_and_no_store_before_its_first_use() -> None:
    statement = "from holdfast import Holdfast; app = Holdfast(); app.task(lambda: None)"

    heavy = {"typer", "rich", "sqlite3", "structlog", "holdfast.worker.worker"}
    assert modules_after(statement) & heavy == set()
