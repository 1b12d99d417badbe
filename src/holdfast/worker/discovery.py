"""Imports the modules that hold an app's tasks: what `include` names and `autodiscover` finds.

Not before somebody needs every task (a worker, a server, a submit by name): those modules import
the app, and while the app's own module is being imported they could not.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.definitions.registry import Registry
from holdfast.errors import ConfigError
from holdfast.settings import Settings
from holdfast.worker.loading import LoadedApp, import_module, load_app

INCLUDE = "include (a setting: keyword, HOLDFAST_INCLUDE or [tool.holdfast])"


@dataclass(frozen=True, slots=True)
class Autodiscovery:
    """One `autodiscover`: every module of these packages, or those of one name."""

    packages: Sequence[str]
    related_name: str | None = None

    def run(self) -> list[str]:
        """Import what there is; the names of the modules."""
        found = [name for package in self.packages for name in self._modules(package)]
        if not found and self.related_name:
            raise ConfigError(
                "autodiscover",
                f"{self}: there is no module {self.related_name!r} in "
                f"{', '.join(map(repr, self.packages))}. Give several packages as a list; the "
                "second argument is the name of their modules with tasks.",
            )
        return import_all(found, str(self))

    def __str__(self) -> str:
        more = f", {self.related_name!r}" if self.related_name else ""
        return f"autodiscover({', '.join(map(repr, self.packages))}{more})"

    def _modules(self, package: str) -> Iterator[str]:
        wanted = self.related_name
        for name in (package, *_below(package, str(self))):
            if wanted is None or wanted in name.removeprefix(package).split("."):
                yield name


def import_all(modules: Iterable[str], asked: str) -> list[str]:
    """Import these; `ConfigError` names one that is missing or broken, and who asked for it."""
    names = list(modules)
    for name in names:
        import_module(name, name, f"{asked}: ")
    return names


def load_tasks(include: Sequence[str], searches: Iterable[Autodiscovery]) -> tuple[str, ...]:
    """Import what both ways name, and say it all, for processes that must know the same."""
    found = import_all(include, INCLUDE)
    for search in searches:
        found += search.run()
    return tuple(dict.fromkeys(found))


def load_app_with_tasks(spec: str, include: Sequence[str] | None) -> LoadedApp:
    """The app that a command line names, and all its tasks, with those of its `--include`."""
    app = load_app(spec)
    import_all(include or (), "--include")
    app.load_tasks()
    return app


def refuse_without_tasks(registry: Registry, settings: Settings, spec: str | None) -> None:
    """Refuse to work for an app without a task, unless its tasks are those of HTTP workers."""
    if registry or settings.open_queues:
        return
    looked = [spec] if spec else []
    looked += settings.include
    what = f" Looked at: {', '.join(looked)}." if looked else ""
    if settings.include:
        what += (
            " What was included defined tasks of another app, or none. (A file that is run and "
            "imported too is two modules, with an app each: keep the app in a module of its own.)"
        )
    raise ConfigError(
        "include",
        f"this worker knows no task, so there is nothing that it could run.{what} Say where the "
        'tasks are: Holdfast(include=["orders.tasks"]), `holdfast worker … --include '
        'orders.tasks`, or app.autodiscover("orders").',
    )


def _below(package: str, asked: str) -> Iterator[str]:
    path = getattr(import_module(package, package, f"{asked}: "), "__path__", ())
    for found in pkgutil.iter_modules(path, f"{package}."):
        if found.name.endswith(".__main__"):  # a program: importing it would run it
            continue
        yield found.name
        if found.ispkg:
            yield from _below(found.name, asked)
