"""`include` and `autodiscover`: tasks in other modules than the app, found when they are needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import ConfigError, Holdfast
from holdfast.testing import MemoryApp

TASKS = """
import app_for_finding
@app_for_finding.app.task
def {name}(n: int) -> int: return n
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with an app that knows nothing, and a package of tasks; forgotten afterwards."""
    text = "from holdfast.testing import MemoryApp\napp = MemoryApp()\n"
    (tmp_path / "app_for_finding.py").write_text(text)
    for name in ("tasks", "more", "eu/tasks", "tasks_of_old"):
        file = tmp_path / "orders_for_finding" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(TASKS.format(name=f"do_{Path(name).name}"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in list(sys.modules):
        if name.partition(".")[0].endswith("_for_finding"):
            del sys.modules[name]


@pytest.fixture
def app(folder: Path) -> MemoryApp:
    import app_for_finding  # type: ignore[import-not-found]

    found: MemoryApp = app_for_finding.app
    return found


def modules(app: Holdfast) -> set[str]:
    return {definition.handler.__module__ for definition in app.registry.values()}


def test_nothing_is_imported_before_it_is_needed(app: MemoryApp) -> None:
    app.settings = app.settings.override(include=["orders_for_finding.more"])
    app.autodiscover("orders_for_finding.eu")

    assert "orders_for_finding" not in sys.modules
    app.load_tasks()
    assert modules(app) == {"orders_for_finding.more", "orders_for_finding.eu.tasks"}


def test_a_package_gives_every_module_of_it(app: MemoryApp) -> None:
    app.autodiscover("orders_for_finding")

    app.load_tasks()

    assert len(modules(app)) == 4


def test_a_related_name_gives_the_modules_called_so(app: MemoryApp) -> None:
    app.autodiscover(["orders_for_finding", "app_for_finding"], "tasks")

    app.load_tasks()

    assert modules(app) == {"orders_for_finding.tasks", "orders_for_finding.eu.tasks"}


def test_a_search_that_finds_nothing_is_refused(app: MemoryApp) -> None:
    app.autodiscover("orders_for_finding", "billing")

    with pytest.raises(
        ConfigError, match=r"no module 'billing' in 'orders_for_finding'.*as a list"
    ):
        app.load_tasks()


def test_a_package_that_is_missing_is_named_with_who_asked(app: MemoryApp) -> None:
    app.autodiscover("orders_for_findin")

    with pytest.raises(ConfigError, match=r"autodiscover\('orders_for_findin'\): .*no module"):
        app.load_tasks()


def test_what_a_broken_module_raised_is_the_cause(app: MemoryApp, folder: Path) -> None:
    (folder / "orders_for_finding" / "eu" / "__init__.py").write_text("import no_such_library")
    app.autodiscover("orders_for_finding")

    with pytest.raises(ConfigError, match=r"importing 'orders_for_finding.eu' failed") as refused:
        app.load_tasks()

    assert isinstance(refused.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize("name", ["orders/tasks.py", "orders tasks", "orders..tasks"])
def test_what_cannot_be_imported_is_refused_where_it_is_written(name: str) -> None:
    with pytest.raises(ConfigError, match="expected modules as they are imported"):
        Holdfast(include=[name])


def test_a_submit_by_name_finds_the_task(app: MemoryApp) -> None:
    app.settings = app.settings.override(include=["orders_for_finding.more"])

    assert app.submit_by_name("orders_for_finding.more.do_more", {"n": 1}).created


async def test_a_worker_in_this_process_finds_its_tasks_or_refuses(app: MemoryApp) -> None:
    with pytest.raises(ConfigError, match="this worker knows no task"):
        await app.run_worker(burst=True)

    await app.run_worker(burst=True, include="orders_for_finding.more")

    assert modules(app) == {"orders_for_finding.more"}


def test_a_worker_beside_http_workers_may_know_no_task(app: MemoryApp) -> None:
    app.worker(open_queues="js")
