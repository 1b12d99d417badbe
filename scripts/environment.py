"""Make the environment and keep it up to date. Standard library only; `scripts/setup` starts it.

It is `.venv`; or, if `PYTHON` asks for a Python, one of that version beside it: `.venv-3.13`.

Debian splits pip off Python: a bare `python3` can make an environment, but not fill it. So pip
comes from the first of these that works, and nothing outside the clone is touched before the last:

1. `ensurepip`, where the distribution left it in;
2. the system's own pip, told to work for our environment;
3. the wheel of pip from the package index, checked against the index's SHA-256;
4. `apt-get install python3-venv`, if we are root anyway.

Otherwise one sentence says what to type.

A stamp holds a hash of everything the installation depends on. If it matches, nothing happens, and
that takes milliseconds. A lock on the folder makes parallel `make` targets wait for each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = f".venv-{sys.version_info.major}.{sys.version_info.minor}"
VENV = ROOT / (OWN if os.environ.get("PYTHON") else ".venv")
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "requirements-test.txt"
PURPOSES = {
    "run": ["-e", f"{ROOT}[server]"],
    "test": ["-e", str(ROOT), "-r", str(REQUIREMENTS)],
}
INDEX = "https://pypi.org/simple"
LINK = re.compile(
    r'href="(?P<url>[^"#]*/pip-(?P<version>[0-9.]+)-py3-none-any\.whl)#sha256=(?P<sha256>[0-9a-f]{64})'
)
IMPATIENCE = 20  # seconds before an unreachable package index is given up


class Unable(Exception):
    """This way does not work here; the next one may."""


def main(arguments: list[str]) -> int:
    purpose = arguments[0] if arguments else "test"
    if arguments == ["where"]:
        sys.stdout.write(f"{VENV.name}\n")
        return 0
    if purpose not in PURPOSES or len(arguments) > 1:
        say(f"usage: scripts/setup [{' | '.join(PURPOSES)} | where]")
        return 2
    with locked(ROOT):
        if is_current(purpose):
            return 0
        try:
            prepare(purpose)
        except Unable as problem:
            say(str(problem))
            return 1
    return 0


def prepare(purpose: str) -> None:
    if not works(PYTHON):
        say(f"making {VENV.name} with Python {sys.version.split()[0]}")
        make_environment()
    say(f"installing what `{purpose}` needs into {VENV.name} (once; this takes a minute)")
    options = ["--quiet", "--disable-pip-version-check", "--no-input"]
    install = [str(PYTHON), "-m", "pip", "install", *options, *PURPOSES[purpose]]
    if subprocess.run(install, env=clean_environment(), check=False).returncode != 0:
        raise Unable(
            "pip could not install the packages; its message is above. If the package index "
            "cannot be reached from here, set PIP_INDEX_URL to one that can."
        )
    if purpose == "test":
        fetch_programs()
    stamp(purpose).write_text(fingerprint())


def fetch_programs() -> None:
    """What tests need and no package index has. Without them only their own tests fail."""
    for module in ("tests.kit.servers.debian", "tests.kit.browser"):
        try:
            run(str(PYTHON), "-m", module, PYTHONPATH=str(ROOT))
        except Unable as problem:
            say(f"{problem} (a few tests need it; `make test` tries again)")


# -- the stamp ---------------------------------------------------------------------------------


def stamp(purpose: str) -> Path:
    return VENV / f".ready-for-{purpose}"


def is_current(purpose: str) -> bool:
    """Whether the environment already serves this purpose; `test` includes `run`."""
    wanted = fingerprint()
    ready = {purpose, "test"}
    return PYTHON.exists() and any(_read(stamp(each)) == wanted for each in ready)


def fingerprint() -> str:
    """A hash of what the installation depends on; a moved clone is a new one, as venvs do not
    travel.
    """
    digest = hashlib.sha256(str(ROOT).encode())
    for file in (ROOT / "pyproject.toml", REQUIREMENTS):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _read(file: Path) -> str | None:
    try:
        return file.read_text()
    except OSError:
        return None


# -- the environment ---------------------------------------------------------------------------


def make_environment() -> None:
    problems = []
    for way in (with_ensurepip, with_system_pip, with_pip_from_index, with_apt):
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            way()
        except Unable as problem:
            problems.append(f"  - {way.__name__.replace('_', ' ')}: {problem}")
            continue
        if works(PYTHON):
            return
        problems.append(f"  - {way.__name__.replace('_', ' ')}: made no working pip")
    shutil.rmtree(VENV, ignore_errors=True)
    tried = "\n".join(problems)
    raise Unable(
        f"could not make {VENV.name}. Tried:\n{tried}\n"
        "Run this once, then the same command again:  sudo apt-get install python3-venv"
    )


def with_ensurepip() -> None:
    run(sys.executable, "-m", "venv", str(VENV))


def with_system_pip() -> None:
    run(sys.executable, "-m", "pip", "--version")
    without_pip()
    run(sys.executable, "-m", "pip", "--python", str(PYTHON), "install", "--quiet", "pip")


def with_pip_from_index() -> None:
    without_pip()
    url, sha256 = newest_pip()
    wheel = VENV / Path(urllib.parse.urlparse(url).path).name
    wheel.write_bytes(download(url))
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != sha256:
        raise Unable(f"{url} does not have the checksum that the index gives")
    # A wheel is a zip file, and pip runs from inside one.
    run(str(PYTHON), str(wheel / "pip"), "install", "--quiet", "--no-index", str(wheel))
    wheel.unlink()


def with_apt() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unable("needs root and apt-get")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    package = f"python3.{sys.version_info.minor}-venv"
    say(f"apt-get install {package}")
    run("apt-get", "update", "-qq", **quiet)
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", package, **quiet)
    with_ensurepip()


def without_pip() -> None:
    run(sys.executable, "-m", "venv", "--without-pip", str(VENV))


def works(python: Path) -> bool:
    """Whether there is an environment that runs, is new enough and has pip."""
    check = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    try:
        return _quietly([str(python), "-c", check]).returncode == 0
    except OSError:
        return False


# -- the package index -------------------------------------------------------------------------


def newest_pip() -> tuple[str, str]:
    """Where the newest wheel of pip is, and its SHA-256.

    The HTML form of the index, as mirrors do not all speak JSON.
    """
    page = os.environ.get("PIP_INDEX_URL", INDEX).rstrip("/") + "/pip/"
    links = [
        (tuple(map(int, found["version"].split("."))), found["url"], found["sha256"])
        for link in re.findall(r"<a\s[^>]*>", download(page).decode())
        if (found := LINK.search(html.unescape(link))) and "data-yanked" not in link and fits(link)
    ]
    if not links:
        raise Unable(f"{page} lists no wheel of pip with a checksum")
    _, url, sha256 = max(links)
    return urllib.parse.urljoin(page, url), sha256


def fits(link: str) -> bool:
    """Whether the index says nothing against this Python; pip has only ever raised its minimum."""
    least = re.search(r'data-requires-python="[^"]*>=\s*3\.(\d+)', html.unescape(link))
    return least is None or int(least[1]) <= sys.version_info.minor


def download(url: str) -> bytes:
    if not url.startswith(("https://", "http://", "file://")):
        raise Unable(f"{url} is no web address")
    try:
        with urllib.request.urlopen(url, timeout=IMPATIENCE) as answer:  # noqa: S310 see above
            content: bytes = answer.read()
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise Unable(f"cannot get {url}: {error}") from None
    return content


# -- small things ------------------------------------------------------------------------------


def run(*command: str, **variables: str) -> None:
    try:
        done = _quietly(command, **variables)
    except OSError as error:
        raise Unable(str(error)) from None
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Unable(lines[-1] if len(lines) < 3 else f"{lines[0]} … {lines[-1]}")


def _quietly(
    command: tuple[str, ...] | list[str], **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=clean_environment() | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def clean_environment() -> dict[str, str]:
    """Our environment without what would send packages elsewhere."""
    stray = {"PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name not in stray} | {
        "PIP_USER": "0"
    }


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One at a time per clone. The lock is on the folder itself, so it leaves no file behind."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def say(text: str) -> None:
    sys.stderr.write(f"setup: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
