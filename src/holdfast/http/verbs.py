"""The verbs of the local client, each as a conversation with the server."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Literal, TypedDict, Unpack
from urllib.parse import quote
from uuid import UUID

from holdfast.bounds import BoundWords, read_bounds
from holdfast.core.attempt import History
from holdfast.core.budget_state import UsageReport
from holdfast.core.duration import Duration
from holdfast.core.events import Emitted
from holdfast.core.fleet import WorkerInfo
from holdfast.core.flow import When
from holdfast.core.ids import is_task_id
from holdfast.core.lifecycle import is_terminal
from holdfast.core.limit_state import LimitChange, LimitDetails, LimitPage
from holdfast.core.limits import UNLIMITED
from holdfast.core.query import Order
from holdfast.core.stats import QueueStats, Stats
from holdfast.core.store_answers import EMITTED, LIMIT, LIMIT_CHANGE, QUEUE, WORKER
from holdfast.core.task import Json, Priority, State
from holdfast.core.task_answers import HISTORY, TREE
from holdfast.core.tree import TaskTree
from holdfast.core.why import Why
from holdfast.definitions.definition import Definition
from holdfast.definitions.handle import Handle, TaskRef
from holdfast.definitions.options import Options, Tags, Unlimited, read_options
from holdfast.definitions.readers import read_duration, read_event, read_event_key
from holdfast.definitions.step_verbs import EventKey
from holdfast.errors import ResultTimeout, TaskCancelled, TaskFailed, TaskNotFound
from holdfast.filters import JSON_WORDS, FilterKeywords, read_id
from holdfast.http import reading
from holdfast.http.choosing import filter_of, query_of
from holdfast.http.talk import Pause, Talk, ask
from holdfast.http.values import BriefTask, RemotePage, RemoteTask, RemoteToken, Submitted

TASKS = "/api/v1/tasks"
LIMITS = "/api/v1/limits"
EVENTS = "/api/v1/events"
FIRST_LOOK, LAST_LOOK = 0.05, 2.0
"""Seconds between two looks at a task whose result is waited for; they grow by half."""

NamedTask = str | Definition[..., Any, Any]
"""A task by its name, or by its definition where this process has it."""


class SubmitWords(TypedDict, total=False):
    """One submit's options, with the words of the local client.

    `expires` as a duration counts by this machine's clock. `callback` is a URL that is told when
    the task has ended. `results` gives parameters the results of other tasks, by id. With
    `children` (`client.call(…)`) it ends after the last of them: they may have a `name`, and come
    `after` others by theirs; `order`, `on_failure` and `body` are those of `holdfast.batch()`.
    Without `traceparent` the task is part of the running task's trace, or of the current span's:
    that goes along with every request.
    """

    queue: str | None
    priority: str | Priority | None
    max_retries: int | Unlimited | None
    timeout: Duration | None
    delay: Duration | None
    run_at: datetime | str | None
    timezone: str | None
    expires: Duration | datetime | None
    unique_key: str | None
    idempotency_key: str | None
    lock: str | None
    tags: Tags | None
    requires: str | Collection[str] | None
    owner: str | None
    callback: str | None
    traceparent: str | None
    after: TaskRef | Collection[TaskRef] | None
    when: str | When | None
    results: Mapping[str, TaskRef | Sequence[TaskRef]] | None
    name: str | None
    children: Sequence[RemoteCall] | None
    order: str | None
    on_failure: str | None
    body: str | None


_COMPOSING: Final = ("results", "name", "children", "order", "on_failure", "body")
"""Words that are no options of a task, but say what it has to do with others."""


class RemoteCall(dict[str, Json]):
    """A call that has not been made: the JSON of one task, for `submit_many`."""

    def __repr__(self) -> str:
        return f"<RemoteCall {self['task_type']}>"


class Verbs:
    """What can be asked of a server."""

    def submit(
        self,
        name: NamedTask,
        parameters: Mapping[str, Json] | None = None,
        /,
        **options: Unpack[SubmitWords],
    ) -> Talk[Submitted]:
        """Submit one task with JSON values by parameter name. When it returns, it is durable.

        With an `idempotency_key` it is tried again when the network fails; without, an answer that
        got lost is an error, as nobody knows whether the task is there.
        """
        body = call(name, parameters, options)
        again = "idempotency_key" in body
        return reading.submitted((yield from ask("POST", TASKS, body=body, repeatable=again)))

    def submit_many(self, calls: Sequence[RemoteCall]) -> Talk[Sequence[Submitted]]:
        """Submit many tasks in one step, all or none: `submit_many([client.call("f", {…}), …])`.
        The answers come in the same order.
        """
        if not calls:
            return []
        again = all("idempotency_key" in body for body in calls)
        data = yield from ask("POST", TASKS, body=list(calls), repeatable=again)
        return [reading.submitted(each) for each in data["tasks"]]

    def get(self, task_id: TaskRef, *, traceback: bool = False) -> Talk[RemoteTask]:
        """The whole picture of one task. `traceback` takes an admin's token."""
        query = {"traceback": "true"} if traceback else {}
        return reading.TASK.read((yield from ask("GET", _task(task_id), query=query)))

    def get_by_key(
        self, key: str, *, name: str | None = None, owner: str | None = None
    ) -> Talk[RemoteTask]:
        """The newest task with this idempotency or unique key, of this owner or of none;
        `TaskNotFound` if there is none.
        """
        for word in ("idempotency_key", "unique_key"):
            words: FilterKeywords = {"name": name, "owner": owner, word: key}  # type: ignore[misc] # either name
            page = yield from self.list(limit=1, **words)
            if page.tasks:
                return page.tasks[0]
        raise TaskNotFound(key)

    def list(
        self,
        *,
        limit: int = 100,
        after: str | None = None,
        oldest_first: bool = False,
        by_end: bool = False,
        **words: Unpack[FilterKeywords],
    ) -> Talk[RemotePage]:
        """A page of tasks, newest first. Its `next`, passed as `after`, brings the next one. With
        `by_end`, those that have ended, the last end first.
        """
        query = {**query_of(words), "limit": str(limit)}
        query["sort"] = Order.of(oldest_first=oldest_first, by_end=by_end).value
        query |= {} if after is None else {"cursor": after}
        return reading.page((yield from ask("GET", TASKS, query=query)))

    def history(self, task_id: TaskRef) -> Talk[History]:
        """Every attempt and event of a task."""
        return HISTORY.read((yield from ask("GET", f"{_task(task_id)}/attempts")))

    def children(
        self, task_id: TaskRef, *, limit: int = 100, after: str | None = None
    ) -> Talk[RemotePage]:
        """A page of the task's own children, oldest first."""
        query = {"limit": str(limit)} | ({} if after is None else {"cursor": after})
        return reading.page((yield from ask("GET", f"{_task(task_id)}/children", query=query)))

    def tree(self, task_id: TaskRef) -> Talk[TaskTree]:
        """The task with its children, their children and so on: the first 1,000, level by level,
        and how many more there are.
        """
        return TREE.read((yield from ask("GET", f"{_task(task_id)}/tree")))

    def why(self, task_id: TaskRef) -> Talk[Why]:
        """Why the task is not running, in words, with its place in line."""
        return reading.why((yield from ask("GET", f"{_task(task_id)}/why")))

    def cancel(self, task_id: TaskRef) -> Talk[RemoteTask | BriefTask]:
        """Cancel one task: at once if it has not started, else its worker is asked to stop it.

        The answer is brief for a token without the scope `read`.
        """
        return reading.steered((yield from ask("POST", f"{_task(task_id)}/cancel")))

    def cancel_many(self, *, dry_run: bool = False, **words: Unpack[FilterKeywords]) -> Talk[int]:
        """Cancel every matching task that has not ended; how many were cancelled or asked."""
        return (yield from _act("cancel", words, dry_run=dry_run))

    def retry(self, task_id: TaskRef) -> Talk[RemoteTask | BriefTask]:
        """Start one task again: an ended one anew, one that waits for its time right now. The
        answer is as brief as that of `cancel`.
        """
        return reading.steered((yield from ask("POST", f"{_task(task_id)}/retry")))

    def replay(
        self, *, pace: float | None = None, dry_run: bool = False, **words: Unpack[FilterKeywords]
    ) -> Talk[int]:
        """Start matching tasks again, dead letters unless `state` says otherwise; how many.

        With `pace` (tasks per second) they become eligible one after another, oldest first.
        """
        more = {} if pace is None else {"pace": pace}
        return (yield from _act("retry", words, dry_run=dry_run, **more))

    def discard(self, *, dry_run: bool = False, **words: Unpack[FilterKeywords]) -> Talk[int]:
        """Forget matching tasks for good, dead letters unless `state` says otherwise; how many."""
        return (yield from _act("discard", words, dry_run=dry_run))

    def emit(self, event: str, key: EventKey, payload: Json = None) -> Talk[Emitted]:
        """Say that something has happened: tasks that wait for this event, or will, go on with the
        payload. Of several emits of one event and key the first counts.
        """
        one = read_event_key("key", key)
        body = {"event": read_event("event", event), "key": one, "payload": payload}
        return EMITTED.read((yield from ask("POST", EVENTS, body=body, repeatable=True)))

    def stats(self) -> Talk[Stats]:
        """The store in numbers, at most a second old."""
        return reading.stats((yield from ask("GET", "/api/v1/queue/stats")))

    def usage(
        self,
        *,
        owner: str | None = None,
        first: date | None = None,
        last: date | None = None,
        by: Literal["day", "schedule"] | None = None,
    ) -> Talk[UsageReport]:
        """What the runs of an owner, or of everybody, have used from the first day to the last:
        since this month began, unless given.
        """
        given = {"owner": owner, "from": first, "to": last, "by": by}
        query = {name: str(value) for name, value in given.items() if value is not None}
        return reading.usage((yield from ask("GET", "/api/v1/usage", query=query)))

    def queues(self) -> Talk[Sequence[QueueStats]]:
        """The queues with what waits and runs in each."""
        data = yield from ask("GET", "/api/v1/queues")
        return [QUEUE.read(each) for each in data["queues"]]

    def pause(self, queue: str) -> Talk[bool]:
        """Stop handing out this queue's tasks; running ones go on. False if it was paused."""
        path = f"/api/v1/queues/{quote(queue, safe='')}/pause"
        return bool((yield from ask("POST", path))["changed"])

    def resume(self, queue: str) -> Talk[bool]:
        """Undo `pause`. False if it was not paused."""
        path = f"/api/v1/queues/{quote(queue, safe='')}/resume"
        return bool((yield from ask("POST", path))["changed"])

    def limits(self, *, after: str = "", limit: int = 100) -> Talk[LimitPage]:
        """The limits, rates, shares and breakers that somebody uses or has set, by name."""
        query = {"limit": str(limit)} | ({"after": after} if after else {})
        data = yield from ask("GET", LIMITS, query=query)
        return LimitPage(limits=tuple(map(LIMIT.read, data["limits"])), next=data["next"])

    def limit(self, name: str) -> Talk[LimitDetails]:
        """One of them, with who holds it and who waits; `ServiceError` (404) if there is none."""
        data = yield from ask("GET", _limit(name))
        holders, waiters = tuple(data["holders"]), tuple(data["waiters"])
        return LimitDetails(limit=LIMIT.read(data), holders=holders, waiters=waiters)

    def set_limit(self, name: str, value: int | str) -> Talk[LimitChange]:
        """How many may pass from now on, until `unset_limit`; of a breaker "open" or "closed"."""
        body = {"state" if isinstance(value, str) else "capacity": value}
        return LIMIT_CHANGE.read((yield from ask("PUT", _limit(name), body=body)))

    def unset_limit(self, name: str) -> Talk[LimitChange]:
        """Undo `set_limit`."""
        return LIMIT_CHANGE.read((yield from ask("DELETE", _limit(name))))

    def workers(self) -> Talk[Sequence[WorkerInfo]]:
        """All workers known, newest first, dead and stopped ones too until they are pruned."""
        data = yield from ask("GET", "/api/v1/workers")
        return [WORKER.read(each) for each in data["workers"]]

    def drain(self, worker_id: str) -> Talk[None]:
        """Ask a worker to finish what it has and leave."""
        path = f"/api/v1/workers/{quote(worker_id, safe='')}/drain"
        yield from ask("POST", path, repeatable=True)

    def result(self, task_id: TaskRef, timeout: Duration | None = None) -> Talk[Json]:
        """Wait for the end and return the result; without `timeout` as long as it takes.

        Raises:
            TaskFailed: it failed or is a dead letter; carries the error.
            TaskCancelled: it was cancelled, or expired.
            ResultTimeout: not ended in time; the task goes on.
        """
        patience = math.inf if timeout is None else read_duration("timeout", timeout)
        give_up_at, pause = time.monotonic() + patience, FIRST_LOOK
        while True:
            task = yield from self.get(task_id)
            if is_terminal(task.state):
                return _result_of(task)
            left = give_up_at - time.monotonic()
            if left <= 0:
                raise ResultTimeout(
                    f"task {task.id} ({task.name}) is still {task.state}; it goes on."
                )
            yield Pause(min(pause, left))
            pause = min(pause * 1.5, LAST_LOOK)


class TokenVerbs:
    """What can be asked about tokens. They take an admin's token."""

    def create(
        self,
        name: str,
        scopes: str | Collection[str],
        expires: Duration | None = None,
        **bounds: Unpack[BoundWords],
    ) -> Talk[tuple[RemoteToken, str]]:
        """Make a token. Its text is in the answer and nowhere else, now or ever. The other words
        bind it: `owner="anna", queues=["mail"], rate="100/1m"`.
        """
        chosen = [scopes] if isinstance(scopes, str) else sorted(scopes)
        body: dict[str, Json] = {"name": name, "scopes": chosen, **_bounds(bounds)}
        if expires is not None:
            body["expires_in_seconds"] = read_duration("expires", expires)
        data = yield from ask("POST", "/api/v1/tokens", body=body)
        return reading.token(data), str(data["token"])

    def list(self) -> Talk[Sequence[RemoteToken]]:
        """Every token ever made, newest first, revoked and expired ones too."""
        data = yield from ask("GET", "/api/v1/tokens")
        return [reading.token(each) for each in data["tokens"]]

    def revoke(self, token_id: str) -> Talk[None]:
        """End a token for ever. `ServiceError` (404) if there is none to end."""
        yield from ask("DELETE", f"/api/v1/tokens/{quote(token_id, safe='')}")


def _bounds(words: BoundWords) -> dict[str, Json]:
    read = read_bounds(**words)
    named: dict[str, Json] = {
        "owner": read.owner,
        "queues": read.queues and sorted(read.queues),
        "task_types": read.names and sorted(read.names),
        "max_priority": read.max_priority,
        "rate": read.rate and str(read.rate),
    }
    return {name: value for name, value in named.items() if value is not None}


def call(
    name: NamedTask, parameters: Mapping[str, Json] | None, options: SubmitWords
) -> RemoteCall:
    """The JSON of a submit; `InvalidOption` names the first option that makes no sense."""
    words: dict[str, Any] = {**options}
    composing: dict[str, Any] = {w: words.pop(w) for w in _COMPOSING if w in words}
    names = [] if words.get("after") is None else _names(words)
    when = words.pop("when", None) if names and not words["after"] else None
    read = read_options(words)
    given: dict[str, Json] = {
        JSON_WORDS.get(field.name, field.name): getattr(read, field.name) for field in fields(read)
    }
    given |= {
        "task_type": name if isinstance(name, str) else name.name,
        "parameters": dict(parameters or {}),
        "max_retries": "unlimited" if read.max_retries == UNLIMITED else read.max_retries,
        "timeout_seconds": "none" if read.timeout == math.inf else read.timeout,
        "expires_in": None,
        "expires_at": _expiry(read),
        "tags": list(read.tags) or None,
        "required_capabilities": None if read.requires is None else sorted(read.requires),
        "after": [*read.after, *names] or None,
        "when": read.when if read.after else when,
    }
    given |= composing
    if composing.get("results") is not None:
        given["results"] = {name: _refs(ref) for name, ref in composing["results"].items()}
    return RemoteCall({word: value for word, value in given.items() if value is not None})


def _names(words: dict[str, Any]) -> list[str]:
    """Take the names of other children out of `after`."""
    given = words["after"]
    many = [given] if isinstance(given, str | UUID | Handle) else list(given)
    names = [each for each in many if isinstance(each, str) and not is_task_id(each.lower())]
    words["after"] = [each for each in many if each not in names] or None
    return names


def _refs(given: Any) -> Json:
    return [str(each) for each in given] if isinstance(given, list | tuple) else str(given)


def _expiry(options: Options) -> datetime | None:
    if options.expires_in is None:
        return options.expires_at
    return datetime.now(UTC) + timedelta(seconds=options.expires_in)


def _act(action: str, words: FilterKeywords, *, dry_run: bool, **more: Json) -> Talk[int]:
    which = filter_of(words)
    if not which and action != "cancel":
        which = {
            "status": [State.DEAD_LETTER]
        }  # what the server would take it for, but must be said
    body = {"action": action, "filter": which, "dry_run": dry_run, **more}
    return int((yield from ask("POST", f"{TASKS}/actions", body=body))["tasks"])


def _limit(name: str) -> str:
    return f"{LIMITS}/{quote(name, safe='')}"


def _task(task_id: TaskRef) -> str:
    return f"{TASKS}/{read_id(task_id)}"


def _result_of(task: RemoteTask) -> Json:
    if task.state is State.COMPLETED:
        return task.result
    what = f"task {task.id} ({task.name}) ended as {task.state}"
    if task.state is State.CANCELLED:
        raise TaskCancelled(f"{what} ({task.reason}).", task_id=task.id, state=task.state)
    said = f": {task.error.type}: {task.error.message}" if task.error else ""
    raise TaskFailed(
        f"{what} in attempt {task.attempt}{said}",
        task_id=task.id,
        state=task.state,
        error=task.error,
    )
