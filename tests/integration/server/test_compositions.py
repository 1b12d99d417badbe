"""Tasks with children, and tasks that come after others, over REST."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.server.live import LiveServer

from holdfast import HttpClient

TASKS = "/api/v1/tasks"
ADD = "shop.add"
BATCH = "holdfast.batch"


def add(a: int, **more: Any) -> dict[str, Any]:
    return {"task_type": ADD, "parameters": {"a": a}, **more}


def submit(server: LiveServer, body: Any) -> str:
    answer = server.admin.post(TASKS, json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["task_id"])


def result(server: LiveServer, task_id: str) -> Any:
    task = server.admin.get(f"{TASKS}/{task_id}").json()
    assert task["status"] == "completed", task
    return task["result"]


def test_a_parent_and_its_children_are_one_submit(either_server: LiveServer) -> None:
    server = either_server
    task_id = submit(
        server,
        {
            "task_type": BATCH,
            "order": "sequence",
            "children": [
                add(1),
                {"task_type": BATCH, "children": [add(2), add(3)]},
                add(4),
            ],
        },
    )
    assert server.admin.get(f"{TASKS}/{task_id}").json()["status"] == "blocked"

    server.work()

    assert result(server, task_id) == [1, [2, 3], 4]
    tree = server.admin.get(f"{TASKS}/{task_id}/tree").json()
    assert (tree["ended"], tree["total"], tree["left_out"]) == (3, 3, 0)
    assert [child["task_type"] for child in tree["children"]] == [ADD, BATCH, ADD]
    assert [child["total"] for child in tree["children"]] == [0, 2, 0]
    children = server.admin.get(f"{TASKS}/{task_id}/children").json()
    assert [task["result"] for task in children["tasks"]] == [1, [2, 3], 4]


def test_a_body_takes_the_results_of_its_children(live_server: LiveServer) -> None:
    implied = submit(live_server, {"task_type": "shop.anything", "children": [add(1), add(2)]})
    said = submit(
        live_server,
        {
            "task_type": "shop.anything",
            "results": {"value": "children"},
            "children": [add(1)],
            "on_failure": "continue",
        },
    )
    before = submit(live_server, {**add(5), "body": "before", "children": [add(6)]})

    live_server.work()

    assert [result(live_server, each) for each in (implied, said, before)] == [None, None, 5]


def test_children_wait_for_each_other_by_name(live_server: LiveServer) -> None:
    children = [
        {"task_type": ADD, "name": "sum", "results": {"a": "left", "b": "right"}},
        add(1, name="left"),
        add(2, name="right"),
        add(7, after=["sum"], when="always"),
        {"task_type": "shop.anything", "results": {"value": ["left", "right"]}},
    ]
    task_id = submit(live_server, {"task_type": BATCH, "children": children})

    live_server.work()

    assert result(live_server, task_id) == [1, 2, 3, 7, None]


def test_a_task_comes_after_tasks_that_exist(live_server: LiveServer) -> None:
    first = submit(live_server, add(1))
    failed = submit(live_server, {"task_type": "shop.fail"})
    second = submit(
        live_server,
        {"task_type": ADD, "parameters": {"b": 5}, "results": {"a": first.upper()}},
    )
    mended = submit(live_server, add(9, after=[failed], when="failure"))
    dropped = submit(live_server, add(9, after=[failed]))
    assert live_server.admin.get(f"{TASKS}/{second}").json()["status"] == "blocked"

    live_server.work()

    assert [result(live_server, second), result(live_server, mended)] == [6, 9]
    task = live_server.admin.get(f"{TASKS}/{dropped}").json()
    assert (task["status"], task["reason"]) == ("cancelled", "dependency_failed")
    assert failed in task["error"]["message"]


def nested(levels: int) -> dict[str, Any]:
    body = add(1)
    for _ in range(levels):
        body = {"task_type": BATCH, "children": [body]}
    return body


def test_children_are_nested_64_levels_deep(live_server: LiveServer) -> None:
    submit(live_server, nested(64))
    assert live_server.app.count() == 65

    answer = live_server.admin.post(TASKS, json=nested(65))

    assert answer.status_code == 409
    assert "64 levels" in answer.json()["detail"]
    assert live_server.app.count() == 65


UNKNOWN = str(uuid4())
REFUSED: dict[str, tuple[Any, int, str, str]] = {
    "no children": ({"task_type": BATCH, "children": []}, 422, "children", "at least 1"),
    "a batch without children": ({"task_type": BATCH}, 409, "children", "only waits"),
    "unknown name": (
        {"task_type": BATCH, "children": [add(1, after=["x"])]},
        409, "after", "called 'x'",
    ),
    "circle": (
        {
            "task_type": BATCH,
            "children": [add(1, name="a", after=["b"]), add(2, name="b", after=["a"])],
        },
        409, "after", "a -> b -> a",
    ),
    "two alike": (
        {"task_type": BATCH, "children": [add(1, name="a"), add(2, name="a")]},
        409, "name", "two members are called 'a'",
    ),
    "unknown task": (add(1, after=[UNKNOWN]), 409, "after", f"there is no task {UNKNOWN}"),
    "unknown task of a child": (
        {"task_type": BATCH, "children": [add(1, after=[UNKNOWN])]},
        409, "after", f"there is no task {UNKNOWN}",
    ),
    "names without siblings": (add(1, after=["x"]), 409, "after", "expected ids"),
    "a bad child": (
        {"task_type": BATCH, "children": [add(1), {"task_type": ADD, "parameters": {"a": "x"}}]},
        422, "children[1].parameters.a", "integer",
    ),
    "an unknown child": (
        {"task_type": BATCH, "children": [{"task_type": "shop.ad"}]},
        422, "children[0].task_type", "shop.ad",
    ),
    "a deep one": (
        {"task_type": BATCH, "children": [{"task_type": BATCH, "children": [{"task_type": ADD}]}]},
        422, "children[0].children[0].parameters.a", "required",
    ),
    "a key of a child": (
        {"task_type": BATCH, "children": [add(1, unique_key="k")]}, 409, "unique_key", "hole|led",
    ),
    "no such body": ({**add(1), "children": [add(1)], "body": "none"}, 409, "body", BATCH),
    "order of one": (add(1, order="sequence"), 409, "order", "there are none"),
    "given twice": (add(1, results={"a": UNKNOWN}), 409, "results.a", "parameters"),
    "no parameter": (add(1, results={"z": UNKNOWN}), 409, "results.z", "no parameter"),
    "no word": ({"task_type": BATCH, "children": [add(1)], "order": "x"}, 422, "order", "seq"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "status", "field", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_whole(
    live_server: LiveServer, body: Any, status: int, field: str, says: str
) -> None:
    answer = live_server.admin.post(TASKS, json=[add(1), body])

    problem = answer.json()
    assert (answer.status_code, problem.get("field")) == (status, field_in(problem, field)), problem
    assert any(each in problem["detail"] for each in says.split("|")), problem
    assert live_server.app.count() == 0


def field_in(problem: Any, field: str) -> str:
    """Those that are found before anything is planned say which item of the array is meant."""
    given = str(problem.get("field"))
    return f"[1].{field}" if given.startswith("[1]") else field


def test_a_key_of_the_whole_creates_it_once(live_server: LiveServer) -> None:
    body = {"task_type": BATCH, "idempotency_key": "k", "children": [add(1), add(2)]}

    first = live_server.admin.post(TASKS, json=body)
    again = live_server.admin.post(TASKS, json=body)
    other = live_server.admin.post(TASKS, json={**body, "children": [add(3)]})

    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert again.json()["task_id"] == first.json()["task_id"]
    assert again.json()["existing_by"] == "idempotency_key"
    assert live_server.app.count() == 3


def test_a_bound_token_is_bound_in_all_levels(live_server: LiveServer) -> None:
    theirs = submit(live_server, add(1, owner="bob"))
    client = live_server.client("submit", "read", owner="ann", names=["shop.add", BATCH])

    made = client.post(TASKS, json={"task_type": BATCH, "children": [add(1), nested(1)]})
    other = client.post(TASKS, json={"task_type": BATCH, "children": [{"task_type": "shop.fail"}]})
    foreign = client.post(TASKS, json={"task_type": BATCH, "owner": "bob", "children": [add(1)]})
    spy = client.post(TASKS, json={"task_type": ADD, "results": {"a": theirs}})

    assert made.status_code == 201
    owners = {task.owner for task in live_server.app.list().tasks if task.id != theirs}
    assert owners == {"ann"}
    assert [answer.status_code for answer in (other, foreign, spy)] == [403, 403, 404]
    tree = client.get(f"{TASKS}/{made.json()['task_id']}/tree")
    assert tree.json()["total"] == 2
    assert client.get(f"{TASKS}/{theirs}/tree").status_code == 404
    assert client.get(f"{TASKS}/{theirs}/children").status_code == 404


def test_lines_may_have_children(live_server: LiveServer) -> None:
    bodies = [add(1), {"task_type": BATCH, "children": [add(2)]}]
    content = b"\n".join(json.dumps(body).encode() for body in bodies)

    answer = live_server.admin.post(
        TASKS, content=content, headers={"Content-Type": "application/x-ndjson"}
    )

    assert answer.json() == {"accepted": 2, "existing": 0}
    assert live_server.app.count() == 3


def test_the_http_client_composes_too(live_server: LiveServer) -> None:
    with HttpClient(live_server.url, token=live_server.token("admin")) as client:
        first = client.submit(ADD, {"a": 1})
        later = client.submit(ADD, {"b": 2}, results={"a": first.task_id})
        whole = client.submit(
            BATCH,
            children=[
                client.call(ADD, {"a": 1}, name="one"),
                client.call(ADD, {"b": 1}, results={"a": "one"}),
            ],
            on_failure="cancel_rest",
        )
        live_server.work()

        assert client.result(later.task_id) == 3
        assert client.result(whole.task_id) == [1, 2]
        tree = client.tree(whole.task_id)
        assert (tree.ended, tree.total, [each.name for each in tree.children]) == (2, 2, [ADD, ADD])
        page = client.children(whole.task_id)
        assert [task.result for task in page.tasks] == [1, 2]
