"""Options as other task queues call them, for those who come from there.

`SAME` are accepted: whoever says the word means what we mean. `ADVICE` is for words that mean
something else, or that two queues mean differently; they are refused with the sentence that says
how to write it here. The error texts and the page "Coming from another queue" are made from these.
"""

from __future__ import annotations

from typing import Final

SAME: Final[dict[str, str]] = {
    "timeout_seconds": "timeout",
    "job_timeout": "timeout",
    "delay_seconds": "delay",
    "countdown": "delay",
    "eta": "run_at",
    "schedule_at": "run_at",
    "scheduled_at": "run_at",
    "expires_at": "expires",
    "queue_name": "queue",
    "actor_name": "name",
    "retries": "max_retries",
    "autoretry_for": "retry_for",
    "dont_autoretry_for": "no_retry_for",
    "required_capabilities": "requires",
    "callback_url": "callback",
}

_BACKOFF = "is part of the backoff: `retry=exponential('5s', 2, cap='1h', jitter=True)`"
_ALWAYS = "is how every task is handled here; leave it out"
_CONTEXT = "is not needed: annotate the first parameter, `def task(ctx: Context, …)`"
_UNKEPT = "is `keep=False` here: the whole task is forgotten, about a minute after it has succeeded"
_KEPT = "is not an option of a task: the settings `retention` and `dead_letter_retention` say it"
_NEXT = "is `after=[handle]` at the task that comes next, or `chain(f.s(1), g.s())`"
_UNLESS = "is `after=[handle], when='failure'` at the task that comes next"
_CHILD = (
    "is not an option: children come with their parent (`batch(…)`, `children` over REST), or from "
    "it while it runs (`ctx.submit_child(…)`)"
)
_JSON = "is not an option: arguments and results are JSON"
_UNITS = "is `timeout` here, with its unit: `timeout='30s'`"
_LATER = "is `expires` here, with its unit: `expires='1h'`"

ADVICE: Final[dict[str, str]] = {
    "max_attempts": "counts the first attempt, `max_retries` those after it: 5 attempts are "
    "`max_retries=4`",
    "max_tries": "counts the first attempt, `max_retries` those after it: 5 tries are "
    "`max_retries=4`",
    "time_limit": f"{_UNITS} (Celery counts seconds, Dramatiq milliseconds)",
    "soft_time_limit": f"{_UNITS}. The body is asked to stop first (`ctx.stop_requested`)",
    "timeout_ms": _UNITS,
    "max_age": _LATER,
    "ttl": _LATER,
    "result_ttl": _KEPT,
    "failure_ttl": _KEPT,
    "ignore_result": _UNKEPT,
    "store_results": "says what every task does here; `keep=False` forgets what succeeded",
    "base_retry_delay_seconds": _BACKOFF,
    "base_retry_delay": _BACKOFF,
    "default_retry_delay": "is `retry=fixed('3m')` here, or `retry=exponential('5s')`",
    "retry_delay": "is `retry=fixed('3m')` here, or `retry=exponential('5s')`",
    "retry_backoff": _BACKOFF,
    "retry_backoff_max": _BACKOFF,
    "retry_jitter": _BACKOFF,
    "min_backoff": _BACKOFF,
    "max_backoff": _BACKOFF,
    "backoff": _BACKOFF,
    "retry_when": "is `retry_for=(ConnectionError, …)` here, or `raise Retry(after=…)` in the body",
    "throws": "is `no_retry_for=(ValueError, …)` here, if those errors shall fail the task at once",
    "rate_limit": "is `rate=Rate(100, per='1m')` here, over the whole fleet",
    "max_concurrency": "is `concurrency=5` here, over the whole fleet",
    "concurrency_limit": "is `concurrency=5` here, over the whole fleet",
    "acks_late": _ALWAYS,
    "reject_on_worker_lost": _ALWAYS,
    "track_started": _ALWAYS,
    "bind": _CONTEXT,
    "pass_context": _CONTEXT,
    "task_id": "is made by Holdfast; to find a task by your own, give it an `idempotency_key`",
    "job_id": "is made by Holdfast; to find a task by your own, give it an `idempotency_key`",
    "queueing_lock": "is `unique` at the decorator, `unique_key` at one submit",
    "schedule_in": "is `delay` here: `delay='5m'`",
    "at_front": "is `priority='critical'` here",
    "depends_on": _NEXT,
    "link": _NEXT,
    "link_error": _UNLESS,
    "on_success": _NEXT,
    "on_failure": _UNLESS,
    "parent": _CHILD,
    "parent_id": _CHILD,
    "serializer": _JSON,
    "compression": _JSON,
    "description": "is not an option; `tags` are what a task is found by",
    "meta": "is not an option; `tags` are what a task is found by",
    "args": "are given to `submit` itself: `f.options(…).submit(1, name='Ann')`",
    "kwargs": "are given to `submit` itself: `f.options(…).submit(1, name='Ann')`",
    "broker": "is not an option: an app has one store, `Holdfast(url=…)`",
}
