"""Loads the SQL: one file per noun, one named block per statement, written for schema `holdfast`.

Another schema (`?schema=…`) gets the same text with the name exchanged, here, in the migrations and
in the routines.

**Migrations** make and change tables; they are numbered, and never edited once they are out.
**Routines** are the functions and views, each at one place, written as they are now: after every
migration all of them are made anew. What workers of the last release call must stay, so a function
whose arguments or rows change shape gets another name, or a migration drops it on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

DEFAULT_SCHEMA: Final = "holdfast"
NOUNS: Final = (
    "tasks", "claims", "settlements", "operations", "filters", "workers", "queues", "schema",
    "checks", "transactions", "limit", "records",
)  # fmt: skip

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_OURS = re.compile(
    r"\bholdfast\.|(?<=SCHEMA IF NOT EXISTS )holdfast\b|(?<=SCHEMA IF EXISTS )holdfast\b"
)
_QUOTED = re.compile(r"'holdfast(?='|\.)")
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


class Migration(NamedTuple):
    version: int
    sql: str


@dataclass(frozen=True, slots=True)
class Queries:
    """Every statement of one schema, by name; its migrations, and its routines."""

    schema: str
    named: Mapping[str, str]
    migrations: Sequence[Migration]
    routines: str

    def __getitem__(self, name: str) -> str:
        return self.named[name]


@cache
def queries(schema: str) -> Queries:
    """The statements for tables in that schema."""
    named = {name: _for(schema, text) for noun in NOUNS for name, text in blocks(noun).items()}
    routines = "\n".join(text for _, text in _files("routines"))
    return Queries(schema, named, _migrations(schema), _for(schema, routines))


def blocks(noun: str) -> Mapping[str, str]:
    """The named statements of one file, as they are written."""
    text = (files(__package__) / "sql" / f"{noun}.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    bodies = [_COMMENT.sub("", body).strip().removesuffix(";") for body in parts[1::2]]
    return dict(zip(parts[::2], bodies, strict=True))


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _for(schema: str, text: str) -> str:
    if schema == DEFAULT_SCHEMA:
        return text
    literal = schema.replace("'", "''")
    text = _QUOTED.sub(lambda _: f"'{literal}", text)
    return _OURS.sub(lambda found: quoted(schema) + ("." if found[0].endswith(".") else ""), text)


def _migrations(schema: str) -> Sequence[Migration]:
    return [Migration(int(name[:4]), _for(schema, text)) for name, text in _files("migrations")]


def _files(folder: str) -> list[tuple[str, str]]:
    """Name and text of every SQL file, by name."""
    found = sorted((files(__package__) / folder).iterdir(), key=lambda entry: entry.name)
    return [(e.name, e.read_text(encoding="utf-8")) for e in found if e.name.endswith(".sql")]
