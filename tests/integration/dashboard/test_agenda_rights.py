"""Whatever is sent to the pages of schedules, executions, usage and settings, nobody sees or does
more than their token lets them.
"""

from __future__ import annotations

import pytest
from tests.integration.dashboard.agenda import PAGES, fill, schedule
from tests.integration.dashboard.test_rights import HOSTILE
from tests.integration.dashboard.web import Web, web
from tests.integration.server.live import LiveServer

from holdfast.dashboard import pages
from holdfast.dashboard.headers import POLICY

OURS = ("/schedules", "/executions", "/usage", "/settings")
ADDRESSES = [page.path for page in pages.PAGES if page.path.startswith(OURS)]
FORMS = [
    each.path for page in pages.PAGES for each in page.actions if each.path.startswith(OURS)
]  # fmt: skip
SECRET = "annas-secret"
FIELDS = {"rule": "0 3 * * *", "task_type": "shop.add", "parameters": '{"a": 1}', "name": "made",
          "text": "every day at 9 write a report", "zone": "UTC", "tz": "UTC", "title": "Changed",
          "begin": "2026-01-01T00:00", "end": "2026-01-02T00:00", "whose": "owner:",
          "key": "owner:anna", "scopes": "read", "is_new": "no", "day.runs": "1"}  # fmt: skip
MORE = ["until", "note", "owner", "chat", "confirm", "channels", "tags", "jitter_seconds",
        "max_runs", "exdate", "expires_in_days", "rate"]  # fmt: skip
WORDS = ["owner", "status", "text", "zone", "after", "limit", "schedule", "from", "to", "measure",
         "key", "whose", "name", "begin", "end", "task_type", "rule", "unknown"]  # fmt: skip


def filled(path: str, ran: str, name: str = "nightly") -> str:
    for word, value in {
        "name": name,
        "execution_id": ran,
        "task_id": ran,
        "token_id": "0" * 16,
    }.items():
        path = path.replace(f"{{{word}}}", value)
    return path


def state(server: LiveServer) -> object:
    """All that the forms here could change."""
    client = server.app.client
    tokens = server.app.wait_for(client.tokens.list())
    return (
        list(server.app.schedules.list().schedules),
        [(each.key, each.day.runs) for each in server.app.budgets.list().budgets],
        sum(each.revoked_at is not None for each in tokens),
        server.app.count(),
    )


def test_a_token_that_only_reads_sees_no_buttons_and_presses_none(both: LiveServer) -> None:
    ran = fill(both)
    reader, before = web(both, "read"), state(both)

    for path in ("/schedules", "/schedules/nightly", "/executions", f"/executions/{ran}", "/usage",
                 "/settings"):  # fmt: skip
        page = reader.get(path)
        main = page.text[page.text.index("<main") : page.text.index("</main>")]
        assert page.status_code == 200, path
        for filters in ("Filter", "Show"):
            main = main.replace(f'<button type="submit" class="main">{filters}', "")
        assert "<button" not in main, path
        for word in ("/edit", "/delete", "/backfill", "/schedules/new", "/budget", "/tokens"):
            assert f'{word}"' not in main, (path, word)
    for path in FORMS:
        assert reader.post(filled(path, ran), **FIELDS).status_code == 403, path

    assert state(both) == before


def test_who_steers_some_may_not_steer_budgets_or_tokens(dashboard: LiveServer) -> None:
    ran = fill(dashboard)
    anna = web(dashboard, "read", "submit", "operate", owner="anna")
    before = state(dashboard)

    for path in FORMS:
        if path.startswith(("/usage", "/settings")):
            assert anna.post(filled(path, ran), **FIELDS).status_code == 403, path
    for path in ("/settings", "/settings/tokens", "/usage/budget"):
        assert anna.get(path).status_code == 403, path
    assert web(dashboard, "read", "submit", "operate").get("/settings/tokens").status_code == 403
    assert state(dashboard) == before


def test_an_owners_token_sees_and_steers_nothing_of_others(both: LiveServer) -> None:
    ran = fill(both)
    schedule(both, "annas-secret", title=SECRET, description=SECRET)
    bob = web(both, "read", "submit", "operate", owner="bob")
    before = state(both)

    for path in ADDRESSES:
        for query in (
            "",
            "?owner=anna",
            "?text=annas",
            "?schedule=annas-secret",
            "?key=owner:anna",
        ):
            seen = bob.get(f"{filled(path, ran, SECRET)}{query}")
            assert seen.status_code in (200, 403, 404, 422), (path, query)
            if "{" in path:
                assert seen.status_code in (403, 404), path
            elif "text=" not in query and "schedule=" not in query:
                assert SECRET not in seen.text, (path, query)
    for path in FORMS:
        if "{name}" in path or "{execution_id}" in path:
            answer = bob.post(filled(path, ran, SECRET), **FIELDS)
            assert answer.status_code == 404, path
    for path in (f"/live/schedules/{SECRET}", f"/live/executions/{ran}"):
        live = bob.get(path, headers={"Accept": "application/json"})
        assert SECRET not in live.text
        assert "shop.add" not in live.text

    assert state(both) == before


def test_what_a_bound_token_makes_is_its_owners(both: LiveServer) -> None:
    anna = web(both, "read", "submit", "operate", owner="anna")

    anna.said(anna.post("/schedules/new", **{**FIELDS, "key": "", "name": "mine"}))
    refused = anna.post("/schedules/new", **{**FIELDS, "name": "yours", "owner": "bob"})
    seen = anna.post("/schedules/new/sentence", text="every day at 9 write a report", zone="UTC",
                     owner="bob")  # fmt: skip

    made = both.app.schedules.get("mine")
    assert made is not None
    assert made.about.owner == "anna"
    assert 'name="owner"' not in anna.get("/schedules/new").text
    assert refused.status_code in (403, 422)
    assert seen.status_code in (403, 422)
    assert [each.id for each in both.app.schedules.list().schedules] == ["mine"]


def test_a_token_of_some_tasks_makes_schedules_of_those_only(dashboard: LiveServer) -> None:
    some = web(dashboard, "read", "submit", names="shop.mail")

    answer = some.post("/schedules/new", **FIELDS)

    assert answer.status_code in (403, 422)
    assert "shop.mail" in answer.text
    assert dashboard.app.schedules.list().schedules == []


@pytest.mark.parametrize("text", HOSTILE)
def test_no_query_breaks_a_page(dashboard: LiveServer, text: str) -> None:
    ran, ops = fill(dashboard), web(dashboard, "admin")

    for path in [filled(each, ran) for each in ADDRESSES]:
        for word in WORDS:
            answer = ops.get(path, params={word: text})
            assert answer.status_code in (200, 303, 404, 409, 422), (path, word, answer.text[-400:])
            assert "<script>alert" not in answer.text


@pytest.mark.parametrize("text", HOSTILE)
def test_no_form_breaks_a_page(dashboard: LiveServer, text: str) -> None:
    ran, ops = fill(dashboard), web(dashboard, "admin")
    safe = {**FIELDS, "rule": "bogus", "name": "", "begin": "", "text": ""}

    for path in FORMS:
        if path.endswith(("/delete", "/revoke")):
            continue
        for word in (*FIELDS, *MORE):
            answer = ops.post(filled(path, ran), **{**safe, word: text})
            assert answer.status_code < 500, (path, word, answer.text[-400:])
            assert "<script>alert" not in answer.text


@pytest.mark.parametrize("path", ADDRESSES)
def test_whoever_is_not_logged_in_is_led_to_the_login(dashboard: LiveServer, path: str) -> None:
    answer = Web(dashboard).get(filled(path, "0" * 8 + "-0000-0000-0000-" + "0" * 12))

    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=")


def test_every_page_has_the_strict_policy_and_no_inline_script(dashboard: LiveServer) -> None:
    fill(dashboard)
    ops = web(dashboard, "admin")

    for name, path in PAGES.items():
        answer = ops.get(path)
        assert answer.headers["content-security-policy"] == POLICY, name
        assert " style=" not in answer.text
        assert "<script>" not in answer.text
        assert " onclick" not in answer.text


def test_every_form_is_refused_without_the_sessions_secret(dashboard: LiveServer) -> None:
    ran, ops = fill(dashboard), web(dashboard, "admin")
    before = state(dashboard)

    for path in FORMS:
        answer = ops.client.post(filled(path, ran), data=FIELDS)
        strange = ops.client.post(
            filled(path, ran), data=FIELDS, headers={"Origin": "https://evil.example"}
        )
        assert (answer.status_code, strange.status_code) == (403, 403), path

    assert state(dashboard) == before
