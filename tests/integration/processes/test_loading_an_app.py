"""Finding the app a person named, and saying what is wrong with the name if it is not there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import ConfigError
from holdfast.worker.loading import load_app
from holdfast.worker.spec import absolute_spec, app_file

MODULE = """
class App:
    registry = {}
    settings = None
    def worker(self, **options): ...

jobs = app = App()
number = 7
"""
OTHER_APPS = {
    "one_for_loading.py": MODULE.replace("jobs = app", "jobs = queue"),
    "web_for_loading.py": MODULE.replace("jobs = app", "app = object(); jobs"),
    "two_for_loading.py": MODULE.replace("jobs = app = App()", "mail, bills = App(), App()"),
    "none_for_loading.py": "",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with a module, a package and a broken file; forgotten afterwards."""
    (tmp_path / "shop_for_loading.py").write_text(MODULE)
    (tmp_path / "pack_for_loading").mkdir()
    (tmp_path / "pack_for_loading" / "__init__.py").write_text("")
    (tmp_path / "pack_for_loading" / "tasks.py").write_text(MODULE)
    (tmp_path / "broken_for_loading.py").write_text("import no_such_library\n")
    for name, text in OTHER_APPS.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.partition(".")[0].endswith("_for_loading"):
            del sys.modules[name]


@pytest.mark.parametrize(
    "spec",
    [
        "shop_for_loading:app",
        "shop_for_loading.app",
        "shop_for_loading",
        "shop_for_loading.py",
        "shop_for_loading.py:app",
        "./shop_for_loading.py:jobs",
        "pack_for_loading.tasks:app",
        "pack_for_loading.tasks.app",
        "pack_for_loading.tasks",
        "pack_for_loading/tasks.py:app",
        "one_for_loading",
        "one_for_loading.py",
        "web_for_loading",
    ],
)
def test_an_app_is_found_as(spec: str, project: Path) -> None:
    assert type(load_app(spec)).__name__ == "App"


def test_a_file_is_known_by_its_stem_and_loaded_once(project: Path) -> None:
    first = load_app(f"{project}/shop_for_loading.py:app")
    second = load_app("shop_for_loading:app")

    assert first is second


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("shop_for_loadin:app", "Did you mean 'shop_for_loading:app'?"),
        ("shop_for_loading:ap", "Did you mean 'shop_for_loading:app'?"),
        ("shop_for_loading:xyz", "Did you mean 'shop_for_loading:jobs'?"),
        ("shop_for_loading:number", "expected a Holdfast app, got int 'number'."),
        ("shop_for_loading:App", "expected a Holdfast app, got type 'App'."),
        ("pack_for_loading.task:app", "no module 'pack_for_loading.task'"),
        ("shop_for_loding.py:app", "Did you mean"),
        ("broken_for_loading:app", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("broken_for_loading.py:app", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("two_for_loading", "Say which: 'two_for_loading:mail', 'two_for_loading:bills'."),
        ("none_for_loading", "has no 'app'"),
        (":app", "expected 'module:app'"),
        ("", "expected 'module:app'"),
    ],
)
def test_a_wrong_name_is_explained(spec: str, words: str, project: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_app(spec)

    assert words in str(caught.value)


def test_what_the_module_raised_is_kept_as_the_cause(project: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_app("broken_for_loading:app")

    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_file_is_named_absolutely_and_a_module_is_not(project: Path) -> None:
    assert absolute_spec("shop_for_loading.py:app") == f"{project}/shop_for_loading.py:app"
    assert absolute_spec("shop_for_loading:app") == "shop_for_loading:app"
    assert absolute_spec("shop_for_loading.py") == f"{project}/shop_for_loading.py"


def test_the_source_file_is_found_without_importing_it(project: Path) -> None:
    assert app_file("pack_for_loading.tasks:app") == project / "pack_for_loading" / "tasks.py"
    assert app_file("pack_for_loading:app") == project / "pack_for_loading" / "__init__.py"
    assert app_file("elsewhere:app") is None
    assert "pack_for_loading" not in sys.modules
