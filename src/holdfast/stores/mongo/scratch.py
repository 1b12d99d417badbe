"""A store for measuring, beside the user's own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from holdfast.stores.mongo.address import Address, parse
from holdfast.stores.mongo.connections import NOUNS, client_of


@contextmanager
def scratch_collections(url: str) -> Iterator[str]:
    """A URL like this one whose collections are new; they are dropped afterwards."""
    address = parse(url)._replace(schema=f"holdfast_scratch_{secrets.token_hex(4)}")
    try:
        yield f"{address.uri}{'&' if urlsplit(address.uri).query else '?'}schema={address.schema}"
    finally:
        asyncio.run(_drop(address))


async def _drop(address: Address) -> None:
    async with client_of(address) as client:
        for noun in NOUNS:
            await client[address.database].drop_collection(address.collection(noun))
