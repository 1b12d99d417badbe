"""Whom a test server runs as. PostgreSQL refuses to run as root, and so do we.

As root everything a server needs is given to `nobody`: a folder that this account can reach, and a
copy of the programs in it. No user is added, and no folder outside it changes its mode.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import tempfile
from pathlib import Path

UNPRIVILEGED = "nobody"


class ServerError(Exception):
    """A test server could not be had, started or ended. Says what to do."""


def account() -> pwd.struct_passwd | None:
    """The account to drop to; None where we are no root and stay who we are."""
    return pwd.getpwnam(UNPRIVILEGED) if os.geteuid() == 0 else None


def home_for_server(directory: Path | None) -> Path:
    """A folder that the server's account can reach and owns.

    pytest's `tmp_path` is closed to all but its owner. As root, a server that was asked to live
    there lives in a folder of its own under the system's temporary one instead.
    """
    if directory is None or (account() and not is_reachable(directory)):
        directory = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        return directory  # a server lives in it already
    hand_over(directory)
    return directory


def is_reachable(directory: Path) -> bool:
    """Whether everyone may walk down to this folder; it need not exist itself."""
    return all(
        parent.stat().st_mode & stat.S_IXOTH
        for parent in directory.absolute().parents
        if parent.exists()
    )


def hand_over(tree: Path) -> None:
    """Give a folder and all in it to the server's account."""
    user = account()
    if user is None:
        return
    for folder, _, files in os.walk(tree):
        os.chown(folder, user.pw_uid, user.pw_gid)
        for file in files:
            os.chown(Path(folder, file), user.pw_uid, user.pw_gid, follow_symlinks=False)


def copy_tree(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)
