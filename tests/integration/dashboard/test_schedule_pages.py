"""Schedules in the dashboard: found, made, changed, steered and tried, without a script."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.dashboard.agenda import field, fill, schedule, sent
from tests.integration.dashboard.web import web
from tests.integration.server.live import LiveServer

from holdfast.schedules.series import Series, Status

NEW = {"task_type": "shop.add", "parameters": '{"a": 7}', "rule": "30 9 * * 1-5"}


def kept(server: LiveServer, name: str = "nightly") -> Series:
    found = server.app.schedules.get(name)
    assert found is not None
    return found


def names(server: LiveServer) -> list[str]:
    return [each.id for each in server.app.schedules.list().schedules]


def test_a_list_says_what_runs_when_and_how_it_went(both: LiveServer) -> None:
    fill(both)
    page = web(both, "read").get("/schedules").text

    assert "every day at 03:00, UTC" in page
    assert re.search(r'class="cell is-success" href="/tasks/[0-9a-f-]{36}"', page)
    assert re.search(r'<span class="unseen">failure: [^<]+UTC', page)
    assert page.count('<li class="day') == 14


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("text=BROKEN", ["broken"]),
        ("owner=anna&status=active", ["broken", "nightly"]),
        ("status=paused", []),
        ("owner=bob", []),
        ("text=shop.add", ["nightly"]),
    ],
)
def test_schedules_are_found_by_what_is_said_of_them(
    dashboard: LiveServer, query: str, found: list[str]
) -> None:
    fill(dashboard)

    page = web(dashboard, "read").get(f"/schedules?{query}").text

    assert re.findall(r'<tr data-key="([^"]+)"', page) == found


def test_pages_of_schedules_follow_each_other(both: LiveServer) -> None:
    made = [schedule(both, f"s{n}") for n in range(5)]
    somebody, seen, path = web(both, "read"), list[str](), "/schedules?limit=2&owner=anna"

    while path:
        page = somebody.get(path).text
        seen += re.findall(r'<tr data-key="([^"]+)"', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        path = f"{html.unescape(following[1])}&limit=2" if following else ""

    assert seen == made


def test_the_calendar_is_in_the_zone_that_is_asked_for(dashboard: LiveServer) -> None:
    schedule(dashboard)
    reader = web(dashboard, "read")

    utc, tokyo = (reader.get(f"/schedules{q}").text for q in ("", "?zone=Asia/Tokyo"))
    bad = reader.get("/schedules?zone=Moon/Base")

    assert '<span class="clock">03:00</span>' in utc
    assert '<span class="clock">12:00</span>' in tokyo
    assert bad.status_code == 422
    assert "Moon/Base" in bad.text


def test_a_schedule_is_made_by_its_form(both: LiveServer) -> None:
    ops = web(both, "admin")

    said = sent(
        ops, "/schedules/new", **NEW, tz="Europe/Berlin", name="morning", title="In the morning",
        overlap="queue_one", catch_up="all", catch_up_most="7", jitter_seconds="30", owner="anna",
        max_retries="2", tags="a, b", pause_after_failures="3", exdate="2030-01-01, 2030-01-02",
    )  # fmt: skip

    made = kept(both, "morning")
    assert said == "This is the new schedule. It runs from now on."
    assert (made.rule.line, made.rule.tz, made.rule.words) == (
        "30 9 * * 1-5",
        "Europe/Berlin",
        made.rule.words,
    )
    assert (made.about.title, made.about.owner) == ("In the morning", "anna")
    assert (made.overlap, made.catch_up.mode, made.catch_up.most) == ("queue_one", "all", 7)
    assert (made.jitter, made.pause_after_failures) == (30.0, 3)
    assert (made.template.tags[:2], made.template.max_retries) == (("a", "b"), 2)
    assert len(made.rule.exdate) == 2


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("rule", "", "rule, such as"),
        ("rule", "61 * * * *", "61"),
        ("rule", "every x", "x"),
        ("rule", '{"cron": ', "JSON"),
        ("rule", "2001-01-01T00:00", "to come"),
        ("tz", "Europe/Berlni", "Berlin"),
        ("task_type", "shop.ad", "shop.add"),
        ("parameters", '{"a": "x"}', "a"),
        ("parameters", "{", "JSON"),
        ("parameters", "[]", "dictionary"),
        ("max_runs", "x", "whole number"),
        ("catch_up_most", "0", "1"),
        ("jitter_seconds", "-1", "0"),
        ("jitter_seconds", "nan", "finite"),
        ("overlap", "bogus", "skip"),
        ("priority", "bogus", "critical"),
        ("name", "a/b", "slash"),
        ("name", "nightly", "already"),
        ("channels", "pigeon", "pigeon"),
        ("owner", "a\x00b", "owner"),
        ("dtstart", "soon", "soon"),
        ("title", "x" * 10_001, "10000"),
    ],
)
def test_what_is_wrong_is_said_at_the_field_and_nothing_is_made(
    dashboard: LiveServer, name: str, text: str, says: str
) -> None:
    schedule(dashboard)

    answer = web(dashboard, "admin").post("/schedules/new", **{**NEW, name: text})

    assert answer.status_code == 422
    assert says.casefold() in field(answer.text, name).casefold() or name == "owner"
    assert field(answer.text, name), answer.text
    assert f'aria-describedby="p-{name}"' in answer.text
    assert names(dashboard) == ["nightly"]


def test_a_preview_shows_the_next_ten_runs_and_stores_nothing(both: LiveServer) -> None:
    ops = web(both, "read", "submit")

    seen = ops.post("/schedules/new/preview", rule="30 9 * * 1-5", tz="Europe/Berlin")
    bad = ops.post("/schedules/new/preview", rule="30 25 * * *", tz="UTC")

    assert seen.status_code == 200
    assert "on Monday to Friday at 09:30, Europe/Berlin" in seen.text
    assert len(re.findall(r"\d\d 09:30:00</span>|09:30:00 CES?T", seen.text)) == 10
    assert bad.status_code == 422
    assert "25" in field(bad.text, "rule")
    assert names(both) == []


def test_an_edit_changes_what_was_changed_and_nothing_else(both: LiveServer) -> None:
    schedule(both, channels=[], description="sums up")
    ops = web(both, "admin")
    before = kept(both)
    form = fields_in(ops.get("/schedules/nightly/edit").text)

    same = sent(ops, "/schedules/nightly/edit", **form)
    unchanged = kept(both)
    said = sent(
        ops,
        "/schedules/nightly/edit",
        **form | {"rule": "0 4 * * *", "tz": "Asia/Tokyo", "title": "", "parameters": '{"a": 9}'},
    )

    after = kept(both)
    assert same == "Nothing was changed."
    assert unchanged == before
    assert said == "Changed. It goes on from now."
    assert (after.rule.line, after.rule.tz, after.about.title) == ("0 4 * * *", "Asia/Tokyo", None)
    assert after.about.description == "sums up"
    assert after.template.payload != before.template.payload


def fields_in(page: str) -> dict[str, str | list[str]]:
    """A form as a browser would send it untouched."""
    form = page[page.index("data-preview-path") :]
    found: dict[str, str | list[str]] = {
        name: html.unescape(value)
        for name, value in re.findall(r'<input id="i-\w+" name="(\w+)" value="([^"]*)"', form)
    }
    for name, text in re.findall(r'<textarea id="i-\w+" name="(\w+)"[^>]*>([^<]*)<', form):
        found[name] = html.unescape(text)
    for name, options in re.findall(r'<select id="i-\w+" name="(\w+)"[^>]*>(.*?)</select>', form):
        chosen = re.search(r'<option value="([^"]*)" selected', options)
        assert chosen is not None
        found[name] = chosen[1]
    return found


@pytest.mark.parametrize(
    "rule",
    [
        "every 90m",
        "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0",
        "2031-12-24T18:00",
        {"kind": "rrule", "rules": ["FREQ=DAILY;BYHOUR=1", "FREQ=WEEKLY;BYDAY=MO"]},
    ],
)
def test_every_kind_of_rule_survives_its_own_form(dashboard: LiveServer, rule: object) -> None:
    dashboard.app.schedules.create("shop.add", rule, name="any", tz="UTC", arguments={"a": 1})
    ops = web(dashboard, "admin")
    before = kept(dashboard, "any")
    form = fields_in(ops.get("/schedules/any/edit").text)

    sent(ops, "/schedules/any/edit", **form | {"until": ""})
    sent(ops, "/schedules/any/edit", **form | {"tz": "Asia/Tokyo"})

    after = kept(dashboard, "any")
    assert after.rule.tz == "Asia/Tokyo"
    assert {**after.rule.to_json(), "tz": ""} == {**before.rule.to_json(), "tz": ""}


def test_a_secret_argument_is_not_shown_and_not_overwritten_by_stars(both: LiveServer) -> None:
    schedule(both, task="shop.login", arguments={"user": "ann", "password": "hunter2"})
    ops = web(both, "admin")
    before = kept(both)
    form = fields_in(ops.get("/schedules/nightly/edit").text)

    seen = ops.get("/schedules/nightly").text + str(form)
    stars = ops.post(
        "/schedules/nightly/edit",
        **form | {"parameters": '{"user": "bob", "password": "**********"}'},
    )
    sent(ops, "/schedules/nightly/edit", **form | {"title": "Another"})

    assert "hunter2" not in seen
    assert "type it again" in field(stars.text, "parameters")
    assert kept(both).template.payload == before.template.payload


def test_a_schedule_is_paused_until_a_time_of_its_zone_and_resumed(both: LiveServer) -> None:
    both.app.schedules.create("shop.add", "0 3 * * *", name="nightly", tz="Asia/Tokyo",
                              arguments={"a": 1})  # fmt: skip
    ops = web(both, "admin")
    day = (datetime.now(UTC) + timedelta(days=3)).date()

    sent(ops, "/schedules/nightly/pause", until=f"{day}T12:00", note="holidays")
    paused = kept(both)
    page = ops.get("/schedules/nightly").text
    sent(ops, "/schedules/nightly/resume")

    assert paused.status is Status.PAUSED
    assert paused.paused_until == datetime(day.year, day.month, day.day, 3, tzinfo=UTC)
    assert "holidays" in page
    assert kept(both).status is Status.ACTIVE


@pytest.mark.parametrize("until", ["2001-01-01T00:00", "soon", "9" * 300])
def test_a_bad_time_to_pause_until_is_said_at_the_field(dashboard: LiveServer, until: str) -> None:
    schedule(dashboard)

    answer = web(dashboard, "admin").post("/schedules/nightly/pause", until=until)

    assert answer.status_code == 422
    assert "expected a time" in field(answer.text, "until").casefold()
    assert kept(dashboard).status is Status.ACTIVE


def test_the_next_run_is_skipped_and_the_schedule_run_now(both: LiveServer) -> None:
    schedule(both)
    ops = web(both, "admin")

    said = sent(ops, "/schedules/nightly/skip")
    now = sent(ops, "/schedules/nightly/trigger")

    page = ops.get("/schedules/nightly").text
    task_id = now.rpartition(" ")[2].rstrip(".")
    assert said == "The next run is left out."
    assert kept(both).skips == (kept(both).next_at,)
    assert "left out" in page
    assert both.app.get(task_id).name == "shop.add"
    assert f'href="/tasks/{task_id}"' in page


def test_a_run_beyond_its_budget_is_refused_in_words(dashboard: LiveServer) -> None:
    schedule(dashboard)
    dashboard.app.budgets.set("owner:anna", day={"runs": 0})

    said = sent(web(dashboard, "admin"), "/schedules/nightly/trigger")

    assert "owner:anna" in said
    assert dashboard.app.count() == 0


def test_a_backfill_is_counted_first(both: LiveServer) -> None:
    schedule(both)
    ops = web(both, "admin")
    asked = {"begin": "2026-01-01T00:00", "end": "2026-01-04T00:00"}

    page = ops.get("/schedules/nightly/backfill", params=asked).text
    counted = both.app.count()
    said = sent(ops, "/schedules/nightly/backfill", **asked)
    again = sent(ops, "/schedules/nightly/backfill", **asked)

    assert "Fire 3 runs" in page
    assert counted == 0
    assert said == "3 runs fired."
    assert again == "No run was fired: each had been."
    assert both.app.count() == 3


@pytest.mark.parametrize(
    ("begin", "end", "at"),
    [
        ("x", "2026-01-04T00:00", "begin"),
        ("", "2026-01-04T00:00", "begin"),
        ("2026-01-04T00:00", "2026-01-03T00:00", "end"),
        ("2001-01-04T00:00", "2026-01-03T00:00", "end"),
    ],
)
def test_a_range_that_is_none_is_refused_at_the_field(
    dashboard: LiveServer, begin: str, end: str, at: str
) -> None:
    schedule(dashboard)
    ops, asked = web(dashboard, "admin"), {"begin": begin, "end": end}

    counted = ops.get("/schedules/nightly/backfill", params=asked)
    fired = ops.post("/schedules/nightly/backfill", **asked)

    assert field(counted.text, at)
    assert fired.status_code == 422
    assert dashboard.app.count() == 0


def test_a_schedule_is_deleted_after_a_question(both: LiveServer) -> None:
    schedule(both)
    ops = web(both, "admin")

    asked = ops.get("/schedules/nightly/delete").text
    still = names(both)
    said = sent(ops, "/schedules/nightly/delete")

    assert "Delete the schedule Nightly sum?" in asked
    assert still == ["nightly"]
    assert said == "The schedule nightly is gone."
    assert names(both) == []


def test_a_schedule_with_the_name_of_a_page_is_reached(dashboard: LiveServer) -> None:
    schedule(dashboard, "new")
    ops = web(dashboard, "admin")

    page = ops.get("/schedules").text
    said = sent(ops, "/schedules/new/skip")

    assert 'href="/schedules/new/details"' in page
    assert ops.get("/schedules/new/details").status_code == 200
    assert said == "The next run is left out."


def test_a_sentence_is_understood_first_and_stored_when_it_is_confirmed(both: LiveServer) -> None:
    ops = web(both, "admin")

    seen = ops.post("/schedules/new/sentence", zone="Europe/Berlin", owner="anna",
                    text="every weekday at 9 summarise my inbox")  # fmt: skip
    nothing = names(both)
    said = sent(ops, "/schedules/new/sentence", confirm="yes", **hidden(seen.text))

    (made,) = both.app.schedules.list().schedules
    assert seen.status_code == 200
    assert "Summarise my inbox" in seen.text
    assert "Monday to Friday at 09:00, Europe/Berlin" in seen.text
    assert nothing == []
    assert said.startswith("Summarise my inbox")
    assert (made.about.owner, made.rule.tz) == ("anna", "Europe/Berlin")


def hidden(page: str) -> dict[str, str]:
    form = page[page.index('class="understood"') :]
    pairs = re.findall(r'<input type="hidden" name="(chat|zone|owner)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in pairs[:3]}


def test_a_question_is_answered_in_the_same_conversation(dashboard: LiveServer) -> None:
    ops = web(dashboard, "admin")

    asked = ops.post("/schedules/new/sentence", text="every 32nd of the month pay rent", zone="UTC")

    assert asked.status_code == 200
    assert "This was not understood" in asked.text or "?" in asked.text
    assert names(dashboard) == []


def test_what_somebody_else_was_asked_cannot_be_confirmed(dashboard: LiveServer) -> None:
    ops, other = web(dashboard, "admin"), web(dashboard, "admin")
    seen = ops.post("/schedules/new/sentence", text="every day at 9 write a report", zone="UTC")

    answer = other.post("/schedules/new/sentence", confirm="yes", **hidden(seen.text))

    assert "nothing to confirm" in answer.text
    assert names(dashboard) == []


@pytest.mark.parametrize(
    ("name", "text"), [("text", ""), ("text", "x" * 8001), ("zone", "Moon/Base"), ("text", "\x00")]
)
def test_a_sentence_that_cannot_be_read_is_refused_at_the_field(
    dashboard: LiveServer, name: str, text: str
) -> None:
    words = {"text": "every day at 9 write a report", "zone": "UTC", name: text}

    answer = web(dashboard, "admin").post("/schedules/new/sentence", **words)

    assert answer.status_code == 422
    assert field(answer.text, name)
    assert names(dashboard) == []


def test_without_an_agent_the_page_says_how_to_have_one(dashboard: LiveServer) -> None:
    dashboard.app.registry.default_agent = None
    ops = web(dashboard, "admin")

    assert "@app.agent" in ops.get("/schedules/new/sentence").text
    assert "From a sentence" not in ops.get("/schedules").text


def test_an_empty_list_says_how_to_begin(dashboard: LiveServer) -> None:
    assert "Make the first one" in web(dashboard, "admin").get("/schedules").text
    reader = web(dashboard, "read").get("/schedules").text
    assert "Make the first one" not in reader
    assert "@app.task(cron=" in reader
