"""Locks per resource key.

Of all tasks with one key at most one is ready or running: the *holder*. `holds` is its key, and a
unique index on that column makes a second holder impossible. The others that are eligible wait in
line, blocked, with the key in `waits_for`.

Whoever changes anything about a key (a task lines up, the holder leaves) calls `rearrange`, which
restores the one rule: if nobody holds the key, or the holder has not started and stands behind the
first in line, then the first in line holds it. A task that becomes eligible is therefore simply put
in line; whether it gets the key at once is decided here, for all ways of coming and going alike.
"""

from __future__ import annotations

from collections.abc import Collection

import orjson

from holdfast.stores.sqlite.queries import LOCKS, as_json
from holdfast.stores.sqlite.tally import BLOCKED, READY
from holdfast.stores.sqlite.writer import Unit


def rearrange(unit: Unit, keys: Collection[str]) -> None:
    """Give each of these keys to whom it belongs now."""
    if not keys:
        return
    (found,) = unit.db.execute(LOCKS["moves"], (as_json(sorted(keys)),)).fetchone()
    forward, back = [], []
    for first, first_lane, holder, holder_lane in orjson.loads(found):
        forward.append(first)
        unit.tally.move(first_lane, BLOCKED, READY)
        if holder is not None:
            back.append(holder)
            unit.tally.move(holder_lane, READY, BLOCKED)
    if back:
        unit.db.execute(LOCKS["step_back"], (as_json(back),))
    if forward:
        unit.db.execute(LOCKS["step_forward"], (as_json(forward),))
