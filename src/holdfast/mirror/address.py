"""Reads `firestore_url`: which database of which project, and where in it.

firestore://project                           the database `(default)`
firestore://project/database                  another one
firestore://project?prefix=tenants/acme       below a document: tenants/acme/tasks/…
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from holdfast.errors import ConfigError

SCHEME: Final = "firestore"
DEFAULT_DATABASE: Final = "(default)"
COLLECTION: Final = "tasks"
EXECUTIONS: Final = "executions"


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorAddress:
    """A database of Firestore, and the path of the collection that schedules are written to."""

    project: str
    database: str = DEFAULT_DATABASE
    collection: str = COLLECTION


def parse_firestore_url(url: str) -> MirrorAddress:
    """Read the setting. `ConfigError` says what is wrong with it."""
    parts = urlsplit(url)
    database = unquote(parts.path.strip("/"))
    if parts.scheme != SCHEME or not parts.netloc or "/" in database:
        raise _wrong(
            f"expected {SCHEME}://project or {SCHEME}://project/database, got "
            f"{parts.scheme}://{parts.netloc}{parts.path}"
        )
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(words.keys() - {"prefix"}):
        raise _wrong(f"no such word: {unknown[0]!r}. Expected prefix")
    return MirrorAddress(
        project=parts.netloc,
        database=database or DEFAULT_DATABASE,
        collection=_collection(words.get("prefix", "")),
    )


def _collection(prefix: str) -> str:
    """Below the document that the prefix names: collections and documents alternate."""
    if not prefix:
        return COLLECTION
    steps = prefix.strip("/").split("/")
    if not all(steps) or len(steps) % 2:
        raise _wrong(
            f"prefix: expected the path of a document, such as tenants/acme, got {prefix!r}"
        )
    return "/".join((*steps, COLLECTION))


def _wrong(problem: str) -> ConfigError:
    return ConfigError("firestore_url", f"firestore_url: {problem}")
