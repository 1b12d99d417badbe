"""Delivers the notices that are due, again and again if need be, but not for ever.

Any number of couriers may be at it: a notice is one courier's for a while, and goes to another if
that one dies. So a receiver may hear the same twice, and knows it by `Holdfast-Delivery`.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Final

from holdfast.client import Client
from holdfast.core.callback import Callback
from holdfast.core.task import Json, Task
from holdfast.core.task_answers import TASK
from holdfast.errors import TaskNotFound
from holdfast.logs import EventLog
from holdfast.server.callbacks.posting import TIME_LIMIT, CallFailed, NotCalled, post
from holdfast.server.callbacks.signing import HEADER, sign
from holdfast.views import to_json
from holdfast.worker.version import version

log = EventLog("holdfast.server")

AT_A_TIME = 16
LEASE = 3 * TIME_LIMIT
LOOK_EVERY = 1.0
MOST_TRIES = 10
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 3600.0
"""Seconds between two tries: doubled each time, jittered. Ten tries take about an hour and a
half."""
GONE = 410
TOLD: Final = (
    *("task_id", "task_type", "queue", "status", "reason", "attempt", "created_at"),
    *("last_started_at", "finished_at", "error", "trace_id", "tags", "owner"),
)


class Courier:
    """Takes notices that are due, and says how their delivery went."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tick(self) -> float:
        """Deliver one batch; rest a second if that was all."""
        due = await self._client.due_callbacks(limit=AT_A_TIME, lease=LEASE)
        await asyncio.gather(*(self._deliver(notice) for notice in due))
        return 0.0 if len(due) == AT_A_TIME else LOOK_EVERY

    async def _deliver(self, notice: Callback) -> None:
        retry_in: float | None = None
        error: str | None = None
        try:
            status = await self._post(notice)
            if not 200 <= status < 300:
                error = f"the receiver answered with status {status}"
                retry_in = None if status == GONE else pause_after(notice.tries)
        except TaskNotFound:
            return  # forgotten meanwhile, and its notice with it
        except NotCalled as problem:
            error = str(problem)
        except CallFailed as problem:
            error, retry_in = str(problem), pause_after(notice.tries)
        if error is not None:
            log.warning(
                "callback.failed", task_id=notice.task_id, tries=notice.tries, error=error,
                retry_in=retry_in,
            )  # fmt: skip
        await self._client.callback_done(notice, retry_in=retry_in, error=error)

    async def _post(self, notice: Callback) -> int:
        settings = self._client.settings
        task = await self._client.get(notice.task_id)
        body = to_json(told(task))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"holdfast/{version()}",
            "traceparent": task.traceparent,
            "Holdfast-Delivery": f"{notice.task_id}.{notice.ended_at.timestamp():.6f}",
        }
        if settings.callback_secret is not None:
            headers[HEADER] = sign(settings.callback_secret, body, int(time.time()))
        return await post(notice.url, body, headers, allowed_hosts=settings.callback_hosts)


def pause_after(tries: int) -> float | None:
    """How long to wait after so many tries; None to give up."""
    if tries >= MOST_TRIES:
        return None
    longest: float = min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret


def told(task: Task) -> Json:
    """What a receiver is told. Neither arguments nor result: who may see those can ask for them."""
    return TASK.pick(task, *TOLD)
