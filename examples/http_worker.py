"""A worker over HTTP in plain Python: nothing to install, one file to copy and change.

    WORKER_TOKEN=hf_… python examples/http_worker.py http://127.0.0.1:8420 -q words -c 4

It survives restarts of the server, registers anew when it was given up, beats while its tasks run,
stops what was cancelled, and on SIGTERM or Ctrl-C finishes what it has and leaves.
"""

import argparse
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

DRAIN_SECONDS = 30.0
CANCEL_WITHIN = 2.0  # seconds between beats while there is something that could be cancelled
GONE = {"worker_gone", "worker_not_found"}


# -- your tasks: name → function. `job.stopped` is set when the result is no longer wanted ---


def words(job: "Job", text: str) -> dict[str, Any]:
    return {"words": len(text.split()), "attempt": job.attempt, "pid": os.getpid()}


def wait(job: "Job", seconds: float) -> dict[str, Any]:
    if job.stopped.wait(seconds):
        raise Stopped
    return {"waited": seconds, "attempt": job.attempt, "pid": os.getpid()}


def fail(job: "Job", message: str = "no luck", retriable: bool = True) -> None:
    raise ValueError(message) if retriable else Hopeless(message)


TASKS: dict[str, Callable[..., Any]] = {"words": words, "wait": wait, "fail": fail}


class Hopeless(Exception):
    """Raise it when trying again would not help."""


class Stopped(Exception):
    """Raise it when `job.stopped` is set: the task goes back, or is cancelled."""


# -- the worker -------------------------------------------------------------------------------


class Refused(Exception):
    """The server understood, and said no."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code


class Job:
    """A task in our hands. `owner` is the worker id it was given to."""

    def __init__(self, task: dict[str, Any], owner: str) -> None:
        self.id: str = task["task_id"]
        self.name: str = task["task_type"]
        self.attempt: int = task["attempt"]
        self.parameters: dict[str, Any] = task["parameters"]
        self.owner = owner
        self.stopped = threading.Event()


class Worker:
    """Polls in one thread, beats in another, runs each task in one of its own."""

    def __init__(self, server: str, token: str, me: dict[str, Any]) -> None:
        self.server = server.rstrip("/")
        self.token = token
        self.me = me
        self.id = ""
        self.beat_every = 10.0
        self.jobs: dict[str, Job] = {}
        self.changed = threading.Condition()
        self.stopping = threading.Event()
        self.exit_code = 0

    def run(self) -> int:
        self.register("")
        for loop in (self.beat, self.poll):
            threading.Thread(target=self.until_refused, args=(loop,), daemon=True).start()
        self.stopping.wait()
        self.leave()
        return self.exit_code

    def until_refused(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except (
            Refused
        ) as error:  # a revoked token, a wrong address: nothing that waiting would mend
            say("refused", why=str(error))
            self.exit_code = 1
            self.stopping.set()

    def register(self, gone: str) -> None:
        """Get an id; what was done under the old one belongs to others now."""
        with self.changed:
            if self.id != gone:
                return  # another thread was faster
            for job in self.jobs.values():
                job.stopped.set()
            told = self.ask("register", self.me)
            self.id, self.beat_every = told["worker_id"], told["heartbeat_seconds"]
            say("registered", worker=self.id)

    def poll(self) -> None:
        while not self.stopping.is_set():
            with self.changed:
                free = self.me["capacity"] - len(self.jobs)
                if free < 1:
                    self.changed.wait(1.0)
                    continue
                owner = self.id
            answer = self.ask_as(owner, "poll", {"available_capacity": free})
            for task in answer["tasks"] if answer else []:
                job = Job(task, owner)
                with self.changed:
                    self.jobs[job.id] = job
                    self.changed.notify_all()
                threading.Thread(target=self.work, args=(job,), daemon=True).start()

    def beat(self) -> None:
        while True:
            with self.changed:
                owner, mine = self.id, [job.id for job in self.jobs.values()]
            status = "draining" if self.stopping.is_set() else "active"
            beat = {"current_load": len(mine), "status": status, "running": mine}
            answer = self.ask_as(owner, "heartbeat", beat) or {"cancel": [], "drain": False}
            with self.changed:
                for job in filter(None, map(self.jobs.get, answer["cancel"])):
                    job.stopped.set()
            if answer["drain"]:
                self.stopping.set()
            if mine:
                time.sleep(min(CANCEL_WITHIN, self.beat_every))
            else:
                with self.changed:
                    self.changed.wait_for(lambda: self.jobs, self.beat_every)

    def work(self, job: Job) -> None:
        say("started", task=job.id, type=job.name, attempt=job.attempt)
        told = outcome(job)
        try:
            self.report(job, told)
        except Refused as error:
            say("refused", task=job.id, why=str(error))
            if error.status == 422:  # a result that cannot be stored: say so instead
                self.report(job, failed("BadResult", str(error), retriable=False))
            # Otherwise it came too late, and somebody else has the task.
        finally:
            with self.changed:
                self.jobs.pop(job.id, None)
                self.changed.notify_all()

    def report(self, job: Job, told: dict[str, Any]) -> None:
        self.ask(f"{job.owner}/result", {"task_id": job.id, "attempt": job.attempt, **told})
        say("reported", task=job.id, status=told["status"])

    def leave(self) -> None:
        """Take no more, finish, hand back what does not end in time."""
        say("leaving", running=len(self.jobs))
        self.drain()
        self.wait_for_jobs(DRAIN_SECONDS)
        for job in list(self.jobs.values()):
            job.stopped.set()
        self.wait_for_jobs(5.0)
        self.drain()
        say("left")

    def drain(self) -> None:
        try:  # once: if the server is away, it will find out by itself
            self.post(f"{self.id}/drain", {})
        except (Refused, OSError) as error:
            say("not drained", why=str(error))

    def wait_for_jobs(self, seconds: float) -> None:
        with self.changed:
            self.changed.wait_for(lambda: not self.jobs, seconds)

    def ask_as(self, owner: str, what: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Ask under an id; None if that is gone, and another was got."""
        try:
            return self.ask(f"{owner}/{what}", body)
        except Refused as error:
            if error.code not in GONE:
                raise
            if not self.stopping.is_set():
                self.register(owner)
            return None

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask until there is an answer, however often the server restarts meanwhile."""
        pause = 0.1
        while True:
            try:
                return self.post(path, body)
            except Refused as error:
                if error.status < 500 and error.status not in (408, 429):
                    raise
                problem: Exception = error
            except OSError as error:  # refused, reset, timed out, no route …
                problem = error
            say("waiting", doing=path, why=str(problem))
            if self.stopping.is_set() and path == "register":
                raise SystemExit  # there is nothing to leave
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that not all come at once
            pause = min(2 * pause, 2.0)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the operator gave the address
            f"{self.server}/internal/workers/{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=45) as response:  # noqa: S310
                answer: dict[str, Any] = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, *_problem(error)) from None
        except (ValueError, http.client.HTTPException) as error:
            raise OSError(f"half an answer: {error}") from None


def outcome(job: Job) -> dict[str, Any]:
    """Run the task, and say how it ended."""
    try:
        result = TASKS[job.name](job, **job.parameters)
        json.dumps(result, allow_nan=False)
        return {"status": "completed", "result": result}
    except Stopped:
        return {"status": "released"}
    except Exception as error:  # noqa: BLE001 - whatever a task raises is its own outcome
        hopeless = isinstance(error, Hopeless) or job.name not in TASKS
        return failed(type(error).__name__, str(error), retriable=not hopeless)


def failed(kind: str, message: str, *, retriable: bool) -> dict[str, Any]:
    return {
        "status": "failed",
        "error": {"type": kind, "message": message, "retriable": retriable},
    }


def _problem(error: urllib.error.HTTPError) -> tuple[str, str]:
    try:
        problem = json.load(error)
        return problem["code"], problem["detail"]
    except (ValueError, KeyError, TypeError):
        return "unknown", str(error)


def say(event: str, **facts: object) -> None:
    # One write: `print` sends the end of the line apart, and threads would mix theirs.
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("-q", "--queue", action="append")
    parser.add_argument("-c", "--capacity", type=int, default=4)
    parser.add_argument("--capability", action="append", default=[])
    given = parser.parse_args()
    me = {
        "capabilities": given.capability,
        "capacity": given.capacity,
        "queues": given.queue or ["default"],
        "version": "http_worker.py 1",
    }
    worker = Worker(given.server, os.environ["WORKER_TOKEN"], me)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stopping.set())
    sys.exit(worker.run())


if __name__ == "__main__":
    main()
