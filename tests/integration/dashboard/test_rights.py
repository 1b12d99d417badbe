"""What a token sees and may do in the dashboard, whatever is sent."""

from __future__ import annotations

import re

import httpx
import pytest
from tests.integration.dashboard.web import Web, submit, web
from tests.integration.server.live import LiveServer

from holdfast.core.task import State
from holdfast.dashboard.headers import POLICY
from holdfast.dashboard.pages import PAGES
from holdfast.server.access import TABLE

SECRET = "annas-secret"
KEY = "order-17"
HOSTILE = ["\x00", "%00", "'", '"><script>alert(1)</script>', "😀", "-1", "9" * 400, "[]"]
ADDRESSES = [page.path for page in PAGES]
FORMS = [action.path for page in PAGES for action in page.actions]


def of_anna(server: LiveServer) -> str:
    """A task that is nobody else's business."""
    made = server.app.submit_by_name("shop.mail", {"to": SECRET}, owner="anna", unique_key=KEY)
    return str(made.id)


def filled(path: str, task_id: str) -> str:
    return path.replace("{task_id}", task_id)


def test_a_token_that_only_reads_sees_no_buttons_and_presses_none(both: LiveServer) -> None:
    task_id = submit(both, "shop.add", a=1)
    reader = web(both, "read")

    page, listed = reader.get(f"/tasks/{task_id}").text, reader.get("/tasks").text

    assert "formaction" not in page
    assert "/edit" not in page
    assert 'name="action"' not in listed
    assert 'type="checkbox" name="ids"' not in listed
    for path, fields in {
        f"/tasks/{task_id}/cancel": {},
        f"/tasks/{task_id}/retry": {},
        f"/tasks/{task_id}/edit": {"argument.a": "2"},
        "/tasks/actions": {"action": "cancel", "ids": task_id},
    }.items():
        assert reader.post(path, **fields).status_code == 403, path
    assert reader.get(f"/tasks/confirm?action=cancel&ids={task_id}").status_code == 403
    assert both.app.get(task_id).state is State.QUEUED


def test_an_owners_token_finds_nothing_of_others_on_any_page(both: LiveServer) -> None:
    task_id = of_anna(both)
    bob = web(both, "read", "submit", "operate", owner="bob")
    anna = web(both, "read", owner="anna")

    for path in ADDRESSES:
        for query in ("", f"?q={KEY}", f"?owner=anna&unique_key={KEY}", f"?q={task_id[:13]}",
                      f"?action=cancel&ids={task_id}"):  # fmt: skip
            seen = bob.get(f"{filled(path, task_id)}{query}")
            assert seen.status_code < 500, (path, query)
            assert SECRET not in seen.text, (path, query)
            assert "shop.mail" not in seen.text, (path, query)
            if "{task_id}" in path:
                assert seen.status_code == 404
    for path in FORMS:
        answer = bob.post(filled(path, task_id), ids=task_id, action="cancel")
        assert answer.status_code < 500
    live = bob.get(f"/live/tasks/{task_id}", headers={"Accept": "application/json"})
    assert live.status_code in (200, 404)
    assert SECRET not in live.text
    assert both.app.get(task_id).state is State.QUEUED
    assert SECRET in anna.get(f"/tasks/{task_id}").text


def test_an_owners_token_steers_its_own(dashboard: LiveServer) -> None:
    task_id = of_anna(dashboard)
    anna = web(dashboard, "read", "submit", owner="anna")

    said = anna.said(anna.post(f"/tasks/{task_id}/cancel"))

    assert said == "Cancelled."
    assert dashboard.app.get(task_id).state is State.CANCELLED


def test_a_token_that_submits_steers_what_it_submitted(dashboard: LiveServer) -> None:
    other = submit(dashboard, "shop.add", a=1)
    token = dashboard.token("read", "submit")
    body = {"task_type": "shop.add", "parameters": {"a": 2}}
    headers = {"Authorization": f"Bearer {token}"}
    own = httpx.post(f"{dashboard.url}/api/v1/tasks", json=body, headers=headers).json()["task_id"]
    somebody = Web(dashboard, token)

    assert "formaction" in somebody.get(f"/tasks/{own}").text
    assert "formaction" not in somebody.get(f"/tasks/{other}").text
    assert somebody.post(f"/tasks/{other}/cancel").status_code == 403
    assert somebody.said(somebody.post(f"/tasks/{own}/cancel")) == "Cancelled."


def test_the_overview_of_a_bound_token_has_no_numbers_of_the_store(dashboard: LiveServer) -> None:
    of_anna(dashboard)

    seen = web(dashboard, "read", owner="bob").get("/").text

    assert "Nothing is under way." in seen
    assert "Workers" not in seen
    assert "mail" not in seen


def test_saved_views_are_the_tokens_or_the_owners_own(dashboard: LiveServer) -> None:
    anna, also_anna = (web(dashboard, "read", owner="anna") for _ in range(2))
    bob, other = web(dashboard, "read", owner="bob"), web(dashboard, "admin")

    anna.said(anna.post("/tasks/views", name="mine", query="status=failed"))

    assert "mine" in also_anna.get("/tasks").text
    (key,) = re.findall(r'name="key" value="([0-9a-f]+)"', anna.get("/tasks").text)
    assert 'name="key"' not in bob.get("/tasks").text + other.get("/tasks").text
    bob.post("/tasks/views/forget", key=key)
    assert "mine" in anna.get("/tasks").text
    anna.post("/tasks/views/forget", key=key)
    assert 'name="key"' not in also_anna.get("/tasks").text


def test_every_answer_has_the_strict_policy(dashboard: LiveServer) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    ops, nobody = web(dashboard, "admin"), Web(dashboard)
    paths = [filled(path, task_id) for path in ADDRESSES] + ["/static/base.css", "/nothing/here"]

    for path in [*paths, "/login", "/tasks?status=bogus"]:
        for somebody in (ops, nobody):
            answer = somebody.get(path)
            assert answer.headers["content-security-policy"] == POLICY, path
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "style=" not in re.sub(r"&[^;]+;", "", answer.text), path
            assert "<script>" not in answer.text
            assert " onclick" not in answer.text


@pytest.mark.parametrize("text", HOSTILE)
def test_no_query_breaks_a_page(dashboard: LiveServer, text: str) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    ops = web(dashboard, "admin")
    words = ["status", "queue", "task_type", "created_after", "cursor", "limit", "sort", "within",
             "parent_id", "tag", "priority", "q", "action", "ids", "all", "unknown"]  # fmt: skip

    for path in [filled(each, task_id) for each in ADDRESSES]:
        for word in words:
            answer = ops.get(path, params={word: text})
            assert answer.status_code < 500, (path, word)
            assert answer.status_code in (200, 303, 400, 404, 409, 422), (path, word)
            assert "<script>alert" not in answer.text


@pytest.mark.parametrize("text", HOSTILE)
def test_no_form_breaks_a_page(dashboard: LiveServer, text: str) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    ops = web(dashboard, "admin")
    words = ["action", "ids", "all", "pace", "name", "query", "key", "argument.a", "created_before"]

    for path in FORMS:
        for word in words:
            answer = ops.post(
                filled(path, task_id), **{"action": "cancel", "all": "yes", word: text}
            )
            assert answer.status_code < 500, (path, word)


def test_a_body_that_is_no_form_is_refused(dashboard: LiveServer) -> None:
    ops = web(dashboard, "admin")

    as_json = ops.client.post("/tasks/actions", json={"action": "cancel"})
    broken = ops.client.post(
        "/tasks/actions",
        content=b"csrf=%ff%fe",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    large = ops.client.post(
        "/tasks/actions",
        content=b"csrf=" + b"x" * 32 * 1024 * 1024,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )

    assert [as_json.status_code, broken.status_code, large.status_code] == [415, 400, 413]


def test_a_filter_that_is_misspelt_never_means_everything(dashboard: LiveServer) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    ops = web(dashboard, "admin")

    for words in ({"within": "1x"}, {"sort": "created_at"}, {"queue": " "}, {}):
        said = ops.said(ops.post("/tasks/actions", action="cancel", all="yes", **words))
        assert "every task there is" in said or "Expected 15m" in said
    assert dashboard.app.get(task_id).state is State.QUEUED


def test_the_api_is_as_it_was_and_its_page_lists_no_pages(dashboard: LiveServer) -> None:
    page = dashboard.admin.get("/openapi.json").json()

    assert set(page["paths"]) <= {re.sub(":path", "", path) for path in TABLE}
    assert dashboard.client().get("/api/v1/nothing").status_code == 401
    assert dashboard.admin.get("/api/v1/nothing").json()["code"] == "not_found"
    assert dashboard.client().get("/healthz").status_code == 200


def test_a_session_opens_no_route_of_the_api(dashboard: LiveServer) -> None:
    assert web(dashboard, "admin").get("/api/v1/tasks").status_code == 401


def test_who_asks_too_often_is_told_when_to_come_back(dashboard: LiveServer) -> None:
    busy = web(dashboard, "read", rate="3/1m")

    answers = [busy.get("/tasks") for _ in range(5)]

    assert [answer.status_code for answer in answers[-2:]] == [429, 429]
    assert "Too many requests" in answers[-1].text
