"""Answers "why is my task not running?" from facts read at one instant.

Every reason has a stable code for machines and a sentence for people that names what to do. The
first reason is the one that matters most.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.dropping import blame
from holdfast.core.duration import LONGEST
from holdfast.core.events import named
from holdfast.core.fleet import (
    CALLBACKS,
    HTTP,
    WorkerInfo,
    WorkerStatus,
    channel_needed,
    for_tasks,
    knows,
    shown_capabilities,
)
from holdfast.core.flow import body_latch, children_latch
from holdfast.core.gate import GateKind, GateState, key_of
from holdfast.core.scope import in_words
from holdfast.core.stats import Standing
from holdfast.core.task import Cause, Reason, State, Task
from holdfast.core.unfit import UNFIT, is_known


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """`reasons` are (code, sentence) pairs; `ahead` is the number of tasks before it in line, if it
    is in line.

    `eta_seconds` is how long it will stand there if its queue goes on as in the last minute: a
    guess, and the least it can be if `ahead_is_capped`. None if it is not in line, if something
    else keeps it (a pause, a missing worker), or if nothing of its queue ended in that minute.
    """

    task_id: str
    state: State
    reasons: tuple[tuple[str, str], ...]
    ahead: int | None
    ahead_is_capped: bool
    eta_seconds: float | None = None
    gate: str | None = None
    """The name of the gate that it stands before, if it is blocked."""

    @property
    def sentence(self) -> str:
        return " ".join(text for _, text in self.reasons)


def explain(standing: Standing) -> Why:
    """Say why the task is where it is."""
    task = standing.task
    ahead = standing.ahead
    reasons = tuple(_reasons(standing))
    return Why(
        task_id=task.id,
        state=task.state,
        reasons=reasons,
        ahead=ahead,
        ahead_is_capped=ahead is not None and ahead >= standing.ahead_cap,
        eta_seconds=_eta(standing) if reasons[0][0] in _MOVING else None,
        gate=None if standing.gate is None else standing.gate.name,
    )


_MOVING = frozenset({"in_line", "workers_busy", "about_to_start"})
"""Reasons of a task that will start if only the line goes on."""


def _eta(standing: Standing) -> float | None:
    if standing.ahead is None or standing.ended_last_minute <= 0:
        return None
    return standing.ahead * 60 / standing.ended_last_minute


def _reasons(standing: Standing) -> list[tuple[str, str]]:
    task = standing.task
    match task.state:
        case State.RUNNING:
            reasons = [_running(task)]
        case State.COMPLETED:
            reasons = [
                ("completed", f"It completed at {task.finished_at}, in attempt {task.attempt}.")
            ]
        case State.FAILED | State.DEAD_LETTER:
            reasons = [_given_up(task)]
        case State.CANCELLED:
            reasons = [_cancelled(standing)]
        case State.QUEUED | State.RETRYING | State.BLOCKED:
            reasons = _held_up(standing)
    return reasons


def _held_up(standing: Standing) -> list[tuple[str, str]]:
    task = standing.task
    reasons: list[tuple[str, str]] = []
    if task.run_at > standing.now:
        reasons.append(_not_yet(standing))
    if standing.queue_paused:
        reasons.append(
            (
                "queue_paused",
                (
                    f"Queue {task.queue!r} is paused; "
                    f"`holdfast queue resume {task.queue}` lets it go on."
                ),
            )
        )
    if task.state is State.BLOCKED:
        reasons.append(_before_gate(standing))
    reasons += _nobody(task, standing.workers)
    if not reasons:
        reasons.append(_in_line(standing))
    return reasons


def _before_gate(standing: Standing) -> tuple[str, str]:
    """Which gate keeps a blocked task, and its place in that line."""
    gate, ahead = standing.gate, standing.ahead_at_gate or 0
    if gate is None:
        return "blocked", "It was let through a moment ago."
    key, many = repr(key_of(gate.name)), f"{gate.held} of {gate.capacity}"
    named = f"Its {in_words(gate.name)}"
    match gate.kind:
        case GateKind.LOCK:
            holder = f"task {gate.holder}" if gate.holder else "another task"
            code, text = "locked", f"Its lock {key} is held by {holder}"
        case GateKind.LIMIT:
            code, text = "limited", f"{named} is used up: {many} are ready or running"
        case GateKind.SHARE:
            code, text = "share_used", f"{named} is used up: {many} are in line or running"
        case GateKind.RATE:
            when = f"; the next may at {gate.opens_at:%H:%M:%S} UTC" if gate.opens_at else ""
            code, text = (
                "rate_limited",
                f"{named} is used up: {gate.capacity} a period{when}",
            )
        case GateKind.BREAKER:
            code, text = "breaker_open", _broken(named, gate)
        case GateKind.LATCH if gate.is_open:
            code, text = "let_through", f"What it waits for, {key}, has come; it is let through"
        case GateKind.LATCH:
            code, text = _before_latch(standing, gate)
    before = f"{standing.ahead_cap} or more" if ahead >= standing.ahead_cap else str(ahead)
    place = f"; {before} before it there" if ahead else "; it is next there"
    return code, f"{text}{place if gate.kind is not GateKind.LATCH else ''}."


def _broken(named: str, gate: GateState) -> str:
    """What a breaker keeps tasks from."""
    if gate.capacity:
        return f"{named} is half open: one task tries whether what failed works again"
    when = f"; one task may try at {gate.opens_at:%H:%M:%S} UTC" if gate.opens_at else ""
    return f"{named} is open, because too much failed or an operator opened it{when}"


def _before_latch(standing: Standing, gate: GateState) -> tuple[str, str]:
    """What a task waits for that has to do with others."""
    task, awaited, key = standing.task, standing.awaited, key_of(gate.name)
    if key == children_latch(task.id):
        of_all = f" of {standing.children}" if standing.children else ""
        return "children", f"It waits for its children: {gate.left}{of_all} to go"
    if awaited is None:
        return "dependency", f"It waits for {key!r}: {gate.left} to go"
    name = f"task {awaited.id} ({awaited.name}), which is {awaited.state}"
    if key == body_latch(awaited.id):
        return "parent", f"It starts when the body of its parent has returned: {name}"
    return "dependency", f"It comes after {name}"


def _not_yet(standing: Standing) -> tuple[str, str]:
    """What a task waits for that may not start yet, and until when."""
    task = standing.task
    wait = (task.run_at - standing.now).total_seconds()
    when = f"{task.run_at:%Y-%m-%d %H:%M:%S} UTC, in {_duration(wait)}."
    if standing.waits_for is not None:
        event, key = named(standing.waits_for)
        what = f"It waits for the event {event!r} with key {key!r}"
        is_endless = wait > LONGEST / 2
        return "waiting_for_event", f"{what}." if is_endless else f"{what}, at most until {when}"
    if task.cause is Cause.RESUMED:
        return "sleeping", f"It sleeps until {when}"
    kind, what = _later(task)
    return kind, f"{what} at {when}"


def _later(task: Task) -> tuple[str, str]:
    """Why it may not start yet."""
    if task.state is State.RETRYING:
        return "retry_wait", f"Attempt {task.attempt} failed; the next may start"
    if task.error is not None and task.error.type == UNFIT:
        handed_back = f"Worker {task.worker_id} handed it back: {task.error.message}"
        return "unfit_arguments", f"{handed_back} It is offered again"
    return "future_run_at", "It may start"


def _nobody(task: Task, workers: tuple[WorkerInfo, ...]) -> list[tuple[str, str]]:
    is_built_in = CALLBACKS in task.requires or channel_needed(task.requires) is not None
    known = workers if is_built_in else for_tasks(workers)
    live = [w for w in known if w.status is WorkerStatus.ACTIVE]
    if not live:
        leaving = any(w.status is WorkerStatus.DRAINING for w in known)
        text = "Every worker that is alive is leaving" if leaving else "No worker is alive"
        return [("no_worker", f"{text}; {_start_one_for(task, by_default='default')}.")]
    serving = [w for w in live if w.queues is None or task.queue in w.queues]
    if not serving:
        return [
            (
                "no_worker_for_queue",
                f"No live worker serves queue {task.queue!r}; {_start_one_for(task)}.",
            )
        ]
    if any(task.requires <= w.capabilities for w in serving):
        return []
    if knows(task.name) in task.requires and not is_known(task.name, serving):
        text = (
            f"No live worker of queue {task.queue!r} knows the task {task.name!r}. Deploy the code "
            "that defines it, or let a worker import it: `holdfast worker module:app --include "
            "that.module`. If none comes it becomes a dead letter."
        )
        return [("unknown_task", text)]
    return [("missing_capability", f"{_lacking(task, serving)}; {_start_one_for(task)}.")]


def _lacking(task: Task, serving: list[WorkerInfo]) -> str:
    """What those who serve its queue have not."""
    known = frozenset[str]().union(*(w.capabilities for w in serving))
    if missing := shown_capabilities(task.requires - known):
        return f"It requires {_names(missing)}, which no live worker of its queue has"
    if HTTP in task.requires - known:
        return "It is for HTTP workers, and no live one serves its queue"
    if (channel := channel_needed(task.requires - known)) is not None:
        return f"No live process can deliver by {channel!r}"
    wanted = _names(shown_capabilities(task.requires))
    return f"It requires {wanted}; no single live worker has all of them"


def _start_one_for(task: Task, by_default: str | None = None) -> str:
    """How to start a worker that can take it. `by_default` is the queue that need not be named."""
    able = shown_capabilities(task.requires)
    channel = channel_needed(task.requires)
    if channel is not None:
        return (
            f"set up the channel {channel!r} where `holdfast worker module:app` or "
            "`holdfast server module:app` runs, and start that"
        )
    if CALLBACKS in task.requires:
        return "servers tell of tasks' ends: start one with `holdfast server module:app`"
    if HTTP in task.requires:
        having = f" with the capabilities {_names(able)}" if able else ""
        return f"start an HTTP worker on queue {task.queue!r}{having}"
    queue = "" if task.queue == by_default else f" -q {task.queue}"
    options = "".join(f" --capability {each}" for each in able)
    return f"start one with `holdfast worker module:app{queue}{options}`"


def _in_line(standing: Standing) -> tuple[str, str]:
    ahead = standing.ahead or 0
    task = standing.task
    live = [w for w in standing.workers if w.status is WorkerStatus.ACTIVE]
    busy = all(w.load >= w.capacity for w in live if w.serves(task.queue, task.requires))
    if ahead == 0:
        if busy:
            return ("workers_busy", "It is next in line; every worker that may take it is busy.")
        return ("about_to_start", "It is next in line and about to start.")
    many = f"{standing.ahead_cap} or more" if ahead >= standing.ahead_cap else str(ahead)
    tasks = "1 task" if many == "1" else f"{many} tasks"
    return (
        "in_line",
        f"It waits in line: {tasks} of queue {standing.task.queue!r} before it.",
    )


def _running(task: Task) -> tuple[str, str]:
    if task.cancel_requested:
        return ("cancelling", f"It is running on worker {task.worker_id} and was asked to stop.")
    where = f"attempt {task.attempt} on worker {task.worker_id}"
    return ("running", f"It is running: {where}, since {task.started_at}.")


def _given_up(task: Task) -> tuple[str, str]:
    said = f" Last error: {task.error.type}: {task.error.message}" if task.error else ""
    match task.reason:
        case Reason.NOT_RETRIABLE:
            text = f"It failed in attempt {task.attempt} with an error that is not retriable."
        case Reason.POISON:
            text = (
                f"Its worker died {task.crash_count} times while running it, "
                "so it is no longer started."
            )
        case Reason.UNKNOWN_TASK:
            text = "No worker knew it for as long as `unknown_task_grace` says."
        case Reason.UNFIT_ARGUMENTS:
            text = "No worker took its arguments for as long as `unknown_task_grace` says."
        case Reason.TIMEOUT:
            text = (
                f"Its last attempt ran out of time and its {task.max_retries} retries are used up."
            )
        case _:
            text = f"Its {task.max_retries} retries are used up."
    return ("attempts_used" if task.state is State.DEAD_LETTER else "failed", f"{text}{said}")


def _cancelled(standing: Standing) -> tuple[str, str]:
    task, culprit = standing.task, standing.culprit
    if task.reason is Reason.DEPENDENCY_FAILED:
        said = task.error.message if task.error else "what it belongs to did not go well"
        if task.error is None and culprit is not None:
            said = blame(culprit).message
        again = f" `holdfast task retry {culprit.id}` starts both again." if culprit else ""
        return ("dependency_failed", f"It was cancelled because {said}.{again}")
    if task.reason is Reason.NOT_NEEDED and task.error:
        return ("not_needed", f"It was not needed: {task.error.message}.")
    if task.reason is Reason.EXPIRED:
        return ("expired", f"It was not started before {task.expires_at}, so it expired.")
    return ("cancelled", f"It was cancelled at {task.finished_at}.")


def _names(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
