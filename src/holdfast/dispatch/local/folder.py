"""The folder of one SQLite file in which submitters and workers find each other: private, and the
same for both.

It is `/tmp/holdfast-<uid>/<hash of the real path>`. Not `$XDG_RUNTIME_DIR`: a worker started by a
service manager or cron has none, a person's shell has one, and the two would never meet; besides,
it vanishes when the person logs out. Not beside the database: not every file system that holds a
file can hold a socket, and the path may be too long for one (108 bytes).

`/tmp` is open to all, so nothing there is believed until it proves to be a directory of our own
user, no link, closed to others. If it is not, there are no wake-ups; workers poll.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

SOCKET_PATH_LIMIT = 100
"""Bytes; Linux takes 107, macOS 103."""


def folder_of(database: str | os.PathLike[str]) -> Path:
    """The directory for this database file; not made, not checked."""
    real = os.path.realpath(database)
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    shared = Path("/tmp")  # noqa: S108 - guarded by `is_ours`
    base = shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
    return base / f"holdfast-{os.geteuid()}" / name


def make(folder: Path) -> None:
    """Make the directory, private. OSError says why it cannot be used."""
    for directory in (folder.parent, folder):
        directory.mkdir(mode=0o700, exist_ok=True)
        if not is_ours(directory):
            raise PermissionError(
                f"{directory} is not a private directory of user {os.geteuid()} (mode 0700)"
            )


def is_ours(directory: Path) -> bool:
    """Whether only we can have put things there. False if it does not exist."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return private and found.st_uid == os.geteuid()
