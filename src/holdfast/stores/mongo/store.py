"""Keeps tasks in MongoDB (`mongodb://`), a replica set.

One document per task (`documents.py`), written as a whole by whoever read its last version
(`drafts.py`). Plain submits, claims and successes concern one document each and are single writes;
everything else is a transaction (`atomic.py`), which lets pass gates (`passing.py`). Handlers and
callers may have transactions of their own (`transacting.py`). Each mixin holds the verbs of one
noun.
"""

from __future__ import annotations

from holdfast.ports.clock import Clock
from holdfast.stores.mongo.claims import Claims
from holdfast.stores.mongo.fleet import KeepsWorkers
from holdfast.stores.mongo.forgetting import Forgets
from holdfast.stores.mongo.gates import KeepsGates
from holdfast.stores.mongo.numbers import CountsTasks
from holdfast.stores.mongo.opening import Opens
from holdfast.stores.mongo.operations import Operates
from holdfast.stores.mongo.reads import Reads
from holdfast.stores.mongo.settlements import Settles
from holdfast.stores.mongo.transacting import Transacts


class MongoStore(
    Transacts,
    Reads,
    Claims,
    Settles,
    Operates,
    Forgets,
    CountsTasks,
    KeepsGates,
    KeepsWorkers,
    Opens,
):
    """All of `ports.store.Store`. Usable from any thread's event loop."""

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        super().__init__(url, clock=clock, schema=schema)
