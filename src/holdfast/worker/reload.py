"""Notices that source files have changed, for `--reload`.

By asking for their times twice a second: no dependency, and the few hundred files of a project in
development take a few milliseconds. Folders that hold no source of one's own are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

LOOK_EVERY = 0.5
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})


class SourceWatch:
    """The `.py` files below some folders, as they were at the last look."""

    def __init__(self, *roots: Path) -> None:
        self._roots = roots
        self._seen = self._look()

    def changed(self) -> list[Path]:
        """Which files are new, different or gone since the last call."""
        before, now = self._seen, self._look()
        self._seen = now
        return sorted(
            Path(path) for path in before.keys() | now.keys() if before.get(path) != now.get(path)
        )

    def _look(self) -> dict[str, tuple[int, int]]:
        return {path: stamp for root in self._roots for path, stamp in _sources(str(root))}


def watch_roots(app_file: Path | None) -> tuple[Path, ...]:
    """What to watch for this app: the working directory, and the app's own if it is elsewhere."""
    here = Path.cwd().resolve()
    if app_file is None or here in app_file.parents:
        return (here,)
    return (here, app_file.parent)


def _sources(root: str) -> Iterator[tuple[str, tuple[int, int]]]:
    try:
        entries = list(os.scandir(root))
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(".") and entry.name not in _SKIPPED:
                yield from _sources(entry.path)
        elif entry.name.endswith(".py"):
            try:
                found = entry.stat()
            except OSError:
                continue
            yield entry.path, (found.st_mtime_ns, found.st_size)
