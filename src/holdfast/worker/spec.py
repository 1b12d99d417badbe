"""The name of an app: `module:app`, `module.app`, `path/to/file.py:app`, or only the module or
file. Read, not imported.

Kept apart from `loading`, because the supervisor needs it and must stay small.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import ConfigError


def split_spec(spec: str, is_module: Callable[[str], bool] | None = None) -> tuple[str, str | None]:
    """The module or file, and the name of the app in it, if one is given.

    `module.app` is read as the app `app` of `module`, unless all of it is a module.
    """
    place, colon, name = spec.rpartition(":")
    if colon and place and name:
        return place, name
    if not spec or colon:
        raise ConfigError("app", f"{spec!r}: expected 'module:app' or 'path/to/file.py:app'.")
    if is_file(spec):
        return spec, None
    module, dot, last = spec.rpartition(".")
    whole = not dot or (is_module or _is_here)(spec)
    return (spec, None) if whole else (module, last)


def is_file(place: str) -> bool:
    """Whether the first half of a spec means a file, not a module."""
    return place.endswith(".py") or os.sep in place


def absolute_spec(spec: str) -> str:
    """The same app, named so that it is found from any working directory, if it is a file."""
    place, name = split_spec(spec)
    if not is_file(place):
        return spec
    return f"{Path(place).resolve()}:{name}" if name else str(Path(place).resolve())


def app_file(spec: str) -> Path | None:
    """The app's source file, if it lies below the working directory or was named by its path."""
    place, _ = split_spec(spec)
    if is_file(place):
        return Path(place).resolve()
    found = Path(*place.split("."))
    for candidate in (found.with_suffix(".py"), found / "__init__.py"):
        if candidate.is_file():
            return candidate.resolve()
    return None


def _is_here(module: str) -> bool:
    found = Path(*module.split("."))
    return found.with_suffix(".py").is_file() or (found / "__init__.py").is_file()
