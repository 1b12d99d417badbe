"""`BASE=… TOKEN=… python literal_client.py`: somebody who knows what such services look like, and
has read nothing of ours. Standard library only; ends with 0 if every answer has what it reads.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from typing import Any

BASE, TOKEN = os.environ["BASE"], os.environ["TOKEN"]
PATIENCE = 60.0
WORK = {"task_id", "task_type", "parameters", "timeout_seconds", "trace_id"}
TASK = {
    *("task_id", "status", "priority", "effective_priority", "created_at", "started_at"),
    *("assigned_worker_id", "error", "timeout_seconds", "idempotency_key"),
}


def call(method: str, path: str, body: object = None) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE + path, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=40) as answer:
        return json.loads(answer.read() or b"{}")


def submit(priority: object, **more: object) -> str:
    body = {
        "taskType": "render",
        "priority": priority,
        "parameters": {"scene": str(priority)},
        "requiredCapabilities": ["gpu"],
        "timeoutSeconds": 600,
        "maxRetries": 2,
        "idempotencyKey": None,
        **more,
    }
    told = call("POST", "/api/tasks", body)
    assert {"task_id", "status", "queue_position"} <= told.keys(), told
    return str(told["task_id"])


def work(here: str, number: int, **more: object) -> list[str]:
    """Run what comes, until that many were seen; in which order they came."""
    seen: list[str] = []
    deadline = time.monotonic() + PATIENCE
    while len(seen) < number and time.monotonic() < deadline:
        polled = call("POST", f"{here}/poll", {"capabilities": ["gpu"], "available_capacity": 1})
        beat = call("POST", f"{here}/heartbeat", {"current_load": 1, "status": "active"})
        assert beat["acknowledged"] is True, beat
        for task in polled["tasks"]:
            assert task.keys() >= WORK, task
            seen.append(task["task_id"])
            done = {"task_id": task["task_id"], "status": "COMPLETED", "result": {"frames": 25}}
            call("POST", f"{here}/result", done | more)
    return seen


def numbers(*, completed: int) -> Any:
    """The statistics, which may be a second old, once they tell of that many."""
    deadline = time.monotonic() + PATIENCE
    while True:
        stats = call("GET", "/api/v1/queue/stats")
        if stats["throughput"]["completed_last_minute"] == completed:
            return stats
        assert time.monotonic() < deadline, stats
        time.sleep(0.1)


def main() -> None:
    worker = call("POST", "/internal/workers/register", {"capabilities": ["gpu"], "capacity": 5})
    here = f"/internal/workers/{worker['worker_id']}"
    submitted = [submit("Low"), submit(4), submit("HIGH")]

    seen = work(here, len(submitted))

    assert seen == submitted[::-1], (seen, submitted)
    for task_id in submitted:
        task = call("GET", f"/api/tasks/{task_id}")
        assert (task["status"], task["result"]) == ("completed", {"frames": 25}), task
        assert (task["retry_count"], task["max_retries"]) == (0, 2), task
        assert task["completed_at"], task
        assert task["trace_id"], task
        assert task.keys() >= TASK, task
    cut = {"taskType": "cut", "requiredCapabilities": ["gpu"], "priority": 7, "lock": None}
    last = call("GET", f"/api/tasks/{submit('High')}")
    work(here, 1, followUps=[cut])
    follow_up = call("GET", f"/api/tasks/{work(here, 1)[0]}")
    assert (follow_up["task_type"], follow_up["priority"]) == ("cut", "high"), follow_up
    assert follow_up["trace_id"] == last["trace_id"], follow_up
    never = submit("normal", requiredCapabilities=["quantum"])
    assert call("DELETE", f"/api/tasks/{never}")["status"] == "cancelled"
    stats = numbers(completed=len(submitted) + 2)
    assert stats["queues"]["medium"] == stats["queues"]["normal"], stats
    assert stats["queues"]["high"]["depth"] == 0, stats
    assert stats["queues"]["low"].keys() >= {"depth", "oldest_age_seconds"}, stats
    assert (stats["workers"]["active"], stats["workers"]["total_capacity"]) == (1, 5), stats
    assert stats["workers"].keys() >= {"draining", "dead", "used_capacity"}, stats
    assert stats["throughput"]["failed_last_minute"] == 0, stats
    sys.stdout.write("all as expected\n")


if __name__ == "__main__":
    main()
