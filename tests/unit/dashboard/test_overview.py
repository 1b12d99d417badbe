"""What the overview says needs somebody."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.stats import Depth, QueueStats, Stats
from holdfast.core.task import Priority, State, TaskId, WorkerId
from holdfast.dashboard.overview import alerts_of
from holdfast.dashboard.words import duration, sentence
from holdfast.server.numbers import Numbers

WORKER = WorkerInfo(
    id=WorkerId("w-1"), host="h", pid=1, version="1", queues=None, capabilities=frozenset(),
    capacity=4,
)  # fmt: skip
QUEUE = QueueStats(
    queue="mail", paused=False, ready=3, waiting=0, blocked=0, running=0,
    depths=(Depth(priority=Priority.NORMAL, ready=3, oldest_seconds=4.0),),
)  # fmt: skip


def texts(
    *queues: QueueStats, workers: tuple[WorkerInfo, ...] = (WORKER,), **ended: int
) -> list[str]:
    none = dict.fromkeys(State, 0)
    last = none | {State(name): count for name, count in ended.items()}
    stats = Stats(queues=queues, states=none, last_minute=last, refused=0)
    return [alert.text for alert in alerts_of(Numbers(stats, workers))]


def test_a_queue_that_is_served_needs_nobody() -> None:
    assert texts(QUEUE) == []


def test_a_queue_that_nobody_serves_comes_first() -> None:
    elsewhere = replace(WORKER, queues=("other",))

    said = texts(QUEUE, workers=(elsewhere,), failed=1)

    assert said == [
        "No worker serves queue 'mail', with 3 ready tasks in it.",
        "1 task failed for good within the last minute.",
    ]


def test_a_paused_queue_a_long_wait_and_what_is_wrong_with_workers_are_said() -> None:
    old = (Depth(priority=Priority.LOW, ready=1, oldest_seconds=3700.0),)
    silent = replace(WORKER, id=WorkerId("w-2"), status=WorkerStatus.SILENT)
    stuck = replace(WORKER, blocked_by=TaskId("t"))

    said = texts(
        replace(QUEUE, paused=True), replace(QUEUE, queue="slow", depths=old),
        workers=(WORKER, silent, stuck), dead_letter=2,
    )  # fmt: skip

    assert sorted(said) == [
        "2 tasks became dead letters within the last minute.",
        "A task keeps the event loop of worker w-1.",
        "Queue 'mail' is paused, with 3 ready tasks in it.",
        "The oldest task of queue 'slow' has waited for 1 h 1 min.",
        "Worker w-2 has said nothing for longer than a lease.",
    ]


def test_lengths_of_time_are_in_words() -> None:
    said = [duration(seconds) for seconds in (None, 0.004, 2.5, 46, 720, 12_000, 180_000)]

    assert said == ["", "4 ms", "2.5 s", "46 s", "12 min", "3 h 20 min", "2 d 2 h"]


def test_what_an_error_says_becomes_a_sentence() -> None:
    assert sentence("expected a queue") == "Expected a queue."
    assert sentence("Wait.") == "Wait."
