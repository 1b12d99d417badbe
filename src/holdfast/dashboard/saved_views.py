"""Saved views: filters of the task list under a name, for a token or, if it is bound to one, for
its owner.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl
from uuid import uuid4

from holdfast.client import Client
from holdfast.core.record import Changes, Delete, Put
from holdfast.core.token import Token
from holdfast.definitions.readers import read_text
from holdfast.errors import InvalidOption

KIND: Final = "saved_view"
"""The kind of their records: the group is whose they are, the sort is the name."""
MOST: Final = 100
LONGEST_NAME: Final = 60
LONGEST_QUERY: Final = 4000


class SavedView(NamedTuple):
    """A name, and the filters as they stand in an address."""

    key: str
    name: str
    query: str

    @property
    def words(self) -> dict[str, list[str]]:
        words: dict[str, list[str]] = {}
        for name, text in parse_qsl(self.query):
            words.setdefault(name, []).append(text)
        return words


async def views_of(client: Client, token: Token) -> Sequence[SavedView]:
    """All that this token has, by name."""
    found = await client.store.records(KIND, group=_group(token), limit=MOST)
    return [
        SavedView(record.key, record.sort, json.loads(record.document)["query"]) for record in found
    ]


async def save(client: Client, token: Token, name: str, query: str) -> None:
    """Keep these filters under this name; they replace those that it had."""
    called = read_text("name", " ".join(name.split()), LONGEST_NAME)
    if not called:
        raise InvalidOption("name", "expected a name for the view")
    if len(query) > LONGEST_QUERY:
        raise InvalidOption("query", "these are too many filters to be kept")
    kept = await views_of(client, token)
    key = _key(token, called)
    if len(kept) >= MOST and all(view.key != key for view in kept):
        raise InvalidOption("name", f"expected {MOST} views at most; forget one first")
    put = Put(KIND, key, json.dumps({"query": query}), None, group=_group(token), sort=called)
    await client.store.commit(Changes(uuid4().hex, records=[put]))


async def forget(client: Client, token: Token, key: str) -> None:
    """Forget a view of this token; of nobody else."""
    if any(view.key == key for view in await views_of(client, token)):
        await client.store.commit(Changes(uuid4().hex, records=[Delete(KIND, key)]))


def _group(token: Token) -> str:
    owner = token.bounds.owner
    return f"token:{token.id}" if owner is None else f"owner:{owner}"


def _key(token: Token, name: str) -> str:
    return hashlib.sha256(f"{_group(token)}\n{name}".encode()).hexdigest()
