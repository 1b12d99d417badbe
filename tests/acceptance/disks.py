"""Disks that are full or read-only, made on purpose.

A small disk is a tmpfs, a read-only one a bind mount; both need the right to mount. Where that is
missing (no root, no user namespaces) the tests that need them are skipped and say so.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A disk of a few MiB, with ballast to fill it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Leave not one free page."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (65_536, 4_096):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path, size: str = "8m") -> Iterator[SmallDisk]:
    folder.mkdir()
    with _mounted("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)):
        yield SmallDisk(folder)


class ReadOnlyDisk:
    """A folder seen through a mount that forbids writing until told otherwise."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def allow_writing(self) -> None:
        subprocess.run(["mount", "-o", "remount,bind,rw", self.folder], check=True)


@contextmanager
def read_only_disk(folder: Path, of: Path) -> Iterator[ReadOnlyDisk]:
    folder.mkdir()
    with _mounted("--bind", str(of), str(folder)):
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield ReadOnlyDisk(folder)


@contextmanager
def _mounted(*arguments: str) -> Iterator[None]:
    try:
        subprocess.run(["mount", *arguments], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount file systems (root)")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", arguments[-1]], check=False)
