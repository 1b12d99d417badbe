"""How tasks, attempts, queues and workers look to people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from holdfast.cli import words
from holdfast.cli.screen import Screen
from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.fleet import WorkerInfo, shown_capabilities
from holdfast.core.limits import shown_retries
from holdfast.core.query import Page
from holdfast.core.stats import QueueStats, Stats
from holdfast.core.task import Cause, Json, State, Task, TaskError
from holdfast.core.tree import TaskTree
from holdfast.core.why import Why


def show_page(screen: Screen, page: Page, nothing: str) -> None:
    """Tasks, newest first, and how to get the rest."""
    if not page.tasks:
        screen.line(nothing)
        return
    now = datetime.now(UTC)
    columns = ("id", "name", "state", "queue", "priority", "attempt", "created", "age", "what")
    rows = [_row(task, now, ascii_only=screen.ascii_only) for task in page.tasks]
    screen.table(columns, rows, spare=("created", "priority", "queue", "attempt", "age"))
    if page.next:
        screen.line(f"More: --after {page.next}")


def _row(task: Task, now: datetime, *, ascii_only: bool) -> Sequence[str]:
    return (
        task.id,
        task.name,
        task.state.value,
        task.queue,
        task.priority.value,
        f"{task.attempt}",
        f"{task.created_at.astimezone():%Y-%m-%d %H:%M:%S}",
        words.ago(task.created_at, now),
        _remark(task, now, ascii_only=ascii_only),
    )


def _remark(task: Task, now: datetime, *, ascii_only: bool) -> str:
    """The one thing most worth knowing about a task in this state."""
    match task.state:
        case State.RUNNING:
            asked = "asked to stop " if task.cancel_requested else ""
            return asked + words.progress_text(task.progress, width=10, ascii_only=ascii_only)
        case State.QUEUED | State.RETRYING if task.run_at > now:
            return f"starts {words.ago(task.run_at, now)}"
        case State.BLOCKED:
            return f"waits for lock {task.lock}" if task.lock else "waits for other tasks"
        case State.FAILED | State.DEAD_LETTER:
            return _error_line(task.error)
        case State.COMPLETED if task.started_at and task.finished_at:
            return f"took {words.duration((task.finished_at - task.started_at).total_seconds())}"
        case _:
            return task.reason or ""


def show_task(screen: Screen, task: Task) -> None:
    """Everything about one task."""
    allowed = "unlimited" if shown_retries(task.max_retries) is None else task.max_retries
    used = f"{task.attempt} started, {task.charged} charged, {allowed} retries allowed"
    screen.fields(
        [
            ("id", task.id),
            ("name", task.name),
            ("state", task.state.value),
            ("reason", task.reason),
            ("progress", words.progress_text(task.progress, ascii_only=screen.ascii_only)),
            ("queue", task.queue),
            ("priority", task.priority.value),
            ("attempts", used),
            ("crashes", task.crash_count or None),
            ("created", words.instant(task.created_at)),
            ("run at", _if(words.instant(task.run_at), when=task.run_at != task.created_at)),
            ("expires", _if(words.instant(task.expires_at), when=task.expires_at is not None)),
            ("started", words.instant(task.started_at)),
            ("finished", words.instant(task.finished_at)),
            ("timeout", None if task.timeout is None else words.duration(task.timeout)),
            ("worker", task.worker_id),
            ("lock", task.lock),
            ("fence", task.fence),
            ("requires", ", ".join(shown_capabilities(task.requires))),
            ("tags", ", ".join(task.tags)),
            ("owner", task.owner),
            ("unique key", task.unique_key),
            ("idempotency key", task.idempotency_key),
            ("parent", task.parent_id),
            ("trace", task.trace_id),
            ("traceparent", task.traceparent),
            ("cost", task.cost.units or None),
            ("cancel", "requested" if task.cancel_requested else None),
            ("arguments", _json(task.arguments)),
            ("result", None if task.result is None else _json(task.value)),
            ("error", None if task.error is None else _error_line(task.error)),
        ]
    )
    if task.error is not None and task.error.traceback:
        _show_traceback(screen, "Traceback:", task.error.traceback)


def show_history(screen: Screen, history: History, *, tracebacks: bool) -> None:
    """Attempts and events as one timeline, oldest first."""
    entries = [
        *((event.at, 0, _event_line(event)) for event in history.events),
        *((a.started_at, 1, _start_line(a)) for a in history.attempts),
        *((a.ended_at, 2, _end_line(a)) for a in history.attempts if a.ended_at is not None),
    ]
    for at, _, text in sorted(entries, key=lambda entry: entry[:2]):
        screen.line(f"{words.clock_time(at)}  {text}")
    if tracebacks:
        for attempt, text in _tracebacks(history):
            _show_traceback(screen, f"Traceback of attempt {attempt.number}:", text)


def _show_traceback(screen: Screen, title: str, text: str) -> None:
    screen.line()
    screen.line(title, "bold")
    for line in text.rstrip().splitlines():
        screen.line(line)


def _start_line(attempt: Attempt) -> str:
    cause = "" if attempt.cause is Cause.SUBMITTED else f" (cause: {attempt.cause})"
    return f"attempt {attempt.number} started on worker {attempt.worker_id}{cause}"


def _end_line(attempt: Attempt) -> str:
    charged = "" if attempt.charged or attempt.error is None else ", not charged"
    error = f": {_error_line(attempt.error)}" if attempt.error else ""
    took = words.duration(attempt.seconds or 0.0)
    return f"attempt {attempt.number} ended after {took}: {attempt.ended}{charged}{error}"


def _event_line(event: Event) -> str:
    text = event.kind.replace("_", " ")
    if event.attempt is not None:
        text = f"attempt {event.attempt} {text}"
    if event.worker_id is not None and event.kind != "log":
        text += f" (worker {event.worker_id})"
    return f"{text}: {event.detail}" if event.detail else text


def _tracebacks(history: History) -> Iterator[tuple[Attempt, str]]:
    for attempt in history.attempts:
        if attempt.error is not None and attempt.error.traceback:
            yield attempt, attempt.error.traceback


def show_tree(screen: Screen, tree: TaskTree) -> None:
    """A task and all below it, a line each."""
    _show_branch(screen, tree, "", "")


def _show_branch(screen: Screen, tree: TaskTree, before: str, below: str) -> None:
    progress = f"  {tree.ended:,} of {tree.total:,}" if tree.total else ""
    reason = f" ({tree.reason})" if tree.reason else ""
    error = f"  {_error_line(tree.error)}" if tree.error else ""
    screen.line(f"{before}{tree.name}  {tree.id}  {tree.state}{reason}{progress}{error}")
    fork, last, on = ("|-- ", "`-- ", "|   ") if screen.ascii_only else ("├── ", "└── ", "│   ")
    for n, child in enumerate(tree.children, start=1):
        is_last = n == len(tree.children) and not tree.left_out
        inner = below + ("    " if is_last else on)
        _show_branch(screen, child, below + (last if is_last else fork), inner)
    if tree.left_out:
        screen.line(f"{below}{last}{tree.left_out:,} more")


def show_why(screen: Screen, why: Why) -> None:
    """The reasons, most important first, and the place in line."""
    screen.line(f"Task {why.task_id} is {why.state}.")
    for code, text in why.reasons:
        screen.line(f"- {text} [{code}]")
    if why.ahead is not None:
        more = " or more" if why.ahead_is_capped else ""
        screen.line(f"Position in line: {why.ahead + 1:,}{more}.")
    if why.eta_seconds is not None:
        screen.line(
            f"At the pace of the last minute it starts in {words.duration(why.eta_seconds)}."
        )


def show_workers(screen: Screen, workers: Sequence[WorkerInfo]) -> None:
    if not workers:
        screen.line("No worker is alive. Start one: holdfast worker module:app")
        return
    columns = ("id", "status", "load", "host", "pid", "version", "started", "last beat",
               "capabilities", "queues")  # fmt: skip
    rows = [_worker_row(worker) for worker in workers]
    screen.table(columns, rows, spare=("started", "version", "host", "pid", "capabilities"))


def _worker_row(worker: WorkerInfo) -> Sequence[object]:
    blocked = f", blocked by {worker.blocked_by}" if worker.blocked_by else ""
    return (
        worker.id,
        f"{worker.status.value}{blocked}",
        f"{worker.load}/{worker.capacity}",
        worker.host,
        worker.pid,
        worker.version,
        words.instant(worker.started_at),
        "-" if worker.beat_at is None else words.ago(worker.beat_at),
        ", ".join(shown_capabilities(worker.capabilities)) or "-",
        "all" if worker.queues is None else ", ".join(worker.queues),
    )


def show_queues(screen: Screen, queues: Sequence[QueueStats]) -> None:
    if not queues:
        screen.line("No queue has tasks.")
        return
    columns = ("queue", "paused", "ready", "running", "blocked", "waiting", "oldest ready")
    screen.table(columns, [_queue_row(queue) for queue in queues])


def _queue_row(queue: QueueStats) -> Sequence[object]:
    waits = [depth.oldest_seconds for depth in queue.depths if depth.oldest_seconds is not None]
    return (
        queue.queue,
        "paused" if queue.paused else "-",
        queue.ready,
        queue.running,
        queue.blocked,
        queue.waiting,
        words.duration(max(waits)) if waits else "-",
    )


def show_stats(screen: Screen, stats: Stats) -> None:
    screen.table(
        ("state", "tasks", "in the last minute"),
        [
            (
                state.value,
                f"{count:,}",
                f"{stats.last_minute[state]:,}" if state in stats.last_minute else "-",
            )
            for state, count in stats.states.items()
        ],
    )
    screen.line()
    show_queues(screen, stats.queues)
    if stats.refused:
        screen.line(f"Late results refused since the store was made: {stats.refused:,}")


def _error_line(error: TaskError | None) -> str:
    if error is None:
        return ""
    first = error.message.splitlines()[0] if error.message else ""
    return f"{error.type}: {first}"


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _if(text: str, *, when: bool) -> str | None:
    return text if when else None
