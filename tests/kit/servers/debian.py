"""Programs that only Debian packages hold: fetched without root, installed nowhere.

    python -m tests.kit.servers.debian        # what `scripts/setup test` does

apt is asked to keep its lists in a temporary folder of ours, so any user may; it checks signatures
as always. The packages are unpacked below the environment (`.venv/debian/…`) and used from there.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.servers.account import ServerError

PACKAGES = ("libfaketime", "pgbouncer", "prometheus")
WHOLE = {"chromium": ("chromium", "fonts-dejavu-core")}
"""Programs that come with everything they depend on and that is not installed here; with fonts,
which nothing depends on.
"""
SHARED = re.compile(r"\blib(?:event|c-?ares)[\w.+-]*")
"""Libraries that a bare system lacks and a package of ours needs; the others are always there."""


def package(name: str) -> Path:
    """The folder with the unpacked package, fetched on first use."""
    folder = Path(sys.prefix, "debian", name)
    if not folder.exists():
        with _locked(folder.parent):
            if not folder.exists():
                _fetch(name, folder)
    return folder


def _fetch(name: str, folder: Path) -> None:
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise ServerError(f"{name} comes as a Debian package, and there is no {program} here.")
    # Beside its place: it is moved there when it is complete.
    with tempfile.TemporaryDirectory(prefix="apt-", dir=folder.parent) as place:
        half = Path(place, "tree")
        _unpack(_download(Path(place), name), half)
        half.rename(folder)


def _download(place: Path, name: str) -> list[Path]:
    """The package's file and those of the libraries it brings along."""
    apt = _private_apt(place)
    # One unreachable source of several is no reason to give up: the download will tell.
    subprocess.run([*apt, "update"], cwd=place, capture_output=True, check=False)
    if name in WHOLE:
        words = ("--yes", "--download-only", "--no-install-recommends")
        _run([*apt, "install", *words, *WHOLE[name]], place, name)
        return list(place.glob("cache/archives/*.deb"))
    _run([*apt, "download", name], place, name)
    (file,) = place.glob("*.deb")
    depends = _run(["dpkg-deb", "--field", str(file), "Depends"], place, name)
    if libraries := SHARED.findall(depends):
        _run([*apt, "download", *libraries], place, name)
    return list(place.glob("*.deb"))


def _private_apt(place: Path) -> list[str]:
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (place / folder).mkdir(parents=True)
    settings = {
        "Dir::State": place / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": place / "cache",
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",  # root's apt could not write into our folder otherwise
        "Acquire::Languages": "none",
    }
    return ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]


def _unpack(files: list[Path], folder: Path) -> None:
    for file in files:
        _run(["dpkg-deb", "--extract", str(file), str(folder)], file.parent, file.name)
    for unread in ("doc", "icons", "locale", "man"):
        shutil.rmtree(folder / "usr/share" / unread, ignore_errors=True)


def _run(command: list[str], place: Path, name: str) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f"could not get the Debian package of {name}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    for each in PACKAGES:
        try:
            package(each)
        except ServerError as problem:
            sys.exit(str(problem))
