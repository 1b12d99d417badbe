"""Every event that Holdfast says in its log: name, level, meaning, fields.

`docs/reference/log-events.md` is made from this list. A test compares it with the code: an event
that is said and not listed fails it, and so does one that is listed and nobody says. To add one,
add a line in its section and run `make docs`.

Names are `noun.what_happened`. Fields are words separated by blanks; `ABOUT` are those of an
attempt, which every line about one has.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DEBUG, INFO, WARNING, ERROR = "debug", "info", "warning", "error"
ABOUT: Final = "task_id task_name attempt trace_id"
ENDED: Final = f"{ABOUT} ended error exception"


class Listed(NamedTuple):
    """One event; `fields` may be absent where they make no sense."""

    level: str
    meaning: str
    fields: str = ""


EVENTS: Final = {
    # What happens to tasks
    "task.submitted": Listed(
        INFO,
        "A task was stored, or an earlier one with its key was found (`existing`).",
        "task_id task_name trace_id queue state existing",
    ),
    "tasks.submitted": Listed(
        INFO, "Several tasks were stored in one step; `new` of them were.", "tasks new first"
    ),
    "task.started": Listed(INFO, "An attempt began.", f"{ABOUT} queue cause"),
    "task.completed": Listed(INFO, "The handler returned.", ABOUT),
    "task.retrying": Listed(
        INFO, "An attempt ended badly; the next one follows.", f"{ENDED} in_seconds"
    ),
    "task.failed": Listed(WARNING, "The task has failed for good.", f"{ENDED} reason"),
    "task.dead_lettered": Listed(WARNING, "The task is a dead letter now.", f"{ENDED} reason"),
    "task.cancelled": Listed(INFO, "The task was cancelled.", ENDED),
    "task.cancel_requested": Listed(
        INFO, "The worker of a running task was asked to stop it.", f"{ABOUT} worker_id"
    ),
    "task.released": Listed(
        INFO, "An attempt was handed back, uncharged; another follows.", f"{ENDED} in_seconds"
    ),
    "task.rescued": Listed(
        INFO, "Its worker or process died; the task is in line again.", f"{ENDED} worker_id"
    ),
    "task.requeued": Listed(INFO, "Somebody started the task again.", ABOUT),
    "tasks.cancelled": Listed(INFO, "One step cancelled this many tasks.", "tasks"),
    "tasks.requeued": Listed(INFO, "One step started this many tasks again.", "tasks"),
    "tasks.discarded": Listed(INFO, "This many tasks were forgotten on request.", "tasks"),
    # What goes wrong with attempts
    "worker.unknown_task": Listed(
        WARNING,
        "This worker's code has no such task; it is left to those that have it. Said once a name.",
        "task_name queue",
    ),
    "tasks.unknown": Listed(
        WARNING, "No worker knows this task; so many wait for one that does.", "task_name tasks"
    ),
    "task.lease_lost": Listed(
        WARNING, "Others may have the task; what this worker did does not count.", ABOUT
    ),
    "task.result_refused": Listed(
        WARNING, "An end came too late: somebody else has the task.", "task_id error"
    ),
    "task.result_dropped": Listed(
        ERROR, "An end cannot be stored; the task is rescued when this worker leaves.", "task_id"
    ),
    "task.body_still_runs": Listed(
        WARNING,
        "A body did not end when told; it keeps its slot, and its lock if it has one.",
        f"{ABOUT} lock seconds",
    ),
    "task.stray": Listed(
        WARNING, "A task was leased to a worker that has not got it; it goes back.", ABOUT
    ),
    "task.commit_found_out": Listed(
        WARNING,
        "The answer to a handler's commit was lost; the store was asked.",
        "task_id committed error",
    ),
    "tasks.handed_back": Listed(
        WARNING, "The loop is blocked; what had not started goes back, uncharged.", "tasks"
    ),
    "tasks.not_given_back": Listed(
        WARNING, "The store was away while tasks were handed back.", "tasks error"
    ),
    "retry.failed": Listed(
        ERROR,
        "A task's own function for the wait failed; the default is used.",
        "task_name error exception",
    ),
    # Workers
    "worker.started": Listed(
        INFO, "A worker takes tasks.", "worker_id queues concurrency capabilities tasks store"
    ),
    "worker.throughput": Listed(
        INFO,
        "So many tasks that starts, completions, retries and releases are counted, not shown.",
        "worker_id ended retried released seconds",
    ),
    "worker.draining": Listed(
        INFO, "It takes no more, and waits for what runs.", "worker_id running"
    ),
    "worker.interrupting": Listed(
        WARNING, "The time to drain is over; what runs is stopped.", "worker_id running"
    ),
    "worker.stopped": Listed(INFO, "It has left.", "worker_id"),
    "worker.registered": Listed(INFO, "A worker over HTTP came.", "worker_id host version"),
    "worker.drain_requested": Listed(INFO, "Somebody asked a worker to leave.", "worker_id"),
    "worker.buried": Listed(
        WARNING,
        "A worker was silent for a lease; its tasks are given to others.",
        "worker_id host silent_seconds",
    ),
    "worker.lost": Listed(
        WARNING, "This worker was taken for dead; it goes on as another.", "worker_id now"
    ),
    "worker.refused": Listed(ERROR, "A worker cannot start as it was told.", "error exception"),
    "worker.not_started": Listed(WARNING, "No process could be had; tried again.", "error"),
    "worker.died": Listed(WARNING, "A worker process ended; another starts.", "pid how"),
    "worker.loop_blocked": Listed(
        ERROR,
        "A body has blocked the event loop for a lease; what has not started goes back.",
        "worker_id seconds task_id task_name at",
    ),
    "worker.slots_stuck": Listed(
        ERROR, "Every slot is held by a body that was interrupted and goes on.", "worker_id slots"
    ),
    "worker.replaced": Listed(
        ERROR, "This process ends, as it will not recover; another starts.", "worker_id running"
    ),
    "worker.loop_watch_failed": Listed(ERROR, "A fault in the watch of the loop.", "exception"),
    "worker.sent_home": Listed(
        INFO, "A worker was asked to drain and has left; none takes its place.", "pid"
    ),
    "worker.results_unsaved": Listed(
        ERROR, "The store was away to the end; these tasks are rescued.", "attempts"
    ),
    "process.line_garbled": Listed(
        ERROR, "A child process said what makes no sense; it was killed.", "pid task_id error"
    ),
    "middleware.failed": Listed(
        ERROR, "A `settle` of yours raised; the attempt ended as it had.", "task_id exception"
    ),
    "worker.runner_failed": Listed(ERROR, "A fault of ours in a run.", "task_id exception"),
    "worker.slot_failed": Listed(ERROR, "A fault of ours in a slot; it was replaced.", "exception"),
    "supervisor.stopping": Listed(INFO, "It was asked to stop: drain, now or kill.", "how"),
    "supervisor.waiting": Listed(INFO, "The app does not load; a change of a file is awaited."),
    "supervisor.reloading": Listed(
        INFO, "A source file changed; the workers start anew.", "changed"
    ),
    "heartbeat.died": Listed(WARNING, "A heartbeat process ended; another starts.", "code"),
    "heartbeat.failed": Listed(ERROR, "A heartbeat failed; the next follows.", "exception"),
    "maintenance.failed": Listed(ERROR, "A round failed; the next follows.", "agent exception"),
    # Stores and dispatchers
    "store.lost": Listed(
        WARNING, "The store does not answer; said once a second at most.", "doing error"
    ),
    "store.back": Listed(INFO, "It answers again.", "doing away_seconds"),
    "store.failed": Listed(
        ERROR,
        "The store raised something unexpected.",
        "doing settlements reports task_id exception",
    ),
    "store.sweep_failed": Listed(DEBUG, "A clean-up of the tables failed; tried again.", "error"),
    "lock.next_unknown": Listed(DEBUG, "Who is next for a lock is found by looking.", "error"),
    "dispatch.lost": Listed(
        WARNING, "No wake-ups: workers poll until it is back. Said once.", "error"
    ),
    "dispatch.back": Listed(INFO, "Wake-ups again.", "mode address"),
    "dispatch.unavailable": Listed(WARNING, "No wake-ups here at all; workers poll.", "error"),
    "dispatch.no_streams": Listed(
        INFO, "MongoDB offers no change streams here; workers poll. Said once.", "error"
    ),
    "dispatch.pooled": Listed(INFO, "No wake-ups through this pooler; workers poll."),
    "dispatch.failed": Listed(WARNING, "Waiting for a wake-up failed; polled instead.", "error"),
    "dispatch.register_failed": Listed(DEBUG, "This process cannot be called now.", "error"),
    "dispatch.call_failed": Listed(DEBUG, "A wake-up could not be sent.", "error"),
    # The service
    "server.started": Listed(INFO, "It answers.", "url store"),
    "server.stopped": Listed(INFO, "It has left.", "url"),
    "request.failed": Listed(
        ERROR,
        "A request ended with status 5xx; `id` is in the answer.",
        "id code method path status error exception",
    ),
    "request.refused": Listed(
        DEBUG, "A request ended with status 4xx.", "id code method path status detail"
    ),
    "watch.failed": Listed(
        ERROR, "An event stream could not look; tried again.", "task_id exception"
    ),
    "callback.failed": Listed(
        WARNING, "A callback was not delivered.", "task_id tries error retry_in"
    ),
    "queue.paused": Listed(INFO, "Its tasks are not handed out.", "queue"),
    "queue.resumed": Listed(INFO, "Its tasks are handed out again.", "queue"),
    "token.created": Listed(INFO, "A token was made.", "token_id token_name scopes"),
    "token.revoked": Listed(INFO, "A token was ended.", "token_id"),
    # Processes
    "part.left": Listed(INFO, "A part of `holdfast up` left as asked.", "part"),
    "part.died": Listed(WARNING, "A part of `holdfast up` ended; another starts.", "part how"),
    "part.given_up": Listed(ERROR, "A part cannot live; everything stops.", "part error"),
    "process.crashed": Listed(ERROR, "An exception that nobody caught.", "pid exception"),
    "thread.crashed": Listed(ERROR, "The same in a thread.", "thread exception"),
}
