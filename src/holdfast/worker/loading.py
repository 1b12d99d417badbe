"""Finds the app that a person named: `module:app`, `module.app` or `path/to/file.py:app`.

Of a module or file alone it is `app`, or the only app there, or the default app of `@task`.

A file is imported under its own stem (`jobs/mail.py` as `mail`), as if its directory were on the
path: that is the module name its tasks are known by, in whatever process imports it. Errors say
which half of the name is wrong, and what was probably meant.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.definitions.registry import Registry
from holdfast.errors import ConfigError
from holdfast.settings import Settings
from holdfast.worker.spec import is_file, split_spec

if TYPE_CHECKING:
    from holdfast.worker.worker import Worker

DEFAULT_NAME = "app"


class LoadedApp(Protocol):
    """What a worker needs of an app. `holdfast.app.Holdfast` is one."""

    @property
    def registry(self) -> Registry: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def client(self) -> Any: ...

    def load_tasks(self) -> Any: ...

    async def open_async(self) -> Any: ...

    async def close_async(self) -> None: ...

    def worker(self, **options: Any) -> Worker: ...


def load_app(spec: str) -> LoadedApp:
    """Import the app. `ConfigError` names what is wrong with the name; what the module itself
    raises while it is imported comes through as the cause.
    """
    place, name = split_spec(spec, _exists)
    module = _load_file(place, spec) if is_file(place) else _load_module(place, spec)
    if name is None:
        name = _only_app(spec, place, module)
        if name is None and (default := _default_app()) is not None:
            return default
        name = name or DEFAULT_NAME
    target: Any = module
    for part in name.split("."):
        if not hasattr(target, part):
            raise _no_attribute(spec, place, name, module)
        target = getattr(target, part)
    if not _is_app(target):
        raise _error(
            f"{spec!r}: expected a Holdfast app, got {type(target).__name__} {name!r}."
            + _did_you_mean_app(place, module)
        )
    app: LoadedApp = target
    return app


def import_module(name: str, written: str, where: str = "") -> ModuleType:
    """Import a module; `ConfigError` says what is wrong with what was `written`, and where."""
    asked = f"{where}{written!r}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(missing + "."):
            raise _broken(asked, name, error) from error
        parent, _, last = missing.rpartition(".")
        near = difflib.get_close_matches(last, _importable(parent), n=1)
        meant = f"{parent}.{near[0]}" if parent and near else "".join(near)
        hint = f" Did you mean {written.replace(missing, meant, 1)!r}?" if near else ""
        raise _error(
            f"{asked}: there is no module {missing!r} here.{hint} "
            f"Looked in {Path.cwd()} and the installed packages."
        ) from None
    except Exception as error:
        raise _broken(asked, name, error) from error


def _only_app(spec: str, place: str, module: ModuleType) -> str | None:
    """The name of the app that is meant where only its module was named, if there is one."""
    apps = {id(value): name for name, value in vars(module).items() if _is_app(value)}
    if _is_app(getattr(module, DEFAULT_NAME, None)):
        return DEFAULT_NAME
    if len(apps) > 1:
        choices = ", ".join(f"'{place}:{name}'" for name in apps.values())
        raise _error(f"{spec!r}: there are several apps in {place!r}. Say which: {choices}.")
    return next(iter(apps.values()), None)


def _default_app() -> LoadedApp | None:
    """The app of the functional interface, if the code that was imported uses it. By its name: a
    worker must not import what stands above it, and what nobody has imported nobody uses.
    """
    home = _home()
    app: LoadedApp | None = None if home is None else home.app
    return app


def _home() -> Any:
    home = getattr(sys.modules.get("holdfast.functional"), "HOME", None)
    return home if home is not None and home.is_used else None


def _exists(module: str) -> bool:
    _see_working_directory()
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _see_working_directory() -> None:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def _load_module(place: str, spec: str) -> ModuleType:
    _see_working_directory()
    return import_module(place, spec)


def _load_file(place: str, spec: str) -> ModuleType:
    path = Path(place).resolve()
    if not path.is_file():
        near = difflib.get_close_matches(path.name, _files_beside(path), n=1)
        hint = f" Did you mean {path.with_name(near[0])}?" if near else ""
        raise _error(f"{spec!r}: there is no file {path}.{hint}")
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    # As Python does for a script: its neighbours can be imported.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    found = importlib.util.spec_from_file_location(path.stem, path)
    if found is None or found.loader is None:
        raise _error(f"{spec!r}: {path} is not a Python file.")
    module = importlib.util.module_from_spec(found)
    sys.modules[path.stem] = module
    try:
        found.loader.exec_module(module)
    except Exception as error:
        del sys.modules[path.stem]
        raise _broken(repr(spec), place, error) from error
    return module


def _importable(package: str) -> list[str]:
    if package in sys.modules:
        path = getattr(sys.modules[package], "__path__", ())
        return [found.name for found in pkgutil.iter_modules(path)]
    here = Path.cwd()
    files = [entry.stem for entry in here.glob("*.py")]
    return files + [entry.parent.name for entry in here.glob("*/__init__.py")]


def _files_beside(path: Path) -> list[str]:
    return [entry.name for entry in path.parent.glob("*.py")] if path.parent.is_dir() else []


def _no_attribute(spec: str, place: str, name: str, module: ModuleType) -> ConfigError:
    near = difflib.get_close_matches(name, [each for each in dir(module) if each[0] != "_"], n=1)
    hint = f" Did you mean '{place}:{near[0]}'?" if near else _did_you_mean_app(place, module)
    return _error(f"{spec!r}: module {place!r} was imported, but has no {name!r}.{hint}")


def _did_you_mean_app(place: str, module: ModuleType) -> str:
    apps = [name for name, value in vars(module).items() if _is_app(value)]
    if apps:
        return f" Did you mean '{place}:{apps[0]}'?"
    return f" Name it without an app, {place!r}, to work on what @task made." if _home() else ""


def _is_app(value: object) -> bool:
    return not isinstance(value, type) and hasattr(value, "registry") and hasattr(value, "worker")


def _broken(asked: str, place: str, error: Exception) -> ConfigError:
    return _error(f"{asked}: importing {place!r} failed with {type(error).__name__}: {error}")


def _error(message: str) -> ConfigError:
    return ConfigError("app", message)
