"""Executions, budgets and usage over REST, and who may see whose."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.server.live import LiveServer

from holdfast import AgentResult, AgentRun, HttpClient, Usage
from holdfast.core.task import NewTask, TaskId
from holdfast.errors import BudgetExceeded

EXECUTIONS = "/api/v1/executions"
BUDGETS = "/api/v1/budgets"
USAGE = "/api/v1/usage"
SCHEDULES = "/api/v1/schedules"
OWNERS = ("ann", "bob")


@pytest.fixture
def runs(either_server: LiveServer) -> dict[str, str]:
    """Two owners, each with a schedule of their own and one execution of it; by owner."""

    @either_server.app.agent(name="answer")
    def answer(run: AgentRun) -> AgentResult:
        run.progress(f"Reading the inbox of {run.owner}")
        usage = Usage(units=2, tokens_in=30, tokens_out=10, cost=0.05)
        return AgentResult(content=f"for {run.owner}", usage=usage)

    made: dict[str, str] = {}
    for owner in OWNERS:
        asked = {"purpose": f"secret of {owner}", "chat_id": f"chat-{owner}"}
        body = {"task_type": "answer", "parameters": asked, "name": f"of-{owner}",
                "every": "1h", "owner": owner, "title": f"Title of {owner}"}  # fmt: skip
        assert either_server.admin.post(SCHEDULES, json=body).status_code == 201
        fired = either_server.admin.post(f"{SCHEDULES}/of-{owner}/trigger")
        made[owner] = fired.json()["task_id"]
        key = f"{BUDGETS}/owner:{owner}"
        limits = {"day": {"runs": 5}, "zone": "Europe/Berlin"}
        assert either_server.admin.put(key, json=limits).status_code == 200
    either_server.work()
    return made


def test_an_execution_is_shown_whole_and_listed_newest_first(
    either_server: LiveServer, runs: dict[str, str]
) -> None:
    reader = either_server.client("read")

    one: dict[str, Any] = reader.get(f"{EXECUTIONS}/{runs['ann']}").json()
    page = reader.get(EXECUTIONS).json()

    assert one.items() >= {
        "id": runs["ann"], "schedule": "of-ann", "origin": "manual", "status": "success",
        "task_status": "completed", "task_type": "answer", "owner": "ann",
        "title": "Title of ann", "purpose": "secret of ann", "chat_id": "chat-ann",
        "content": "for ann", "steps": ["Reading the inbox of ann"], "units": 2.0,
        "tokens_in": 30, "tokens_out": 10, "cost": 0.05, "deliveries": [], "attempt": 1,
    }.items()  # fmt: skip
    assert [each["id"] for each in page["executions"]] == [runs["bob"], runs["ann"]]
    assert "deliveries" not in page["executions"][0]
    first = reader.get(EXECUTIONS, params={"limit": 1}).json()
    second = reader.get(EXECUTIONS, params={"limit": 1, "after": first["next"]}).json()
    assert [first["executions"][0]["id"], second["executions"][0]["id"]] == [
        runs["bob"], runs["ann"],
    ]  # fmt: skip
    for words in ({"owner": "ann"}, {"schedule": "of-ann"}):
        found = reader.get(EXECUTIONS, params={**words, "status": "success"}).json()
        assert [each["id"] for each in found["executions"]] == [runs["ann"]]
    assert reader.get(EXECUTIONS, params={"status": "failure"}).json()["executions"] == []
    assert reader.get(EXECUTIONS, params={"status": "done"}).status_code == 422
    assert reader.get(f"{EXECUTIONS}/{'0' * 8}").status_code in {404, 422}


def test_the_delivery_tasks_of_an_execution_are_told_with_it(
    either_server: LiveServer, runs: dict[str, str]
) -> None:
    app, run = either_server.app, TaskId(runs["ann"])
    (new,) = app.client.new_tasks([app.registry["shop.add"].call(1)])
    sent = NewTask(new.id, "holdfast.deliver", b'{"channel": "email"}', parent_id=run, owner="ann")
    app.wait_for(app.client.store.add([sent], idempotency_window=0))

    (told,) = either_server.admin.get(f"{EXECUTIONS}/{run}").json()["deliveries"]

    assert told == {"task_id": new.id, "channel": "email", "status": "queued", "attempts": 0,
                    "error": None, "delivered_at": None}  # fmt: skip


def test_a_budget_is_set_shown_and_refuses_a_run_by_name(
    either_server: LiveServer, runs: dict[str, str]
) -> None:
    admin = either_server.admin
    shown = admin.get(f"{BUDGETS}/owner:ann").json()
    assert (shown["key"], shown["zone"], shown["day"]["runs"]) == ("owner:ann", "Europe/Berlin", 5)
    assert shown["day"]["used"] == {
        "runs": 1, "units": 2.0, "tokens_in": 30, "tokens_out": 10, "cost": 0.05,
    }  # fmt: skip
    assert shown["month"]["runs"] is None

    changed = admin.put(f"{BUDGETS}/owner:ann", json={"month": {"cost": 0.06}}).json()
    refused = admin.post(f"{SCHEDULES}/of-ann/trigger")

    assert (changed["day"]["runs"], changed["month"]["cost"]) == (None, 0.06)
    assert changed["zone"] == "Europe/Berlin"
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (409, "budget_exceeded")
    assert problem["budget"] == "owner:ann"
    with (
        HttpClient(either_server.url, token=either_server.token("admin")) as client,
        pytest.raises(BudgetExceeded) as raised,
    ):
        client.schedules.trigger("of-ann")
    assert raised.value.budget == "owner:ann"
    assert admin.delete(f"{BUDGETS}/owner:ann").json() == {"key": "owner:ann", "deleted": True}
    assert admin.delete(f"{BUDGETS}/owner:ann").status_code == 404
    assert admin.post(f"{SCHEDULES}/of-ann/trigger").status_code == 201


@pytest.mark.parametrize(
    ("key", "body", "status"),
    [
        ("ann", {}, 404),
        ("schedule:none", {}, 404),
        ("owner:ann", {"day": {"run": 1}}, 422),
        ("owner:ann", {"day": {"runs": -1}}, 422),
        ("owner:ann", {"month": {"cost": "much"}}, 422),
        ("owner:ann", {"zone": "Mars/Base"}, 422),
        ("owner:ann", {"week": {}}, 422),
    ],
)
def test_what_is_no_budget_is_refused_and_nothing_is_stored(
    live_server: LiveServer, key: str, body: dict[str, Any], status: int
) -> None:
    answer = live_server.admin.put(f"{BUDGETS}/{key}", json=body)

    assert answer.status_code == status, answer.text
    assert live_server.admin.get(BUDGETS).json() == {"budgets": [], "next": None}


def test_usage_is_told_in_all_by_day_and_by_schedule(
    either_server: LiveServer, runs: dict[str, str]
) -> None:
    reader = either_server.client("read")

    everybody = reader.get(USAGE).json()
    ann = reader.get(USAGE, params={"owner": "ann", "by": "schedule"}).json()

    one = {"runs": 1, "units": 2.0, "tokens_in": 30, "tokens_out": 10, "cost": 0.05}
    assert everybody["totals"] == {
        "runs": 2, "units": 4.0, "tokens_in": 60, "tokens_out": 20, "cost": 0.1,
    }  # fmt: skip
    assert (ann["totals"], ann["zone"]) == (one, "Europe/Berlin")
    assert ann["rows"] == [{"key": "of-ann", **one}]
    with HttpClient(either_server.url, token=either_server.token("read")) as client:
        report = client.usage(owner="ann", by="schedule")
    assert (report.first, report.last, report.totals.cost) == (ann["from"], ann["to"], 0.05)
    assert [(row.key, row.totals.runs) for row in report.rows] == [("of-ann", 1)]
    days = reader.get(USAGE, params={"owner": "ann", "by": "day", "from": ann["to"]}).json()
    assert days["rows"] == [{"key": ann["to"], **one}]
    long_ago = reader.get(USAGE, params={"from": "2020-01-01", "to": "2020-01-31"}).json()
    assert long_ago["totals"]["runs"] == 0
    for wrong in ({"from": "2026-02-30"}, {"from": "2026-03-02", "to": "2026-03-01"},
                  {"from": "2020-01-01"}, {"by": "week"}):  # fmt: skip
        assert reader.get(USAGE, params=wrong).status_code == 422, wrong


def test_a_token_of_one_owner_finds_nothing_of_another(
    either_server: LiveServer, runs: dict[str, str]
) -> None:
    ann = either_server.client("read", "submit", "operate", owner="ann")
    either_server.admin.put(f"{BUDGETS}/schedule:of-ann", json={"day": {"runs": 5}})
    either_server.admin.put(f"{BUDGETS}/schedule:of-bob", json={"day": {"runs": 5}})

    assert ann.get(f"{EXECUTIONS}/{runs['ann']}").status_code == 200
    listed = ann.get(EXECUTIONS).json()["executions"]
    assert [each["id"] for each in listed] == [runs["ann"]]
    assert [each["key"] for each in ann.get(BUDGETS).json()["budgets"]] == [
        "owner:ann", "schedule:of-ann",
    ]  # fmt: skip
    assert ann.get(f"{BUDGETS}/owner:ann").status_code == 200
    assert ann.get(f"{BUDGETS}/schedule:of-ann").status_code == 200
    assert ann.get(USAGE).json()["totals"]["runs"] == 1
    assert ann.get(USAGE).json()["owner"] == "ann"

    hidden = [
        ann.get(f"{EXECUTIONS}/{runs['bob']}"),
        ann.get(f"{BUDGETS}/owner:bob"),
        ann.get(f"{BUDGETS}/schedule:of-bob"),
    ]
    empty = [
        ann.get(EXECUTIONS, params={"owner": "bob"}),
        ann.get(EXECUTIONS, params={"schedule": "of-bob"}),
        ann.get(BUDGETS, params={"owner": "bob"}),
        ann.get(USAGE, params={"owner": "bob", "by": "schedule"}),
    ]
    refused = [
        ann.put(f"{BUDGETS}/owner:ann", json={}),
        ann.put(f"{BUDGETS}/owner:bob", json={}),
        ann.delete(f"{BUDGETS}/owner:ann"),
    ]
    assert [each.status_code for each in hidden] == [404] * 3
    assert [each.status_code for each in refused] == [403] * 3
    for each in (*hidden, *empty):
        said = each.text.replace("owner:bob", "").replace("of-bob", "").replace('"bob"', "")
        assert "bob" not in said.replace(runs["bob"], ""), each.url
    assert empty[0].json()["executions"] == empty[1].json()["executions"] == []
    assert empty[2].json()["budgets"] == empty[3].json()["rows"] == []
    assert empty[3].json()["totals"]["runs"] == 0


def test_a_token_of_some_tasks_finds_their_executions_alone(
    either_server: LiveServer, runs: dict[str, str]
) -> None:
    other = either_server.client("read", names=["shop.add"])

    assert other.get(EXECUTIONS).json()["executions"] == []
    assert other.get(f"{EXECUTIONS}/{runs['ann']}").status_code == 404
    assert other.get(USAGE).json()["totals"]["runs"] == 0
    assert other.get(f"{BUDGETS}/owner:ann").status_code == 404
    assert other.get(BUDGETS).json()["budgets"] == []
