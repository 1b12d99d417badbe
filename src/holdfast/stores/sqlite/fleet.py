"""Workers, as the writer changes them."""

from __future__ import annotations

from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.task import WorkerId
from holdfast.stores.sqlite.queries import WORKERS, as_json
from holdfast.stores.sqlite.values import safe_text
from holdfast.stores.sqlite.writer import Unit


def register(unit: Unit, worker: WorkerInfo) -> None:
    now = unit.now
    values = (
        worker.id, worker.host, worker.pid, worker.version,
        None if worker.queues is None else as_json(worker.queues),
        as_json(sorted(worker.capabilities)), worker.capacity, worker.load, worker.status.value,
        worker.beats, now, now, worker.kind,
    )  # fmt: skip
    unit.db.execute(WORKERS["register"], values)


def beat(
    unit: Unit,
    worker_id: WorkerId,
    load: int | None,
    status: WorkerStatus | None,
    blocked_by: str | None,
) -> bool:
    values = {
        "id": worker_id,
        "now": unit.now,
        "load": load,
        "status": None if status is None else status.value,
        "blocked_by": blocked_by,
    }
    return unit.db.execute(WORKERS["beat"], values).rowcount == 1


def bury(unit: Unit, worker_id: WorkerId, beats: int | None) -> bool:
    return unit.db.execute(WORKERS["bury"], {"id": worker_id, "beats": beats}).rowcount == 1


def ask_to_drain(unit: Unit, worker_id: WorkerId) -> bool:
    return unit.db.execute(WORKERS["ask_to_drain"], (safe_text(worker_id),)).rowcount == 1
