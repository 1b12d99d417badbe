"""Notices of ended tasks. A plain task never gets here: who has no callback is not asked about."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.callback import Callback
from holdfast.stores.columns import as_time, in_us, span_us
from holdfast.stores.sqlite.queries import CALLBACKS, HISTORY, as_json, run_many
from holdfast.stores.sqlite.values import safe_text
from holdfast.stores.sqlite.writer import Unit


def owe(unit: Unit, seqs: Sequence[int], now: int) -> None:
    """These tasks have ended: note it for those that have a callback."""
    if seqs:
        unit.db.execute(CALLBACKS["owe"], {"seqs": as_json(seqs), "now": now})


def forget(unit: Unit, seqs: Sequence[int]) -> None:
    """Nothing is owed for these tasks any more."""
    unit.db.execute(CALLBACKS["forget"], (as_json(seqs),))


def none_due(unit: Unit) -> Sequence[Callback] | None:
    """The answer if there is nothing to hand out, found without a write lock."""
    (some,) = unit.db.execute(CALLBACKS["any_due"], (unit.now,)).fetchone()
    return None if some else ()


def take(unit: Unit, *, limit: int, lease: float) -> Sequence[Callback]:
    now = unit.now
    due = unit.db.execute(CALLBACKS["due"], {"now": now, "limit": max(0, limit)}).fetchall()
    if due:
        seqs = as_json([row[0] for row in due])
        unit.db.execute(CALLBACKS["hand_out"], {"seqs": seqs, "until": now + span_us(lease)})
    return [
        Callback(task_id, url, tries, as_time(ended_at)) for _, task_id, url, tries, ended_at in due
    ]


def done(unit: Unit, callback: Callback, *, retry_in: float | None, error: str | None) -> bool:
    now = unit.now
    fence = (safe_text(callback.task_id), callback.tries, in_us(callback.ended_at))
    held = unit.db.execute(CALLBACKS["held"], fence).fetchone()
    if held is None:
        return False
    (seq,) = held
    if retry_in is not None:
        unit.db.execute(CALLBACKS["put_off"], {"seq": seq, "due": now + span_us(retry_in)})
        return True
    forget(unit, [seq])
    kind = "callback_delivered" if error is None else "callback_failed"
    detail = None if error is None else safe_text(error)
    run_many(unit.db, HISTORY["note"], [(seq, now, kind, None, None, detail)])
    return True
