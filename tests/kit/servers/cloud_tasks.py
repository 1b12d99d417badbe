"""Google Cloud Tasks as its documentation says it is: the real API over gRPC, strictly.

    with CloudTasks() as cloud:                     # calls at their time, by the host's clock
        timer_url = cloud.timer_url(target)
    with CloudTasks(clock=FakeClock()) as cloud:    # calls when the test lets time pass
        cloud.advance(timedelta(days=30))

What other emulators let pass is refused as the service does: a name that is taken, or was within
the last hour, what is scheduled more than 30 days ahead, deadlines out of bounds, queues and tasks
that are not there. A call that is not answered with a 2xx is made again, with backoff. With OIDC a
call has a token signed by keys that `certs_url` shows.
"""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

import grpc
from google.cloud.tasks_v2 import (
    CreateTaskRequest,
    DeleteTaskRequest,
    GetTaskRequest,
    HttpMethod,
    ListTasksRequest,
    ListTasksResponse,
    Task,
)
from google.protobuf import empty_pb2
from tests.kit.servers.oidc import Identity

from holdfast.testing.clock import FakeClock

QUEUE = "projects/shop/locations/europe-west1/queues/wake-ups"
HORIZON = timedelta(hours=720)
GRAVE = timedelta(hours=1)
FIRST_BACKOFF = timedelta(seconds=0.1)
LONGEST_BACKOFF = timedelta(hours=1)
MOST_ATTEMPTS = 100
AT_ONCE = 16
"""How many calls are under way at a time."""
LARGEST = 100 * 1024
SERVICE = "google.cloud.tasks.v2.CloudTasks"
ID = re.compile(r"[A-Za-z0-9_-]{1,500}")


class Call(NamedTuple):
    """One call that was made, and how it was answered; 0 if nobody did."""

    at: datetime
    name: str
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Waiting:
    """A task that is to be called, or called again."""

    task: Task
    at: datetime
    attempts: int = 0
    is_called: bool = False


@dataclass
class State:
    """What the service knows."""

    queues: set[str]
    tasks: dict[str, Waiting] = field(default_factory=dict)
    graves: dict[str, datetime] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


class Refusal(Exception):
    """A request that is answered with a status of gRPC."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class CloudTasks:
    """The service at `endpoint`, with one queue."""

    def __init__(self, clock: FakeClock | None = None, *, patience: float = 30.0) -> None:
        self.state = State({QUEUE})
        self.clock = clock
        self.identity = Identity()
        self.is_away = False
        self._patience = patience
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._calls = ThreadPoolExecutor(AT_ONCE)
        self._pool = ThreadPoolExecutor(4)
        self._server = grpc.server(self._pool)
        self._server.add_generic_rpc_handlers((self._handlers(),))
        self._port = self._server.add_insecure_port("127.0.0.1:0")
        self._thread = threading.Thread(target=self._call_at_their_time)

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) if self.clock is None else self.clock.now

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self._port}"

    def timer_url(self, target: str, **words: str) -> str:
        """The setting for a server whose route is at `target`."""
        _, project, _, location, _, queue = QUEUE.split("/")
        said = {"target": target, "endpoint": self.endpoint, "insecure": "true", **words}
        return f"gcloud://{project}/{location}/{queue}?{urlencode(said)}"

    def names(self) -> list[str]:
        """The tasks that wait."""
        with self._lock:
            return sorted(self.state.tasks)

    def lose_everything(self) -> None:
        """Forget what waits, as no service should."""
        with self._lock:
            for name in self.state.tasks:
                self.state.graves[name] = self.now
            self.state.tasks.clear()

    def advance(self, span: timedelta | float) -> None:
        """Let time pass, each call made at its time."""
        assert self.clock is not None, "with the host's clock time passes by itself"
        until = self.clock.now + (span if isinstance(span, timedelta) else timedelta(seconds=span))
        while (name := self._due(until)) is not None:
            self.clock.advance(max(timedelta(0), self.state.tasks[name].at - self.clock.now))
            self._call(name)
        self.clock.advance(max(timedelta(0), until - self.clock.now))

    def __enter__(self) -> Self:
        self._server.start()
        if self.clock is None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        if self.clock is None:
            self._thread.join(self._patience)
        self._calls.shutdown(cancel_futures=True)
        self._server.stop(None).wait(self._patience)
        self._pool.shutdown()
        self.identity.close()

    # -- the API -----------------------------------------------------------------------------------

    def _create(self, request: CreateTaskRequest) -> Task:
        task = request.task
        self._check_queue(request.parent)
        name = task.name or f"{request.parent}/tasks/{len(self.state.graves)}{self.now:%s%f}"
        queue, _, own = name.rpartition("/tasks/")
        if queue != request.parent or not ID.fullmatch(own):
            raise _invalid(f"Task name {name!r} is not of the queue {request.parent!r}")
        at = task.schedule_time if "schedule_time" in task else self.now
        if at > self.now + HORIZON:
            raise _invalid("The task schedule time must be no more than 720h in the future.")
        _check_call(task)
        if name in self.state.tasks:
            raise _exists(f"The task {name!r} exists.")
        if self.now - self.state.graves.get(name, datetime.min.replace(tzinfo=UTC)) < GRAVE:
            raise _exists("The task cannot be created because a task with this name existed.")
        task.name, task.schedule_time = name, max(at, self.now)
        self.state.tasks[name] = Waiting(task, max(at, self.now))
        return task

    def _get(self, request: GetTaskRequest) -> Task:
        return self._found(request.name).task

    def _delete(self, request: DeleteTaskRequest) -> Any:
        self._found(request.name)
        self._bury(request.name)
        return empty_pb2.Empty()

    def _list(self, request: ListTasksRequest) -> ListTasksResponse:
        self._check_queue(request.parent)
        names = [n for n in sorted(self.state.tasks) if n > request.page_token]
        size = min(request.page_size or 1000, 1000)
        page = names[:size]
        return ListTasksResponse(
            tasks=[self.state.tasks[name].task for name in page],
            next_page_token=page[-1] if len(names) > size else "",
        )

    def _found(self, name: str) -> Waiting:
        if name not in self.state.tasks:
            raise Refusal(grpc.StatusCode.NOT_FOUND, f"The task {name!r} does not exist.")
        return self.state.tasks[name]

    def _check_queue(self, name: str) -> None:
        if name not in self.state.queues:
            raise Refusal(grpc.StatusCode.NOT_FOUND, f"Queue {name!r} does not exist.")

    def _bury(self, name: str) -> None:
        if self.state.tasks.pop(name, None) is not None:
            self.state.graves[name] = self.now

    def _handlers(self) -> Any:
        methods: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
            "CreateTask": (self._create, CreateTaskRequest.deserialize, Task.serialize),
            "GetTask": (self._get, GetTaskRequest.deserialize, Task.serialize),
            "DeleteTask": (
                self._delete,
                DeleteTaskRequest.deserialize,
                empty_pb2.Empty.SerializeToString,
            ),
            "ListTasks": (self._list, ListTasksRequest.deserialize, ListTasksResponse.serialize),
        }
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                name: grpc.unary_unary_rpc_method_handler(
                    self._answering(name, answer),
                    request_deserializer=reader,
                    response_serializer=writer,
                )
                for name, (answer, reader, writer) in methods.items()
            },
        )

    def _answering(self, name: str, answer: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        def asked(request: Any, context: Any) -> Any:
            with self._lock, _told(context):
                self.state.requests.append(name)
                if self.is_away:
                    raise Refusal(grpc.StatusCode.UNAVAILABLE, "away")
                return answer(request)

        return asked

    # -- its calls ---------------------------------------------------------------------------------

    def _call_at_their_time(self) -> None:
        while not self._closing.wait(0.01):
            while not self._closing.is_set() and (name := self._due(self.now)) is not None:
                with self._lock:
                    if (waiting := self.state.tasks.get(name)) is None:
                        continue
                    waiting.is_called = True
                self._calls.submit(self._call, name)

    def _due(self, until: datetime) -> str | None:
        with self._lock:
            due = [
                (each.at, name)
                for name, each in self.state.tasks.items()
                if each.at <= until and not each.is_called
            ]
        return min(due)[1] if due else None

    def _call(self, name: str) -> None:
        """Call, and call again later unless it went well."""
        with self._lock:
            waiting = self.state.tasks.get(name)
        if waiting is None:
            return
        headers = self._headers(waiting)
        status = self._post(waiting.task, headers)
        with self._lock:
            body = waiting.task.http_request.body
            self.state.calls.append(Call(self.now, name, status, headers, body))
            waiting.attempts += 1
            if 200 <= status < 300 or waiting.attempts >= MOST_ATTEMPTS:
                self._bury(name)
                return
            backoff = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(waiting.attempts - 1, 16))
            waiting.at, waiting.is_called = self.now + backoff, False

    def _headers(self, waiting: Waiting) -> dict[str, str]:
        request = waiting.task.http_request
        headers = {
            **dict(request.headers),
            "User-Agent": "Google-Cloud-Tasks",
            "X-CloudTasks-QueueName": QUEUE.rpartition("/")[2],
            "X-CloudTasks-TaskName": waiting.task.name.rpartition("/")[2],
            "X-CloudTasks-TaskRetryCount": str(waiting.attempts),
            "X-CloudTasks-TaskETA": f"{waiting.at.timestamp():.6f}",
        }
        if account := request.oidc_token.service_account_email:
            audience = request.oidc_token.audience or request.url
            headers["Authorization"] = f"Bearer {self.identity.token(account, audience)}"
        return headers

    def _post(self, task: Task, headers: dict[str, str]) -> int:
        request = task.http_request
        method = HttpMethod(request.http_method).name
        ready = urllib.request.Request(request.url, request.body, headers, method=method)
        try:
            with urllib.request.urlopen(ready, timeout=self._patience) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        except OSError:
            return 0


def _check_call(task: Task) -> None:
    request = task.http_request
    if not request.url.startswith(("http://", "https://")) or len(request.url) > 2083:
        raise _invalid("HttpRequest.url is required and must be http or https")
    if len(Task.serialize(task)) > LARGEST:
        raise _invalid("Task size too large")
    deadline = task.dispatch_deadline
    if deadline and not timedelta(seconds=15) <= deadline <= timedelta(minutes=30):
        raise _invalid("The dispatch deadline must be between 15s and 30m")


def _invalid(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


def _exists(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.ALREADY_EXISTS, message)


@contextmanager
def _told(context: Any) -> Iterator[None]:
    try:
        yield
    except Refusal as refusal:
        context.abort(refusal.code, str(refusal))
