"""Executions, usage, budgets, settings and tokens in the dashboard, without a script."""

from __future__ import annotations

import re

import pytest
from tests.integration.dashboard.agenda import field, fill, schedule, sent
from tests.integration.dashboard.web import Web, web
from tests.integration.server.live import LiveServer

from holdfast.core.delivery import NAME
from holdfast.core.task import State
from holdfast.setting_sources import STARS


def test_executions_are_listed_with_what_they_used_and_found(both: LiveServer) -> None:
    ran = fill(both)
    reader = web(both, "read")

    every = reader.get("/executions").text
    good, other = (reader.get(f"/executions?{q}").text for q in ("status=success", "owner=bob"))
    bad = reader.get("/executions?status=bogus")

    assert re.findall(r'<tr data-key="([^"]+)"', good) == [ran]
    assert every.count("<tr data-key=") == 2
    assert "RuntimeError: no" in every
    assert "No execution fits." in other
    assert bad.status_code == 422
    assert field(bad.text, "status")


def test_pages_of_executions_follow_each_other(both: LiveServer) -> None:
    schedule(both)
    made = [str(both.app.schedules.trigger("nightly")) for _ in range(5)]
    reader, seen, path = web(both, "read"), list[str](), "/executions?limit=2&owner=anna"

    while path:
        page = reader.get(path).text
        seen += re.findall(r'<tr data-key="([^"]+)"', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        path = following[1].replace("&amp;", "&") + "&limit=2" if following else ""

    assert seen == made[::-1]


def test_one_execution_shows_its_content_as_text(both: LiveServer) -> None:
    both.app.schedules.create(
        "shop.assistant", "0 3 * * *", name="talk", owner="anna",
        arguments={"purpose": "<b onclick=alert(1)>bold</b>"},
    )  # fmt: skip
    ran = both.app.schedules.trigger("talk")
    both.work()

    page = web(both, "read").get(f"/executions/{ran}").text

    assert "done: &lt;b onclick=alert(1)&gt;bold&lt;/b&gt;" in page
    assert "<b onclick" not in page
    assert f'href="/tasks/{ran}"' in page
    assert 'href="/schedules/talk"' in page
    assert web(both, "read").get("/executions/nothing").status_code == 404


def test_deliveries_are_told_of_and_those_given_up_are_brought_again(both: LiveServer) -> None:
    schedule(both, channels=["inbox"])
    ran = str(both.app.schedules.trigger("nightly"))
    both.app.pause("deliveries")
    both.work()
    (delivery,) = both.app.list(name=NAME).tasks
    ops, reader = web(both, "admin"), web(both, "read")
    path = f"/executions/{ran}/deliveries"

    waiting = reader.get("/executions").text
    both.app.cancel(delivery.id)
    failed, one = reader.get("/executions").text, ops.get(f"/executions/{ran}").text
    strange = ops.post(f"{path}/{ran}/replay")
    said = sent(ops, f"{path}/{delivery.id}/replay")
    again = both.app.get(delivery.id).state
    both.app.resume("deliveries")
    both.work()

    assert "1 waiting" in waiting
    assert "1 failed" in failed
    assert "Deliver again" in one
    assert "Deliver again" not in reader.get(f"/executions/{ran}").text
    assert strange.status_code == 404
    assert said == "It is delivered again as soon as a worker is free."
    assert again is State.QUEUED
    assert "1 delivered" in reader.get("/executions").text


def test_usage_is_told_by_day_and_by_schedule(both: LiveServer) -> None:
    fill(both)
    reader = web(both, "read")

    page = reader.get("/usage?measure=runs").text
    nobody = reader.get("/usage?owner=nobody").text

    assert re.search(r'tile-value">2</span> <span class="tile-title">Runs', page)
    assert 'href="/schedules/nightly">nightly' in page
    assert "1 of 9 runs" in page or "2 of 9 runs" in page
    assert "No run was fired on these days" in nobody


@pytest.mark.parametrize(
    ("query", "at"),
    [("measure=x", "measure"), ("from=2026-13-01", "from"), ("from=2026-02-30", "from"),
     ("from=2026-02-03&to=2026-02-01", "from"), ("from=1999-01-01", "from"), ("to=x", "to")],
)  # fmt: skip
def test_a_bad_range_is_said_at_the_field(dashboard: LiveServer, query: str, at: str) -> None:
    answer = web(dashboard, "read").get(f"/usage?{query}")

    assert answer.status_code == 422
    assert field(answer.text, at)


def test_a_budget_is_set_changed_and_deleted(both: LiveServer) -> None:
    ops = web(both, "admin")
    first = {"is_new": "yes", "whose": "owner:", "name": "ann", "day.runs": "20", "zone": "UTC"}

    sent(ops, "/usage/budget", **first)
    made = both.app.budgets.get("owner:ann")
    again = ops.post("/usage/budget", **first)
    sent(ops, "/usage/budget", **first | {"is_new": "no", "day.runs": "", "month.cost": "5.5"})
    changed = both.app.budgets.get("owner:ann")
    asked = ops.get("/usage/budget/delete?key=owner:ann").text
    sent(ops, "/usage/budget/delete", key="owner:ann")

    assert made is not None
    assert changed is not None
    assert made.day.runs == 20
    assert "already" in field(again.text, "name")
    assert (changed.day.runs, changed.month.cost) == (None, 5.5)
    assert "Delete the budget owner:ann?" in asked
    assert both.app.budgets.get("owner:ann") is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("day.runs", "x"), ("day.runs", "1.5"), ("day.runs", "-1"), ("month.cost", "nan"),
        ("month.cost", "1e300"), ("zone", "Moon/Base"), ("name", ""), ("name", "a\x00b"),
        ("whose", "everybody:"), ("name", "x" * 300),
    ],
)  # fmt: skip
def test_a_budget_that_makes_no_sense_is_refused_at_the_field(
    dashboard: LiveServer, name: str, text: str
) -> None:
    words = {"is_new": "yes", "whose": "owner:", "name": "ann", "day.runs": "20", name: text}

    answer = web(dashboard, "admin").post("/usage/budget", **words)

    assert answer.status_code == 422
    assert field(answer.text, name)
    assert dashboard.app.budgets.list().budgets == ()


def test_settings_are_shown_without_secrets(dashboard: LiveServer) -> None:
    settings = dashboard.app.settings
    secrets = {"llm_key": "sk-secret", "callback_secret": "c" * 40, "vapid_private_key": "v" * 40,
               "fcm_credentials": '{"private_key": "fcm"}', "timer_secret": "t" * 40,
               "delivery_secret": "d" * 40, "smtp_url": "smtp://u:hunter2@mail.example",
               "llm_url": "https://llm.example/v1?api_key=hunter2"}  # fmt: skip
    for name, text in secrets.items():
        object.__setattr__(settings, name, text)

    page = web(dashboard, "read").get("/settings").text

    for text in ("sk-secret", "c" * 40, "v" * 40, "private_key&#34;", "hunter2", "d" * 40):
        assert text not in page
    assert STARS in page
    assert "Schema of the store" in page
    assert "7 days" in page


def test_a_secret_is_shown_once_and_opens_what_was_chosen(both: LiveServer) -> None:
    ops = web(both, "admin")

    answer = ops.post(
        "/settings/tokens", name="ci", scopes=["read", "submit"], owner="anna", queues="mail, js",
        task_types="shop.mail", max_priority="normal", rate="100/1m", expires_in_days="30",
    )  # fmt: skip
    (secret,) = set(re.findall(r"hf_[0-9a-f]{16}_[\w-]{43}", answer.text))
    later = [ops.get(path).text for path in ("/settings/tokens", "/settings", "/")]

    token = both.app.wait_for(both.app.client.tokens.check(secret))
    assert answer.status_code == 201
    assert answer.text.count(secret) == 1
    assert answer.headers["cache-control"] == "no-store"
    assert secret not in "".join(later) + str(answer.headers) + str(answer.url)
    assert token is not None
    assert sorted(token.scopes) == ["read", "submit"]
    assert token.bounds.owner == "anna"
    assert token.bounds.queues == frozenset(("mail", "js"))
    assert str(token.bounds.rate) == "100/1m"
    assert token.expires_at is not None
    assert Web(both, secret).get("/tasks").status_code == 200


@pytest.mark.parametrize(
    ("name", "text", "at"),
    [
        ("name", "", "name"), ("scopes", "", "scopes"), ("scopes", "root", "scopes"),
        ("rate", "many", "rate"), ("max_priority", "x", "max_priority"),
        ("expires_in_days", "x", "expires_in_days"), ("expires_in_days", "0", "expires_in_days"),
        ("expires_in_days", "-1", "expires_in_days"), ("queues", "*", "queues"),
        ("owner", "a\x00b", "owner"), ("name", "x" * 201, "name"), ("scopes", "admin", "owner"),
    ],
)  # fmt: skip
def test_a_token_that_cannot_be_is_refused_at_the_field(
    dashboard: LiveServer, name: str, text: str, at: str
) -> None:
    ops = web(dashboard, "admin")
    words = {"name": "ci", "scopes": "read", "owner": "anna", name: text}

    answer = ops.post("/settings/tokens", **words)

    assert answer.status_code == 422
    assert field(answer.text, at), answer.text[-6000:]
    assert "hf_" not in answer.text
    assert len(dashboard.app.wait_for(dashboard.app.client.tokens.list())) == 1


def test_a_token_is_revoked_after_a_question(both: LiveServer) -> None:
    token_id, text = both.new_token("read")
    ops, other = web(both, "admin"), Web(both, text)

    asked = ops.get(f"/settings/tokens/{token_id}/revoke").text
    before = other.get("/tasks").status_code
    said = sent(ops, f"/settings/tokens/{token_id}/revoke")

    assert "Revoke the token test?" in asked
    assert before == 200
    assert said == "The token test is revoked."
    assert other.get("/tasks").status_code == 303
    assert ops.post(f"/settings/tokens/{token_id}/revoke").status_code == 404


def test_who_revokes_their_own_token_is_warned_and_logged_out(dashboard: LiveServer) -> None:
    token_id, text = dashboard.new_token("admin")
    ops = Web(dashboard, text)

    asked = ops.get(f"/settings/tokens/{token_id}/revoke").text
    ops.post(f"/settings/tokens/{token_id}/revoke")

    assert "you will be logged out" in asked
    assert ops.get("/settings").headers["location"].startswith("/login")
