"""One gate: who holds it, who waits before it, and how many may pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.client import Client
from holdfast.core.breaker import BreakerState
from holdfast.core.gate import GateKind, key_of, kind_of
from holdfast.core.limit_state import LimitDetails
from holdfast.core.query import Order, TaskFilter
from holdfast.core.scope import QUEUE, TASK, Scope, in_words, is_limit, is_lock
from holdfast.core.task import TaskId
from holdfast.dashboard.capacities import change
from holdfast.dashboard.commands import curl
from holdfast.dashboard.gates import EXPLAINED, in_short, waiting
from holdfast.dashboard.page import READ_ALL, STEER_ALL, Again, Done, Form, Page, Shown, View
from holdfast.errors import InvalidOption
from holdfast.server.problems import Refused

page = Page("/gates/{name:text}", "gate.html", "Gate", rule=READ_ALL)

BACK: Final = "/gates"
STATES: Final = {"open": BreakerState.OPEN, "close": BreakerState.CLOSED}


@page.read
async def read(view: View) -> Shown:
    return await _shown(view)


@page.action("/gates/{name:text}/set", rule=STEER_ALL, back=BACK)
async def set_capacity(form: Form) -> Done | Again:
    client, name = await form.verbs(), await _known(form)
    text = form.words.get("capacity", "")
    try:
        if kind_of(name) is GateKind.BREAKER:
            raise Refused(422, "invalid_request", "a breaker is opened or closed, not counted")
        says = await change(client, name, text)
    except Refused as refused:
        shown = await _shown(form)
        return Again(shown={**shown, "typed": text, "problem": refused.detail, "live": None})
    return _done(form, name, says)


@page.action("/gates/{name:text}/unset", rule=STEER_ALL, back=BACK)
async def unset(form: Form) -> Done:
    client, name = await form.verbs(), await _known(form)
    done = await client.unset_limit(name)
    return _done(form, name, "The code decides again." if done.changed else "Nobody had set it.")


@page.action("/gates/{name:text}/open", rule=STEER_ALL, back=BACK)
async def open_breaker(form: Form) -> Done:
    return await _force(form, BreakerState.OPEN, "Open: nobody passes until that is taken back.")


@page.action("/gates/{name:text}/close", rule=STEER_ALL, back=BACK)
async def close_breaker(form: Form) -> Done:
    return await _force(form, BreakerState.CLOSED, "Closed: all pass until that is taken back.")


async def _force(form: Form, state: BreakerState, says: str) -> Done:
    client, name = await form.verbs(), await _known(form)
    if kind_of(name) is not GateKind.BREAKER:
        said = f"this is no breaker: {name}. Set how many may pass; nothing was changed"
        raise Refused(422, "invalid_request", said)
    done = await client.set_limit(name, state.value)
    return _done(form, name, says if done.changed else "It was so before.")


def _done(form: Form, name: str, says: str) -> Done:
    return Done(to=form.url(f"/gates/{name}"), says=says)


async def _known(form: Form) -> str:
    """The name of a gate that can be set and that somebody uses; `Refused` for any other."""
    client, name = await form.verbs(), form.params["name"]
    if not is_limit(name) or (await _find(client, name) is None and not _declares(client, name)):
        said = (
            f"no limit, rate, share or breaker is called {name[:200]!r}: nobody uses it now, and "
            "nobody has set it. Nothing was changed"
        )
        raise Refused(422, "limit_not_found", said)
    return name


async def _find(client: Client, name: str) -> LimitDetails | None:
    try:
        return await client.gate(name)
    except InvalidOption as error:
        raise Refused(404, "limit_not_found", f"no gate can have this name: {error}") from None


def _declares(client: Client, name: str) -> bool:
    return is_limit(name) and client.registry.has_limit(name)


async def _shown(view: View) -> Shown:
    client, name = await view.verbs(), view.params["name"]
    details = await _find(client, name)
    kind = kind_of(name)
    gate = details and details.limit
    return {
        "title": name,
        "name": name,
        "kind": kind,
        "key": key_of(name),
        "in_words": in_words(name),
        "explained": EXPLAINED[kind],
        "gate": gate,
        "short": in_short(gate) if gate else "",
        "waiting": waiting(gate) if gate else "",
        "holders": await _tasks(view, details.holders if details else ()),
        "waiters": await _tasks(view, details.waiters if details else ()),
        "is_known": gate is not None or _declares(client, name),
        "may_set": view.may(STEER_ALL) and not is_lock(name),
        "all_of_it": _where(name),
        "curls": _curls(view, name, gate.capacity if gate else None),
        "typed": "",
        "problem": "",
    }


async def _tasks(view: View, ids: Sequence[TaskId]) -> Sequence[Shown]:
    """These tasks, the oldest first."""
    if not ids:
        return []
    reach = await view.reach()
    which = TaskFilter(ids=tuple(ids))
    found = await reach.list(which, limit=len(ids), after=None, order=Order.OLDEST)
    tasks: Sequence[Shown] = (await view.service.view()).page(found)["tasks"]
    return tasks


def _where(name: str) -> dict[str, str]:
    """The filter of the tasks that may have it."""
    if kind_of(name) is GateKind.LOCK:
        return {"lock": key_of(name)}
    scope = Scope.parse(key_of(name))
    return {{TASK: "task_type", QUEUE: "queue"}[scope.of]: scope.name} if scope.of else {}


def _curls(view: View, name: str, capacity: int | None) -> dict[str, str]:
    """The calls of the API that do the same, by what they do."""
    if is_lock(name):
        return {}
    path, calls = "/api/v1/limits/{}", dict[str, str]()
    if kind_of(name) is GateKind.BREAKER:
        for says, state in STATES.items():
            calls[says] = curl(view, "PUT", path, name, body={"state": state.value})
    else:
        calls["set"] = curl(view, "PUT", path, name, body={"capacity": capacity or 10})
    calls["unset"] = curl(view, "DELETE", path, name)
    calls["look"] = curl(view, "GET", path, name)
    return calls
