"""POST /api/v1/tasks: one task, an array, a stream of lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast import Added, Call, Debounce, Holdfast, HttpClient, Middleware, NextSubmit
from holdfast.core.task import State

TASKS = "/api/v1/tasks"
LINES = {"Content-Type": "application/x-ndjson"}


def lines(*bodies: object) -> bytes:
    return b"\n".join(json.dumps(body).encode() for body in bodies)


def test_a_submitted_task_is_acknowledged_and_runs(either_server: LiveServer) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1, "b": 2}}

    answer = either_server.client("submit").post(TASKS, json=body)
    either_server.work()

    assert answer.status_code == 201
    task_id = answer.json()["task_id"]
    assert answer.json() == {
        "task_id": task_id,
        "status": "queued",
        "queue_position": 1,
        "outcome": "created",
        "existing": False,
        "trace_id": task_id.replace("-", ""),
    }
    assert either_server.app.get(task_id).result == b"3"


def test_a_submit_that_is_debounced_or_throttled_says_so(sqlite_url: str) -> None:
    app = Holdfast(url=sqlite_url)

    @app.task(name="index", debounce=Debounce("1h", key="{doc}"))
    def index(doc: int, text: str = "") -> None: ...

    @app.task(name="report", throttle="1h")
    def report() -> None: ...

    with serve(app) as server:
        bodies = [{"task_type": "index", "parameters": {"doc": 1, "text": word}} for word in "abc"]
        first, second = (server.admin.post(TASKS, json=body).json() for body in bodies[:2])
        array = server.admin.post(TASKS, json=[*bodies, {"task_type": "report"}]).json()["tasks"]
        late = server.admin.post(TASKS, json={"task_type": "report"})
        delayed = server.admin.post(TASKS, json=bodies[0] | {"delay_seconds": 5})
        shown = server.admin.get(f"{TASKS}/{array[2]['task_id']}").json()
        gone = server.admin.get(f"{TASKS}/{first['task_id']}").json()
        with HttpClient(server.url, token=server.token("submit")) as client:
            again = client.submit("report")

    assert (first["outcome"], second["outcome"]) == ("created", "debounced")
    assert second["existing"] is False
    assert second["queue_position"] is None
    assert (gone["status"], gone["reason"]) == ("cancelled", "superseded")
    assert len({each["task_id"] for each in array[:3]}) == 1
    assert shown["parameters"] == {"doc": 1, "text": "c"}
    assert (late.status_code, late.json()["outcome"]) == (200, "throttled")
    assert late.json()["task_id"] == array[3]["task_id"]
    assert "existing_by" not in late.json()
    assert (again.outcome, again.created) == ("throttled", False)
    assert (delayed.status_code, delayed.json()["field"]) == (422, "delay_seconds")


def test_every_option_of_a_submit_reaches_the_task(live_server: LiveServer) -> None:
    options: dict[str, Any] = {
        "queue": "later",
        "priority": "low",
        "required_capabilities": ["gpu"],
        "timeout_seconds": 12.5,
        "max_retries": 7,
        "run_at": "2099-01-01T10:00:00+02:00",
        "expires_at": "2099-01-02T10:00:00Z",
        "idempotency_key": "once",
        "unique_key": "one",
        "lock": "the-printer",
        "tags": ["a", "b"],
        "owner": "ann",
    }
    body = {"task_type": "shop.add", "parameters": {"a": 1}, **options}

    task_id = live_server.admin.post(TASKS, json=body).json()["task_id"]
    shown = live_server.admin.get(f"{TASKS}/{task_id}").json()

    wanted = options | {"run_at": "2099-01-01T08:00:00Z"}
    assert {word: shown[word] for word in wanted} == wanted
    assert shown["parameters"] == {"a": 1}


def test_the_middleware_of_the_app_surrounds_what_comes_over_http(live_server: LiveServer) -> None:
    @live_server.app.middleware
    class Stamp(Middleware):
        async def submit(
            self, calls: Sequence[Call[Any]], call_next: NextSubmit
        ) -> Sequence[Added]:
            return await call_next([call.with_options(tags=["web"]) for call in calls])

    body = {"task_type": "shop.add", "parameters": {"a": 1}}

    one = live_server.admin.post(TASKS, json=body).json()
    live_server.admin.post(TASKS, json=[body, body])
    live_server.admin.post(TASKS, content=lines(body), headers=LINES)

    assert live_server.app.get(one["task_id"]).tags == ("web",)
    assert live_server.app.count(tag="web") == 4


def test_tags_by_name_are_tags_with_their_values(live_server: LiveServer) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}}
    named = {"batch": "daily", "part": 2}

    answer = live_server.admin.post(TASKS, json={**body, "tags": named}).json()
    refused = live_server.admin.post(TASKS, json={**body, "tags": {"batch": None}})

    shown = live_server.admin.get(f"{TASKS}/{answer['task_id']}").json()
    assert shown["tags"] == ["batch=daily", "part=2"]
    assert (refused.status_code, refused.json()["field"]) == (422, "tags")


def test_a_delayed_task_is_not_in_line(live_server: LiveServer) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}, "delay_seconds": 60}

    answer = live_server.admin.post(TASKS, json=body).json()

    assert (answer["status"], answer["queue_position"]) == ("queued", None)


def test_positions_in_line_grow_with_the_queue(live_server: LiveServer) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}}

    answers = [live_server.admin.post(TASKS, json=body).json() for _ in range(3)]

    assert [answer["queue_position"] for answer in answers] == [1, 2, 3]


def test_a_position_in_line_goes_by_rank(live_server: LiveServer) -> None:
    def submit(priority: str) -> int | None:
        body = {"task_type": "shop.add", "parameters": {"a": 1}, "priority": priority}
        position: int | None = live_server.admin.post(TASKS, json=body).json()["queue_position"]
        return position

    given = ["low", "low", "high", "normal", "critical", "high", "low"]

    assert [submit(priority) for priority in given] == [1, 2, 1, 2, 1, 3, 7]


def test_positions_in_an_array_are_those_after_each_other(live_server: LiveServer) -> None:
    body = [{"task_type": "shop.add", "parameters": {"a": 1}}] * 3

    answer = live_server.admin.post(TASKS, json=body).json()

    assert [task["queue_position"] for task in answer["tasks"]] == [1, 2, 3]


@pytest.mark.parametrize("key", ["idempotency_key", "unique_key"])
def test_a_repeated_key_answers_200_with_the_first_task(
    either_server: LiveServer, key: str
) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}, key: "k"}
    client = either_server.client("submit")
    first = client.post(TASKS, json=body)

    second = client.post(TASKS, json=body)

    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["task_id"] == first.json()["task_id"]
    assert (second.json()["existing"], second.json()["existing_by"]) == (True, key)


def test_an_idempotency_key_with_another_body_is_a_conflict(live_server: LiveServer) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}, "idempotency_key": "k"}
    first = live_server.admin.post(TASKS, json=body).json()

    answer = live_server.admin.post(TASKS, json=body | {"parameters": {"a": 2}})

    assert answer.status_code == 409
    assert answer.json()["code"] == "idempotency_conflict"
    assert answer.json()["task_id"] == first["task_id"]


def test_an_unknown_type_is_refused_with_the_closest_name(live_server: LiveServer) -> None:
    answer = live_server.admin.post(TASKS, json={"task_type": "shop.mial"})

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["code"], problem["field"]) == ("unknown_task_type", "task_type")
    assert problem["suggestion"] == "shop.mail"


def test_a_server_without_tasks_says_so(sqlite_url: str) -> None:
    with serve(Holdfast(url=sqlite_url)) as server:
        answer = server.admin.post(TASKS, json={"task_type": "shop.add"})

    assert (answer.status_code, answer.json()["code"]) == (409, "no_tasks_here")


def test_an_unknown_type_is_taken_on_an_open_queue_and_no_python_worker_touches_it(
    live_server: LiveServer,
) -> None:
    body = {"task_type": "thumbnail", "parameters": {"deep": [{"x": None}]}, "queue": "js"}

    answer = live_server.admin.post(TASKS, json=body)
    live_server.work()

    assert answer.status_code == 201
    task = live_server.app.get(answer.json()["task_id"])
    assert (task.state, task.requires) == (State.QUEUED, frozenset({"http"}))
    shown = live_server.admin.get(f"{TASKS}/{task.id}").json()
    assert shown["parameters"] == {"deep": [{"x": None}]}


def test_arguments_that_do_not_fit_are_refused_by_their_place(live_server: LiveServer) -> None:
    body = {"task_type": "shop.order", "parameters": {"customer": 1, "items": [{"name": "x"}]}}

    problem = live_server.admin.post(TASKS, json=body).json()

    assert (problem["status"], problem["code"]) == (422, "invalid_arguments")
    assert problem["field"] == "parameters.items[0].price"


def test_text_is_no_integer(live_server: LiveServer) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": "1"}}

    assert live_server.admin.post(TASKS, json=body).status_code == 422


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"delay_seconds": 1, "run_at": "2099-01-01T00:00:00Z"}, "delay_seconds"),
        (
            {"run_at": "2099-01-02T00:00:00Z", "expires_at": "2099-01-01T00:00:00Z"},
            "expires_at",
        ),
    ],
)
def test_options_that_contradict_each_other_are_a_conflict(
    live_server: LiveServer, options: dict[str, object], field: str
) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}, **options}

    problem = live_server.admin.post(TASKS, json=body).json()

    assert (problem["status"], problem["code"]) == (409, "conflicting_options")
    assert problem["field"] == field


def test_a_capability_that_holdfast_gives_cannot_be_required(live_server: LiveServer) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}, "required_capabilities": ["task:x"]}

    problem = live_server.admin.post(TASKS, json=body).json()

    assert (problem["status"], problem["field"]) == (409, "required_capabilities[0]")


def test_a_secret_parameter_is_never_shown(live_server: LiveServer) -> None:
    body = {"task_type": "shop.login", "parameters": {"user": "ann", "password": "hunter2"}}

    task_id = live_server.admin.post(TASKS, json=body).json()["task_id"]
    shown = live_server.admin.get(f"{TASKS}/{task_id}")
    listed = live_server.admin.get(TASKS)

    assert "hunter2" not in shown.text + listed.text
    assert shown.json()["parameters"]["user"] == "ann"


# -- arrays --------------------------------------------------------------------------------------


def test_an_array_is_stored_in_its_order(either_server: LiveServer) -> None:
    bodies = [{"task_type": "shop.add", "parameters": {"a": n}} for n in range(50)]

    answer = either_server.client("submit").post(TASKS, json=bodies)

    assert answer.status_code == 201
    ids = [task["task_id"] for task in answer.json()["tasks"]]
    assert len(ids) == 50
    assert ids == sorted(ids)
    assert either_server.app.get(ids[7]).payload == b'{"a":7}'


def test_an_array_with_one_bad_task_stores_none_of_them(live_server: LiveServer) -> None:
    bodies = [{"task_type": "shop.add", "parameters": {"a": n}} for n in (1, "x", 3)]

    problem = live_server.admin.post(TASKS, json=bodies).json()

    assert (problem["status"], problem["index"]) == (422, 1)
    assert problem["field"] == "[1].parameters.a"
    assert live_server.app.count() == 0


def test_an_empty_array_is_refused(live_server: LiveServer) -> None:
    assert live_server.admin.post(TASKS, json=[]).status_code == 422


# -- streams -------------------------------------------------------------------------------------


def test_a_stream_of_lines_is_stored_whole(either_server: LiveServer) -> None:
    def stream() -> Iterator[bytes]:
        for n in range(2500):
            yield lines({"task_type": "shop.add", "parameters": {"a": n}}) + b"\n"

    answer = either_server.client("submit").post(TASKS, content=stream(), headers=LINES)

    assert answer.status_code == 201
    assert answer.json() == {"accepted": 2500, "existing": 0}
    assert either_server.app.count() == 2500


def test_a_stream_answers_with_ids_if_asked(live_server: LiveServer) -> None:
    body = lines(*({"task_type": "shop.add", "parameters": {"a": n}} for n in range(3)))

    answer = live_server.admin.post(f"{TASKS}?ids=true", content=body, headers=LINES).json()

    assert answer["accepted"] == 3
    assert [live_server.app.get(each).payload for each in answer["task_ids"]] == [
        b'{"a":0}',
        b'{"a":1}',
        b'{"a":2}',
    ]


def test_a_bad_line_is_named_and_what_stood_before_it_is_stored(live_server: LiveServer) -> None:
    good = {"task_type": "shop.add", "parameters": {"a": 1}}
    body = lines(*[good] * 1200, {"task_type": "shop.nothing"}, good)

    answer = live_server.admin.post(TASKS, content=body, headers=LINES)

    assert answer.status_code == 422
    problem = answer.json()
    assert (problem["code"], problem["failed_at_line"]) == ("unknown_task_type", 1201)
    assert problem["accepted"] == 1200 == live_server.app.count()


def test_a_conflict_in_a_stream_is_named_by_its_line(live_server: LiveServer) -> None:
    bodies = [
        {"task_type": "shop.add", "parameters": {"a": n}, "idempotency_key": f"k{n % 5}"}
        for n in range(8)
    ]

    problem = live_server.admin.post(TASKS, content=lines(*bodies), headers=LINES).json()

    assert (problem["code"], problem["failed_at_line"]) == ("idempotency_conflict", 6)
    assert problem["accepted"] == 5 == live_server.app.count()


def test_blank_lines_and_carriage_returns_are_nothing(live_server: LiveServer) -> None:
    line = lines({"task_type": "shop.add", "parameters": {"a": 1}})

    answer = live_server.admin.post(
        TASKS, content=b"\n" + line + b"\r\n\r\n" + line + b"\n\n", headers=LINES
    )

    assert answer.json()["accepted"] == 2


def test_an_endless_line_is_refused_before_it_ends(sqlite_url: str) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000

    with serve(make_app(sqlite_url, max_payload="64KiB")) as server:
        answer = server.admin.post(TASKS, content=endless(), headers=LINES)

    assert (answer.status_code, answer.json()["code"]) == (413, "line_too_long")
