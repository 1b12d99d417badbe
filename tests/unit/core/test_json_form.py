"""Values in JSON, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.json_form import JsonForm, plain
from holdfast.core.stats import Depth, QueueStats
from holdfast.core.store_answers import QUEUE, WORKER
from holdfast.core.task import AttemptEnd, Cause, Priority, TaskError, WorkerId
from holdfast.core.task_answers import HISTORY
from holdfast.testing.factories import worker_info

AT = datetime(2026, 5, 1, 10, 0, 0, 250, UTC)
ERROR = TaskError(type="ValueError", message="no", traceback="Traceback …", retriable=False)
WHOLE = History(
    attempts=(
        Attempt(number=1, cause=Cause.RETRY, worker_id=WorkerId("w"), started_at=AT),
        Attempt(
            number=2,
            cause=Cause.SUBMITTED,
            worker_id=WorkerId("w"),
            started_at=AT,
            ended_at=AT,
            ended=AttemptEnd.ERROR,
            charged=True,
            error=ERROR,
        ),
    ),
    events=(Event(at=AT, kind="log", attempt=1, worker_id=WorkerId("w"), detail="hi"),),
)
DEPTH = Depth(priority=Priority.LOW, ready=2, oldest_seconds=1.5)
QUEUED = QueueStats(
    queue="q", paused=True, ready=2, waiting=1, blocked=0, running=3, depths=(DEPTH,)
)
BUSY = worker_info(
    queues=("a", "b"), capabilities=frozenset({"gpu"}), load=3, beats=7, started_at=AT
)


@pytest.mark.parametrize(
    ("form", "value", "told"),
    [(HISTORY, WHOLE, {"task_id": "t"}), (QUEUE, QUEUED, {"open": True}), (WORKER, BUSY, {})],
    ids=["history", "queue", "worker"],
)
def test_what_is_written_is_read_as_the_same_value(
    form: JsonForm[Any], value: object, told: dict[str, Any]
) -> None:
    text = json.dumps(plain(form.write(value, whole=True, **told)))

    assert form.read(json.loads(text)) == value


def test_a_traceback_is_written_only_where_all_is_asked_for() -> None:
    bare = HISTORY.write(WHOLE, task_id="t")

    assert "traceback" not in bare["attempts"][1]["error"]
    assert HISTORY.read(plain(bare)).attempts[1].error == replace(ERROR, traceback=None)


def test_plain_data_has_instants_as_rest_writes_them() -> None:
    assert plain({"at": (AT, AT.replace(microsecond=0))}) == {
        "at": ["2026-05-01T10:00:00.000250Z", "2026-05-01T10:00:00Z"]
    }
