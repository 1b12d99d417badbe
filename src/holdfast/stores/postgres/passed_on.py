"""Whom gates have let pass.

`settle_gates` notes it in its transaction (lane=number, and so on), and whatever is called there
answers it. Once that is committed, the store's owner is told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from holdfast.errors import HoldfastError
from holdfast.stores.callees import callees
from holdfast.stores.postgres.connections import Connections
from holdfast.stores.postgres.lanes import Lanes

Tell = Callable[[str | None], Awaitable[None]]


async def tell(
    passed: str | None,
    connections: Connections,
    lanes: Lanes,
    passed_on: Callable[[Mapping[str, int]], None],
) -> None:
    """Tell `passed_on` the queues. A hint: if their names cannot be had now, nobody is told."""
    if passed is None:
        return
    counts = [(int(lane), int(number)) for lane, _, number in map(_parted, passed.split())]
    ids = {lane for lane, _ in counts}
    known = lanes.by_id
    if not known.keys() >= ids:
        with suppress(HoldfastError):
            known = await connections.do(lambda db: lanes.know(db, ids), repeats=True)
    ready = [(known[lane], number) for lane, number in counts if lane in known]
    if ready:
        passed_on(callees((lane.queue, lane.requires, number) for lane, number in ready))


def _parted(text: str) -> tuple[str, str, str]:
    return text.partition("=")
