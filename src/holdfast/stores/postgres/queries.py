"""Loads the SQL: one file per noun, one named block per statement, written for schema `holdfast`.

Another schema (`?schema=…`) gets the same text with the name exchanged, here and in the migrations.
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
    "checks", "transactions", "limit", "tokens", "callbacks",
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
    """Every statement of one schema, by name; and its migrations."""

    schema: str
    named: Mapping[str, str]
    migrations: Sequence[Migration]

    def __getitem__(self, name: str) -> str:
        return self.named[name]


@cache
def queries(schema: str) -> Queries:
    """The statements for tables in that schema."""
    named = {name: _for(schema, text) for noun in NOUNS for name, text in blocks(noun).items()}
    return Queries(schema, named, _migrations(schema))


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
    """Files of one number are one migration, in the order of their names."""
    found: dict[int, list[str]] = {}
    for entry in sorted((files(__package__) / "migrations").iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".sql"):
            found.setdefault(int(entry.name[:4]), []).append(entry.read_text(encoding="utf-8"))
    return [
        Migration(version, _for(schema, "\n".join(texts)))
        for version, texts in sorted(found.items())
    ]
