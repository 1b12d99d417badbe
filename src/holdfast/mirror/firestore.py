"""Documents of Google Firestore, through its own client. The emulator's, if the variable
`FIRESTORE_EMULATOR_HOST` names one.

No transactions: they would hold locks there while we read here. A document is looked at, then the
truth, and the write says over which state of the document it is meant (its `update_time`, or that
there is none); if another was quicker, all of it is done again. After a write, too, both are looked
at once more, until they say the same: a document may have been made and deleted meanwhile, or found
right by somebody who knew of something newer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from weakref import WeakKeyDictionary

from google.api_core.exceptions import (
    AlreadyExists,
    FailedPrecondition,
    GoogleAPIError,
    InvalidArgument,
    NotFound,
)
from google.auth.exceptions import GoogleAuthError
from google.cloud.firestore_v1 import AsyncClient, AsyncDocumentReference, DocumentSnapshot

from holdfast.errors import Fatal, MirrorUnavailable
from holdfast.mirror.address import MirrorAddress
from holdfast.ports.mirror import KEEP, Truth

PATIENCE: Final = 8.0
"""Seconds for one call. Three of them are shorter than the time limit of a task."""
ROUNDS: Final = 5
PAGE: Final = 300
"""Documents that are deleted in one write; Firestore takes up to 500."""


Snapshot = DocumentSnapshot[AsyncDocumentReference]


class FirestoreDocuments:
    """`Documents` of Firestore. Each event loop gets a connection of its own."""

    def __init__(self, address: MirrorAddress) -> None:
        self._address = address
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = (
            WeakKeyDictionary()
        )

    async def write(self, path: str, truth: Callable[[], Awaitable[Truth]]) -> bool:
        """Look, ask, write what differs; again if somebody else has written meanwhile."""
        changed = False
        with _unavailable():
            document = self._client().document(f"{self._address.collection}/{path}")
            for _ in range(ROUNDS):
                found = await document.get(retry=None, timeout=PATIENCE)
                wanted = await truth()
                if wanted is KEEP or _says(found, wanted):
                    return changed
                try:
                    await _replace(document, found, wanted)
                except (AlreadyExists, NotFound, FailedPrecondition):
                    continue  # somebody else has written it
                changed = True
        raise MirrorUnavailable(
            f"the document {path!r} was changed by others {ROUNDS} times while it was written"
        )

    async def clear(self, path: str) -> int:
        """Delete page by page: what an attempt has done, the next need not do again."""
        gone = 0
        with _unavailable():
            client = self._client()
            some = client.collection(f"{self._address.collection}/{path}").select([]).limit(PAGE)
            while found := await some.get(retry=None, timeout=PATIENCE):
                batch = client.batch()
                for each in found:
                    batch.delete(each.reference)
                await batch.commit(retry=None, timeout=PATIENCE)
                gone += len(found)
        return gone

    async def close(self) -> None:
        """Close the connection of this loop. Those of loops that are gone went with them."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client._firestore_api.transport.close()

    def _client(self) -> AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            address = self._address
            client = AsyncClient(project=address.project, database=address.database)
            self._clients[loop] = client
        return client


def _says(found: Snapshot, wanted: Truth) -> bool:
    """Whether the document has these fields already, or is not there as it should be."""
    told = found.to_dict()
    if told is None or not isinstance(wanted, Mapping):
        return told is None and wanted is None
    return all(name in told and told[name] == value for name, value in wanted.items())


async def _replace(document: AsyncDocumentReference, found: Snapshot, wanted: Truth) -> None:
    """Write over just this state of the document."""
    if not found.exists and isinstance(wanted, Mapping):
        await document.create(dict(wanted), retry=None, timeout=PATIENCE)
        return
    unchanged = AsyncClient.write_option(last_update_time=found.update_time)
    if isinstance(wanted, Mapping):
        await document.update(dict(wanted), unchanged, retry=None, timeout=PATIENCE)
    else:
        await document.delete(unchanged, retry=None, timeout=PATIENCE)


@contextmanager
def _unavailable() -> Iterator[None]:
    """Errors of the library, as ours."""
    try:
        yield
    except InvalidArgument as error:
        raise Fatal(f"Firestore takes no such document: {error}") from error
    except (GoogleAPIError, GoogleAuthError) as error:
        raise MirrorUnavailable(
            f"Firestore did not take it: {type(error).__name__}: {error}. Nothing but the copy is "
            "late; it is tried again."
        ) from error
