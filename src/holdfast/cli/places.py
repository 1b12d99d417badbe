"""Where a store is on this machine, for commands that must not make one by accident."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote

from holdfast.cli.command import CommandFailed


def sqlite_path(url: str) -> Path | None:
    """The file of an SQLite URL; None for any other store."""
    scheme, _, path = url.partition(":///")
    return Path(unquote(path)).absolute() if scheme == "sqlite" and path else None


def sqlite_url(path: Path) -> str:
    """The URL of a file, whatever characters are in its name."""
    return f"sqlite:///{quote(str(path.absolute()))}"


def open_to_others(url: str) -> list[Path]:
    """The files of an SQLite store that not only their owner may read or write."""
    path = sqlite_path(url)
    parts = [] if path is None else [Path(f"{path}{end}") for end in ("", "-wal", "-shm")]
    return [part for part in parts if part.exists() and part.stat().st_mode & 0o077]


async def refuse_missing(url: str) -> None:
    """Opening a store makes it where there is none. Whoever only looks, in the wrong place, would
    be told that there is nothing, and leave a new store there.
    """
    from holdfast.wiring import open_store  # noqa: PLC0415

    store = open_store(url)
    if await store.schema_version() == 0:
        raise CommandFailed(
            "no_store",
            f"there is no store at {sqlite_path(url) or store.url}. It is made by the first submit,"
            " by a worker, a server, or `holdfast migrate`; if it is elsewhere, name it with --url "
            "or HOLDFAST_URL.",
        )
