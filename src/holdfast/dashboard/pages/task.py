"""One task: where it stands and why, what it was given and gave, and all that happened to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from holdfast.core.attempt import History
from holdfast.core.gate import GateKind, key_of, kind_of
from holdfast.core.ids import is_task_id
from holdfast.core.lifecycle import CANCELLABLE_AT_ONCE, REQUEUEABLE, TERMINAL
from holdfast.core.steps import shown as step_name
from holdfast.core.task import Json, State, Task
from holdfast.core.task_answers import HISTORY, TREE
from holdfast.core.token import Scope
from holdfast.core.why import Why
from holdfast.dashboard.commands import curl
from holdfast.dashboard.page import READ, STEER_ONE, Done, Form, Page, Shown, View
from holdfast.dashboard.timeline import timeline
from holdfast.server.pages import newest_of
from holdfast.server.reach import Reach

page = Page("/tasks/{task_id}", "task.html", "Task", rule=READ)

MOST_LINES: Final = 500
MOST_EVENTS: Final = 200
MOST_STEPS: Final = 200
HURRIED: Final = frozenset({State.QUEUED, State.RETRYING})

_MARKED: Final = re.compile(
    r"`(?P<command>[^`]+)`|(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)?(?:\+00:00| UTC)",
    re.ASCII,
)


@page.read
async def read(view: View) -> Shown:
    reach = await view.reach()
    task = await reach.get(view.params["task_id"])
    history, now = newest_of(await reach.history(task.id)), await (await view.verbs()).now()
    is_admin = Scope.ADMIN in view.token.scopes
    shown = (await view.service.view(with_traceback=is_admin)).task(task)
    return {
        "task": shown,
        "title": f"{task.name} {task.id[:13]}",
        "history": HISTORY.write(history, whole=is_admin, task_id=task.id),
        "timeline": timeline(task, history, now),
        "logs": _logs(history),
        "events": [each for each in history.events if each.kind != "log"][-MOST_EVENTS:],
        "why": await _why(view, reach, task),
        "steps": await _steps(reach, task),
        "tree": TREE.write(await reach.tree(task.id)),
        "after": _after(task),
        "may_steer": reach.may_steer(task.id),
        "may_cancel": task.state in CANCELLABLE_AT_ONCE or _runs(task),
        "may_retry": task.state in REQUEUEABLE and (task.state in TERMINAL or task.run_at > now),
        "is_hurried": task.state in HURRIED,
        "curl": as_curl(view, shown),
        "python": as_python(shown),
    }


@page.action("/tasks/{task_id}/cancel", rule=STEER_ONE)
async def cancel(form: Form) -> Done:
    task = await (await form.reach()).cancel(form.params["task_id"])
    is_asked = task.state is State.RUNNING
    says = "It was asked to stop." if is_asked else "Cancelled."
    return Done(to=form.url(f"/tasks/{task.id}"), says=says)


@page.action("/tasks/{task_id}/retry", rule=STEER_ONE)
async def retry(form: Form) -> Done:
    task = await (await form.reach()).retry(form.params["task_id"])
    return Done(
        to=form.url(f"/tasks/{task.id}"), says="It starts again as soon as a worker is free."
    )


def _runs(task: Task) -> bool:
    return task.state is State.RUNNING and not task.cancel_requested


class Logs(NamedTuple):
    """The last lines that the handlers wrote, and how many are before them."""

    lines: Sequence[Any]
    left_out: int


def _logs(history: History) -> Logs:
    lines = [each for each in history.events if each.kind == "log"]
    return Logs(lines[-MOST_LINES:], max(0, len(lines) - MOST_LINES))


class Piece(NamedTuple):
    """A part of a sentence; `path` leads to what it names, if anywhere."""

    text: str
    path: str | None = None
    query: Mapping[str, str] = {}
    is_code: bool = False
    at: datetime | None = None


class Explained(NamedTuple):
    """Why it is where it is: each reason with links, and more links to what keeps it."""

    reasons: Sequence[Sequence[Piece]]
    links: Sequence[Piece]
    position: int | None
    is_capped: bool
    eta: float | None


async def _why(view: View, reach: Reach, task: Task) -> Explained:
    why = await reach.why(task.id)
    return Explained(
        [pieces(text) for _, text in why.reasons],
        _links(why, task),
        None if why.ahead is None else why.ahead + 1,
        why.ahead_is_capped,
        why.eta_seconds,
    )


def pieces(text: str) -> list[Piece]:
    """A sentence, with a link for every task that it names, and commands and times apart."""
    found, at = [], 0
    for match in _MARKED.finditer(text):
        found.append(Piece(text[at : match.start()]))
        if match["command"]:
            found.append(Piece(match["command"], is_code=True))
        elif match["at"]:
            found.append(Piece(match["at"], at=_instant(match["at"])))
        else:
            found.append(Piece(match["id"][:13], f"/tasks/{match['id']}"))
        at = match.end()
    return [*found, Piece(text[at:])]


def _instant(text: str) -> datetime | None:
    """An instant that a sentence names; an error's message may have what only looks like one."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None


def _links(why: Why, task: Task) -> list[Piece]:
    """Where one can see to what keeps it."""
    codes, links = {code for code, _ in why.reasons}, []
    if "queue_paused" in codes:
        links.append(Piece(f"queue {task.queue}", f"/queues/{task.queue}"))
    if codes & {"no_worker", "no_worker_for_queue", "missing_capability", "unknown_task"}:
        links.append(Piece("the workers", "/workers"))
    if "in_line" in codes or "workers_busy" in codes:
        ahead = {"queue": task.queue, "status": "running"}
        links.append(Piece("what runs of this queue", "/tasks", ahead))
    if why.gate is not None:
        links += _to_gate(why.gate)
    return links


def _to_gate(gate: str) -> list[Piece]:
    key = key_of(gate)
    match kind_of(gate):
        case GateKind.LOCK:
            where = {"lock": key, "status": "running"}
            return [Piece(f"who holds the lock {key}", "/tasks", where)]
        case GateKind.LATCH:
            return []
        case _:
            return [Piece(gate, "/gates", {"name": gate})]


class Step(NamedTuple):
    """What a durable step came to."""

    name: str
    value: Json


async def _steps(reach: Reach, task: Task) -> list[Step]:
    steps = await reach.steps(task.id)
    return [Step(step_name(name), value) for name, value in list(steps.items())[-MOST_STEPS:]]


def _after(task: Task) -> list[str]:
    """The tasks whose ends it waited for, or still does."""
    latches = [gate.key for gate in task.gates if gate.kind is GateKind.LATCH]
    return [key for key in latches if is_task_id(key) and key not in (task.id, task.parent_id)]


def as_curl(view: View, shown: Mapping[str, Json]) -> str:
    """The command that submits the same again. What is secret is stars in it."""
    return curl(view, "POST", "/api/v1/tasks", body=_body(shown))


def as_python(shown: Mapping[str, Json]) -> str:
    """The same in Python, where the app is at hand."""
    words = [f"queue={shown['queue']!r}", f"priority={str(shown['priority'])!r}"]
    if shown["tags"]:
        words.append(f"tags={list(shown['tags'])!r}")
    return (
        f"app.submit_by_name(\n    {shown['task_type']!r},\n    {shown['parameters']!r},\n    "
        f"{', '.join(words)},\n)"
    )


def _body(shown: Mapping[str, Json]) -> dict[str, Json]:
    """A submit that makes such a task; what follows from its definition is left to that."""
    words = ("task_type", "parameters", "queue", "priority", "tags", "owner")
    return {word: shown[word] for word in words if shown[word]}
