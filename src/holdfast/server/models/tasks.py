"""Requests about tasks: what is submitted, and which tasks are meant."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required

from pydantic import AfterValidator, Field, with_config
from typing_extensions import TypedDict

from holdfast.definitions.readers import LONGEST_NAME
from holdfast.filters import MOST_PER_PAGE
from holdfast.server.models import words
from holdfast.server.shape import CLOSED, SPELLED

MOST_IDS = 1000


@with_config(CLOSED)
class Backoff(TypedDict, total=False):
    """How long to wait before a retry: `base_seconds`, times `multiplier` after every further one,
    `cap_seconds` at most; with `jitter` anything up to that. What is left out is as the settings
    have it.
    """

    base_seconds: words.Seconds
    multiplier: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)]
    cap_seconds: words.Seconds
    jitter: bool


Ref = words.Uuid | words.Name
Refs = Annotated[list[Ref], Field(min_length=1, max_length=MOST_IDS)]
"""Tasks that exist by their ids, or children of the same parent by their names."""


Results = Annotated[
    dict[words.Name, Ref | Refs],
    # Pydantic writes the pattern of a key, and neither its length nor that there are no others.
    Field(
        json_schema_extra={
            "additionalProperties": False,
            "propertyNames": {"minLength": 1, "maxLength": LONGEST_NAME},
        }
    ),
]


@with_config(CLOSED)
class TaskToBe(TypedDict, total=False):
    """What may be said of a task to be."""

    task_type: Required[words.Name]
    parameters: dict[str, Any]
    queue: words.Name
    priority: words.PriorityWord
    required_capabilities: words.Names
    timeout_seconds: words.TimeLimit
    max_retries: words.Retries
    retry: Backoff
    delay_seconds: words.Seconds
    run_at: words.Instant
    expires_at: words.Instant
    idempotency_key: words.Key
    unique_key: words.Key
    lock: words.Key
    tags: words.Tags
    owner: words.Key
    callback_url: words.Url
    traceparent: words.Traceparent
    after: Refs
    when: Literal["success", "failure", "always"]
    results: Results
    order: Literal["parallel", "sequence"]
    on_failure: Literal["fail_parent", "continue", "cancel_rest"]
    body: Literal["before", "after", "none"]


@with_config(CLOSED)
class Child(TaskToBe, total=False):
    """A child to be: a task like any other. `name` is what the other children of its parent call
    it in `after` and `results`.
    """

    name: words.Name
    children: Children


@with_config(CLOSED)
class Submit(TaskToBe, total=False):
    """One task to be. What is left out is as the task's definition has it.

    It starts `after` tasks that exist, `when` those ended well, unless told otherwise. `results`
    gives parameters the results of other tasks, by their ids; `children` there means those of its
    own. With `children` it ends after the last of them; its own task runs `before` or `after`
    them, and with the task type `holdfast.batch` it has none. `on_failure` says what becomes of it
    if a child does not complete. They are nested to 64 levels.
    """

    children: Children


Children = Annotated[list[Child], Field(min_length=1)]


class Marks(TypedDict, total=False):
    """What a task can be found by, dead or alive."""

    queue: words.Key
    task_type: words.Key
    task_type_prefix: words.Key
    priority: words.PriorityWord
    tag: words.Key
    schedule: words.Key
    owner: words.Key
    error_type: words.Key
    created_after: words.Instant
    created_before: words.Instant
    finished_after: words.Instant
    finished_before: words.Instant


class LivingMarks(Marks, total=False):
    """What only tasks that may still run, or did, can be found by."""

    worker_id: words.Key
    lock: words.Key
    unique_key: words.Key
    idempotency_key: words.Key
    parent_id: words.Uuid


class Paging(TypedDict, total=False):
    """Which page of a list."""

    sort: Literal["-created_at", "created_at", "-finished_at", "finished_at"]
    limit: Annotated[int, Field(ge=1, le=MOST_PER_PAGE)]
    cursor: words.Cursor


@with_config(CLOSED)
class Which(LivingMarks, total=False):
    """Which tasks: every word given must match."""

    ids: Annotated[list[words.Uuid], Field(max_length=MOST_IDS)]
    status: words.Statuses


def _refuse_empty(which: Which) -> Which:
    if not which:
        raise ValueError("an empty filter would mean every task there is; name a queue or a status")
    return which


NotEmpty = Annotated[
    Which, AfterValidator(_refuse_empty), Field(json_schema_extra={"minProperties": 1})
]


@with_config(CLOSED)
class Action(TypedDict, total=False):
    """Do something to every matching task; with `dry_run` only count them."""

    action: Required[Literal["cancel", "retry", "discard"]]
    filter: Required[NotEmpty]
    dry_run: bool
    pace: words.Pace


@with_config(CLOSED)
class Replay(TypedDict, total=False):
    """Start matching dead letters again, `pace` of them a second, or all at once."""

    filter: Which
    dry_run: bool
    pace: words.Pace


@with_config(CLOSED)
class Discard(TypedDict, total=False):
    """Forget matching dead letters for good."""

    filter: Which
    dry_run: bool


@with_config(SPELLED)
class Look(TypedDict, total=False):
    """The query of one task, and part of that of a list."""

    traceback: words.YesNo


@with_config(SPELLED)
class TaskSearch(LivingMarks, Paging, Look, total=False):
    """The query of a list of tasks."""

    status: words.Statuses


@with_config(SPELLED)
class ChildSearch(Paging, Look, total=False):
    """The query of the children of a task."""

    status: words.Statuses


@with_config(SPELLED)
class DeadSearch(Marks, Paging, Look, total=False):
    """The query of a list of dead letters."""


@with_config(SPELLED)
class NoQuery(TypedDict, total=False):
    """A query without words."""
