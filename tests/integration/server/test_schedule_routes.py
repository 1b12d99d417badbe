"""Schedules over REST and through the HTTP client."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast import Context, Holdfast, HttpClient
from holdfast.core.schedule_state import RunEnd, ScheduleState
from holdfast.errors import InvalidOption, ScheduleNotFound
from holdfast.http.values import BriefSchedule
from holdfast.recurrence import Schedule

SCHEDULES = "/api/v1/schedules"
ADD = {"task_type": "shop.add", "parameters": {"a": 1, "b": 2}}
DAILY = {**ADD, "name": "daily", "cron": "0 9 * * 1-5", "tz": "Europe/Berlin"}


def _make(server: LiveServer, **words: Any) -> dict[str, Any]:
    answer = server.admin.post(SCHEDULES, json={**ADD, **words})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def _named(server: LiveServer) -> list[str]:
    return [each["id"] for each in server.admin.get(SCHEDULES).json()["schedules"]]


def _refused(answer: httpx.Response) -> tuple[int, str | None, str]:
    problem = answer.json()
    return answer.status_code, problem.get("field"), problem["detail"]


# -- making, finding, changing ---------------------------------------------------------------------


def test_a_schedule_is_made_and_shown_whole(either_server: LiveServer) -> None:
    about = {
        "owner": "ann", "title": "Report", "description": "The numbers", "purpose": "to know",
        "category": "reports", "delivery_title": "Your report", "channels": ["inbox"],
        "estimated_units": 2.5, "chat_id": "c1", "message_id": "m1",
    }  # fmt: skip
    behaviour = {
        "overlap": "queue_one", "catch_up": "all", "catch_up_most": 7,
        "catch_up_window_seconds": 3600.0, "jitter_seconds": 30.0, "pause_after_failures": 3,
    }  # fmt: skip

    answer = either_server.admin.post(
        SCHEDULES, json={**DAILY, **about, **behaviour, "queue": "slow", "priority": "low"}
    )
    shown = either_server.client("read").get(f"{SCHEDULES}/daily").json()

    assert answer.status_code == 201
    assert answer.headers["location"] == f"{SCHEDULES}/daily"
    assert answer.json() == shown
    assert shown.items() >= {**about, **behaviour}.items()
    assert shown["id"] == shown["name"] == "daily"
    assert (shown["status"], shown["kind"], shown["tz"]) == ("active", "cron", "Europe/Berlin")
    assert shown["words"] == "on Monday to Friday at 09:00, Europe/Berlin"
    assert shown["rule"]["cron"] == "0 9 * * 1-5"
    assert (shown["task_type"], shown["parameters"]) == ("shop.add", {"a": 1, "b": 2})
    assert (shown["queue"], shown["priority"]) == ("slow", "low")
    assert (shown["runs"], shown["failures"], shown["last_run_at"]) == (0, 0, None)
    local = datetime.fromisoformat(shown["next_run_local"])
    assert (local.hour, local.weekday() < 5) == (9, True)
    assert local == datetime.fromisoformat(shown["next_run_at"])


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ({"cron": "@hourly"}, "cron", "every hour at minute 0, UTC"),
        (
            {"rrule": "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17", "tz": "Europe/Berlin"},
            "rrule",
            "every month on the last Friday at 17:00, Europe/Berlin",
        ),
        ({"every": "90m", "dtstart": "2026-01-01T00:00"}, "interval", "every 90 minutes"),
        ({"every": 300}, "interval", "every 5 minutes"),
        ({"at": "2090-12-24T18:00", "tz": "Asia/Tokyo"}, "once", "once on 24 December 2090 18:00"),
        ({"rule": "every 2h"}, "interval", "every 2 hours"),
        ({"rule": "FREQ=DAILY", "tz": "Asia/Tokyo"}, "rrule", "every day at 00:00, Asia/Tokyo"),
        ({"rule": {"cron": "30 9 * * *", "tz": "Asia/Tokyo"}}, "cron", "every day at 09:30, Asia"),
        ({"rule": {"kind": "interval", "every": 60}}, "interval", "every minute"),
        (
            {"cron": "0 0 * * *", "until": "2090-01-01", "exdate": ["2089-12-31"], "gap": "skip"},
            "cron",
            "every day at 00:00",
        ),
    ],
)
def test_a_rule_is_said_in_any_spelling(
    live_server: LiveServer, said: dict[str, Any], kind: str, words: str
) -> None:
    made = _make(live_server, **said)

    assert (made["kind"], made["words"][: len(words)]) == (kind, words)


def test_schedules_are_listed_by_name_and_owner_a_page_at_a_time(live_server: LiveServer) -> None:
    for name, owner in (("c", "ann"), ("a", "bob"), ("b", "ann")):
        _make(live_server, name=name, owner=owner, every="1h")

    first = live_server.admin.get(SCHEDULES, params={"limit": 2}).json()
    rest = live_server.admin.get(SCHEDULES, params={"limit": 2, "after": first["next"]}).json()
    anns = live_server.admin.get(SCHEDULES, params={"owner": "ann"}).json()

    assert [each["id"] for each in first["schedules"]] == ["a", "b"]
    assert ([each["id"] for each in rest["schedules"]], rest["next"]) == (["c"], None)
    assert [each["id"] for each in anns["schedules"]] == ["b", "c"]


def test_a_change_keeps_the_rest_and_the_zone(live_server: LiveServer) -> None:
    _make(live_server, **DAILY, title="Old", pause_after_failures=3)
    patch = f"{SCHEDULES}/daily"

    later = live_server.admin.patch(patch, json={"cron": "30 10 * * *", "title": None}).json()
    moved = live_server.admin.patch(patch, json={"tz": "Asia/Tokyo"}).json()
    ended = live_server.admin.patch(patch, json={"until": "2090-01-01"}).json()
    again = live_server.admin.patch(patch, json={"until": None, "parameters": {"a": 9}}).json()
    other = live_server.admin.patch(
        patch, json={"task_type": "shop.mail", "parameters": {"to": "ann"}, "priority": "low"}
    ).json()

    assert later["words"] == "every day at 10:30, Europe/Berlin"
    assert (later["title"], later["pause_after_failures"], later["is_edited"]) == (None, 3, True)
    assert moved["words"] == "every day at 10:30, Asia/Tokyo"
    assert ended["rule"]["until"] == "2090-01-01"
    assert (again["rule"]["until"], again["parameters"]) == (None, {"a": 9})
    assert (again["task_type"], again["version"]) == ("shop.add", 5)
    assert (other["task_type"], other["queue"], other["priority"]) == ("shop.mail", "mail", "low")


def test_the_parameters_of_a_task_of_others_can_be_changed(live_server: LiveServer) -> None:
    _make(live_server, name="js", task_type="resize", queue="js", every="1h", parameters={"w": 1})

    changed = live_server.admin.patch(f"{SCHEDULES}/js", json={"parameters": {"h": 2}}).json()

    assert (changed["parameters"], changed["queue"]) == ({"h": 2}, "js")


def test_secret_arguments_are_stars(live_server: LiveServer) -> None:
    secret = {"user": "ann", "password": "hunter2"}

    made = _make(live_server, task_type="shop.login", parameters=secret, every="1h")

    assert made["parameters"] == {"user": "ann", "password": "**********"}


def test_a_schedule_is_paused_resumed_skipped_and_forgotten(live_server: LiveServer) -> None:
    made = _make(live_server, **DAILY)
    steer = live_server.client("operate", "read")
    one = f"{SCHEDULES}/daily"

    paused = steer.post(f"{one}/pause", json={"note": "holidays"}).json()
    refused = steer.post(f"{one}/skip")
    resumed = steer.post(f"{one}/resume").json()
    skipped = steer.post(f"{one}/skip").json()
    deleted = steer.delete(one)
    gone = steer.delete(one)

    assert (paused["status"], paused["note"], paused["next_run_at"]) == ("paused", "holidays", None)
    assert refused.status_code == 409
    assert refused.json()["code"] == "schedule_not_active"
    assert (resumed["status"], resumed["next_run_at"]) == ("active", made["next_run_at"])
    assert skipped["skips"] == [made["next_run_at"]]
    assert skipped["next_run_at"] > made["next_run_at"]
    assert skipped["due_at"] == skipped["next_run_at"]
    assert deleted.json() == {"id": "daily", "deleted": True}
    assert _refused(gone)[0] == 404
    assert gone.json()["code"] == "schedule_not_found"


# -- runs ------------------------------------------------------------------------------------------


def test_runs_tell_what_became_of_them(sqlite_url: str) -> None:
    app = make_app(sqlite_url)
    seen: list[datetime | None] = []

    @app.task(name="shop.report")
    def report(ctx: Context) -> str:
        seen.append(ctx.scheduled_for)
        ctx.cost(1.5, tokens_in=10, tokens_out=20)
        return "the numbers"

    with serve(app) as server:
        _make(server, name="reports", task_type="shop.report", parameters={}, cron="0 9 * * *")
        begin = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        wanted = {"begin": f"{begin - timedelta(days=2):%FT%TZ}", "end": f"{begin:%FT%TZ}"}
        made = server.admin.post(f"{SCHEDULES}/reports/backfill", json=wanted).json()["task_ids"]
        waiting = server.admin.get(f"{SCHEDULES}/reports/runs").json()["runs"]
        server.work()
        now = server.admin.post(f"{SCHEDULES}/reports/trigger").json()["task_id"]
        page = server.admin.get(f"{SCHEDULES}/reports/runs", params={"limit": 2}).json()
        rest = server.admin.get(f"{SCHEDULES}/reports/runs", params={"after": page["next"]}).json()
        tasks = server.admin.get("/api/v1/tasks", params={"schedule": "reports"}).json()["tasks"]
        of_others = server.admin.get("/api/v1/tasks", params={"schedule": "report"}).json()
        one = server.admin.get(f"/api/v1/tasks/{made[0]}").json()

    assert [each["status"] for each in waiting] == ["running", "running"]
    manual, last = page["runs"]
    (first,) = rest["runs"]
    assert (manual["origin"], manual["status"], manual["task_id"]) == ("manual", "running", now)
    assert [each["origin"] for each in (last, first)] == ["backfill", "backfill"]
    assert [each["task_id"] for each in (first, last)] == made
    assert (first["status"], first["content"], first["task_status"]) == (
        "success", "the numbers", "completed"
    )  # fmt: skip
    assert (first["units"], first["tokens_in"], first["tokens_out"]) == (1.5, 10, 20)
    assert first["cost"] == {"units": 1.5, "tokens_in": 10, "tokens_out": 20}
    meant = begin - timedelta(days=2) + timedelta(hours=9)
    assert datetime.fromisoformat(first["scheduled_for"]) == meant
    assert first["lateness_seconds"] > 86_400
    assert [each["task_id"] for each in tasks] == [now, made[1], made[0]]
    assert of_others["tasks"] == []
    assert one["schedule"]["name"] == "reports"
    assert one["schedule"]["origin"] == "backfill"
    assert datetime.fromisoformat(one["schedule"]["scheduled_for"]) == meant
    assert one["schedule"]["lateness_seconds"] > 86_400
    assert set(seen) == {meant, meant + timedelta(days=1)}


def test_a_failed_run_says_so(live_server: LiveServer) -> None:
    _make(live_server, name="bad", task_type="shop.fail", parameters={}, every="1h")
    live_server.admin.post(f"{SCHEDULES}/bad/trigger")
    live_server.work()

    (run,) = live_server.admin.get(f"{SCHEDULES}/bad/runs").json()["runs"]

    assert (run["status"], run["task_status"]) == ("failure", "dead_letter")
    assert run["error"]["message"] == "no"


def test_tasks_of_no_schedule_say_so(live_server: LiveServer) -> None:
    task_id = live_server.admin.post("/api/v1/tasks", json=ADD).json()["task_id"]

    assert live_server.admin.get(f"/api/v1/tasks/{task_id}").json()["schedule"] is None
    both = live_server.admin.get("/api/v1/tasks", params={"schedule": "a", "tag": "b"})
    assert both.status_code == 409


# -- previews --------------------------------------------------------------------------------------


def test_a_rule_is_tried_in_any_zone_over_any_range(live_server: LiveServer) -> None:
    asked = {
        "cron": "30 2 * * *", "tz": "Europe/Berlin", "show_tz": "UTC",
        "between": ["2027-03-27T00:00:00Z", "2027-03-29T00:30:00Z"],
    }  # fmt: skip

    tried = live_server.client("read").post(f"{SCHEDULES}/preview", json=asked).json()

    assert [(each["local"], each["flags"], each["meant"]) for each in tried["runs"]] == [
        ("2027-03-27T01:30:00+00:00", [], None),
        ("2027-03-28T01:30:00+00:00", ["moved_by_gap"], "2027-03-28T02:30:00"),
    ]
    assert (tried["words"], tried["tz"], tried["shown_tz"], tried["is_complete"]) == (
        "every day at 02:30, Europe/Berlin", "Europe/Berlin", "UTC", True,
    )  # fmt: skip
    assert _named(live_server) == []


def test_a_schedule_tells_its_next_runs(live_server: LiveServer) -> None:
    _make(live_server, **DAILY)

    query: dict[str, str | int] = {"n": 3, "after": "2027-01-01T12:00:00Z", "tz": "Asia/Tokyo"}
    shown = live_server.admin.get(f"{SCHEDULES}/daily/preview", params=query).json()

    assert [each["local"] for each in shown["runs"]] == [
        "2027-01-04T17:00:00+09:00",
        "2027-01-05T17:00:00+09:00",
        "2027-01-06T17:00:00+09:00",
    ]
    assert shown["runs"][0]["utc"] == "2027-01-04T08:00:00Z"
    assert shown["is_complete"] is False
    assert len(live_server.admin.get(f"{SCHEDULES}/daily/preview").json()["runs"]) == 10


# -- what is refused -------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "rule", "expected one of cron, rrule, every, at, rule, got none"),
    ({"cron": "* * * * *", "every": "1h"}, "rule", "got cron and every"),
    ({"cron": "61 * * * *"}, "cron", "expected the minute from 0 to 59"),
    ({"cron": "0 9 * *"}, "cron", "expected five fields"),
    ({"cron": "0 0 9 * * *"}, "cron", "seconds and years are not supported"),
    ({"cron": "@reboot"}, "cron", "belongs to no machine"),
    ({"rrule": "FREQ=SOMETIMES"}, "rrule", "expected FREQ to be one of"),
    ({"rrule": "FREQ=DAILY;COUNT=3;UNTIL=20900101T000000Z"}, "rrule", "expected COUNT or UNTIL"),
    ({"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, "rrule", "never"),
    ({"rrule": "FREQ=DAILY;COUNT=3"}, "dtstart", "expected a start"),
    ({"every": "soon"}, "every", "expected"),
    ({"every": 0}, "every", "at least 1"),
    ({"every": [1]}, "every", "expected"),
    ({"every": True}, "every", "expected"),
    ({"at": "2020-01-01T10:00"}, "at", "expected a run to come"),
    ({"at": "tomorrow"}, "at", "expected a time such as"),
    ({"at": "2090-02-30T10:00"}, "at", "expected a day and time that exist"),
    ({"cron": "@daily", "tz": "Europe/Berln"}, "tz", "Did you mean Europe/Berlin"),
    ({"cron": "@daily", "tz": "CET"}, "tz", "Did you mean Europe/Berlin"),
    (
        {"cron": "@daily", "dtstart": "2090-01-02T00:00", "until": "2090-01-01"},
        "until",
        "expected a time from the first run on",
    ),
    ({"cron": "@daily", "until": "2020-01-01"}, "cron", "expected a run to come"),
    ({"cron": "@daily", "max_runs": 3}, "dtstart", "expected a start"),
    ({"cron": "@daily", "exdate": ["x"]}, "exdate", "expected a time such as"),
    ({"cron": "@daily", "rdate": ["2090-01-01"]}, "rdate", "beside `cron`, got `rdate`"),
    ({"at": "2090-01-01T10:00", "until": "2091-01-01"}, "until", "beside `at`, got `until`"),
    ({"rule": {"cron": "@daily"}, "until": "2091-01-01"}, "until", "say it inside the object"),
    ({"rule": {"cron": "@daily", "tz": "Mars"}}, "rule.tz", "expected the IANA name"),
    ({"rule": {"kind": "sometimes"}}, "rule", "expected one of once, interval, cron, rrule"),
    ({"rule": {"cron": "@daily", "hour": 3}}, "rule", "got 'hour'"),
    ({"rule": 7}, "rule", "expected a cron line"),
    ({"rule": "whenever it suits"}, "rule", "expected five fields"),
    ({"every": "1h", "overlap": "never"}, "overlap", "input should be 'skip', 'queue_one'"),
    ({"every": "1h", "catch_up": "some"}, "catch_up", "input should be 'one', 'all' or"),
    ({"every": "1h", "catch_up_most": 0}, "catch_up_most", "greater than or equal to 1"),
    ({"every": "1h", "jitter_seconds": -1}, "jitter_seconds", "greater than or equal to 0"),
    ({"every": "1h", "pause_after_failures": 0}, "pause_after_failures", "greater than or equal"),
    ({"every": "1h", "estimated_units": -1}, "estimated_units", "greater than or equal to 0"),
    ({"every": "1h", "colour": "red"}, "colour", "no such member"),
    ({"every": "1h", "delay_seconds": 3}, "delay_seconds", "no such member"),
    ({"every": "1h", "name": "a/b"}, "name", "expected no slash"),
    ({"every": "1h", "name": "preview"}, "name", "expected no slash"),
    ({"every": "1h", "parameters": {"a": "x"}}, "parameters.a", "valid integer"),
    ({"every": "1h", "task_type": "shop.ad"}, "task_type", "Did you mean 'shop.add'?"),
]


@pytest.mark.parametrize(("said", "field", "reason"), WRONG)
def test_what_cannot_be_is_refused_by_name_and_nothing_is_stored(
    live_server: LiveServer, said: dict[str, Any], field: str, reason: str
) -> None:
    answer = live_server.admin.post(SCHEDULES, json={**ADD, **said})

    status, blamed, detail = _refused(answer)
    assert (status, blamed) == (422, field), answer.text
    assert reason in detail
    assert _named(live_server) == []


def test_an_interval_under_the_floor_is_refused(sqlite_url: str) -> None:
    with serve(make_app(sqlite_url, schedule_floor="1m")) as server:
        answer = server.admin.post(SCHEDULES, json={**ADD, "every": "30s"})

        assert _refused(answer)[:2] == (422, "every")
        assert "expected at least 60 s between two runs" in _refused(answer)[2]
        assert _named(server) == []


def test_a_name_is_given_once(live_server: LiveServer) -> None:
    _make(live_server, **DAILY)

    answer = live_server.admin.post(SCHEDULES, json=DAILY)

    assert _refused(answer)[:2] == (409, "name")
    assert answer.json()["code"] == "schedule_exists"


def test_changes_and_actions_that_cannot_be_are_refused(live_server: LiveServer) -> None:
    made = _make(live_server, **DAILY)
    admin, one = live_server.admin, f"{SCHEDULES}/daily"
    past, begin = "2020-01-01T00:00:00Z", "2026-01-05T00:00:00Z"
    answers = [
        admin.patch(one, json={"cron": "x"}),
        admin.patch(one, json={"tz": "Mars"}),
        admin.patch(one, json={"until": past}),
        admin.patch(one, json={"rdate": ["2090-01-01"]}),
        admin.patch(one, json={"parameters": {"a": "x"}}),
        admin.patch(one, json={"priority": "low"}),
        admin.patch(one, json={"name": "other"}),
        admin.post(f"{one}/pause", json={"until": past}),
        admin.post(f"{one}/pause", json={"until": "soon"}),
        admin.post(f"{one}/backfill", json={"begin": begin, "end": begin}),
        admin.post(f"{one}/backfill", json={"begin": past, "end": begin}),
        admin.post(f"{one}/backfill", json={"begin": begin}),
        admin.post(f"{SCHEDULES}/preview", json={"cron": "x"}),
        admin.post(f"{SCHEDULES}/preview", json={"every": "1h", "show_tz": "Mars"}),
        admin.post(f"{SCHEDULES}/preview", json={"every": "1h", "between": [begin, past]}),
        admin.post(f"{SCHEDULES}/preview", json={"every": "1h", "n": 0}),
        admin.get(f"{one}/preview", params={"tz": "Mars"}),
        admin.get(f"{one}/preview", params={"n": 5000}),
        admin.get(f"{one}/runs", params={"limit": 0}),
    ]

    assert [_refused(each)[:2] for each in answers] == [
        (422, "cron"), (422, "tz"), (422, "rule"), (422, "rule"), (422, "parameters.a"),
        (409, "priority"), (422, "name"), (422, "until"), (422, "until"), (422, "end"),
        (422, "most"), (422, "end"), (422, "cron"), (422, "show_tz"), (422, "between"),
        (422, "n"), (422, "tz"), (422, "n"), (422, "limit"),
    ]  # fmt: skip
    assert live_server.admin.get(one).json() == made


def test_what_is_not_there_is_told(live_server: LiveServer) -> None:
    admin, one = live_server.admin, f"{SCHEDULES}/nobody"
    answers = [
        admin.get(one), admin.patch(one, json={"title": "x"}), admin.delete(one),
        *(admin.post(f"{one}/{verb}") for verb in ("pause", "resume", "skip", "trigger")),
        admin.post(f"{one}/backfill", json={"begin": "2026-01-01T00:00:00Z",
                                            "end": "2026-01-02T00:00:00Z"}),
        admin.get(f"{one}/runs"), admin.get(f"{one}/preview"),
    ]  # fmt: skip

    assert {(each.status_code, each.json()["code"]) for each in answers} == {
        (404, "schedule_not_found")
    }
    assert "no schedule 'nobody' in this store" in answers[0].json()["detail"]


# -- who may what ----------------------------------------------------------------------------------


def test_each_verb_takes_its_scope(live_server: LiveServer) -> None:
    _make(live_server, **DAILY)
    one = f"{SCHEDULES}/daily"

    def may(*scopes: str) -> list[bool]:
        client = live_server.client(*scopes)
        answers = [
            client.get(one), client.get(f"{one}/runs"), client.get(f"{SCHEDULES}/calendar.ics"),
            client.post(SCHEDULES, json={**ADD, "every": "1h"}), client.post(f"{one}/trigger"),
            client.patch(one, json={"title": "x"}), client.post(f"{one}/pause"),
            client.post(f"{one}/resume"), client.post(f"{one}/skip"),
        ]  # fmt: skip
        return [each.status_code < 300 for each in answers]

    assert may("read") == [True] * 3 + [False] * 6
    assert may("submit") == [False] * 3 + [True] * 2 + [False] * 4
    assert may("operate") == [False] * 5 + [True] * 4


def test_who_may_not_read_is_answered_briefly(live_server: LiveServer) -> None:
    made = live_server.client("submit").post(SCHEDULES, json=DAILY).json()
    paused = live_server.client("operate").post(f"{SCHEDULES}/daily/pause").json()

    assert made.keys() == {"id", "name", "status", "next_run_at", "next_run_local"}
    assert paused["status"] == "paused"
    assert "parameters" not in paused


def test_a_token_of_an_owner_sees_and_changes_only_its_own(live_server: LiveServer) -> None:
    _make(live_server, **DAILY, owner="bob")
    ann = live_server.client("read", "submit", "operate", owner="ann")

    made = ann.post(SCHEDULES, json={**ADD, "name": "mine", "every": "1h"}).json()
    for_bob = ann.post(SCHEDULES, json={**ADD, "every": "1h", "owner": "bob"})
    one = f"{SCHEDULES}/daily"
    others = [
        ann.get(one), ann.patch(one, json={"title": "x"}), ann.delete(one),
        ann.post(f"{one}/pause"), ann.post(f"{one}/trigger"), ann.get(f"{one}/runs"),
        ann.get(f"{one}/preview"),
    ]  # fmt: skip
    given_away = ann.patch(f"{SCHEDULES}/mine", json={"owner": "bob"})
    listed = ann.get(SCHEDULES).json()["schedules"]
    bobs = ann.get(SCHEDULES, params={"owner": "bob"}).json()["schedules"]
    calendar = ann.get(f"{SCHEDULES}/calendar.ics").text

    assert made["owner"] == "ann"
    assert _refused(for_bob)[:2] == (403, "owner")
    assert {each.status_code for each in others} == {404}
    assert _refused(given_away)[:2] == (403, "owner")
    assert [each["id"] for each in listed] == ["mine"]
    assert bobs == []
    assert "UID:mine@holdfast" in calendar
    assert "daily" not in calendar


def test_a_token_of_a_queue_makes_schedules_for_that_queue_alone(live_server: LiveServer) -> None:
    _make(live_server, **DAILY)
    mail = live_server.client("read", "submit", queues=["mail"])

    refused = mail.post(SCHEDULES, json={**ADD, "every": "1h"})
    made = mail.post(
        SCHEDULES, json={"task_type": "shop.mail", "parameters": {"to": "a"}, "every": "1h"}
    )

    assert _refused(refused)[:2] == (403, "queue")
    assert made.status_code == 201
    assert [each["id"] for each in mail.get(SCHEDULES).json()["schedules"]] == [made.json()["id"]]


# -- the HTTP client -------------------------------------------------------------------------------


def test_the_http_client_has_the_same_verbs(live_server: LiveServer) -> None:
    with HttpClient(live_server.url, token=live_server.token("admin")) as client:
        schedules = client.schedules
        call = client.call("shop.add", {"a": 4}, queue="slow", priority="low")
        made = schedules.create(call, "0 9 * * *", tz="Europe/Berlin", name="x", jitter="1m")
        rule = Schedule.every("2h", start="2026-01-01T00:00", tz="Asia/Tokyo")
        timed = schedules.create(
            "shop.add", rule, arguments={"a": 1}, channels=("inbox",), owner="ann"
        )
        once = schedules.create("shop.add", datetime(2090, 1, 1, tzinfo=UTC), arguments={"a": 1})
        with pytest.raises(InvalidOption, match="there is a schedule 'x' already"):
            schedules.create("shop.add", "@daily", name="x", arguments={"a": 1})

        assert isinstance(made, ScheduleState)
        assert isinstance(timed, ScheduleState)
        assert (made.queue, made.jitter, made.parameters) == ("slow", 60.0, {"a": 4})
        assert (timed.kind, timed.tz, timed.channels) == ("interval", "Asia/Tokyo", ("inbox",))
        assert once.next_run_at == datetime(2090, 1, 1, tzinfo=UTC)
        assert schedules.get("x") == made
        assert schedules.get("y") is None
        assert {each.id for each in schedules.list(limit=1).schedules} <= {
            made.id,
            timed.id,
            once.id,
        }
        changed = schedules.update("x", rule="0 10 * * *", arguments={"a": 5}, title="T")
        assert isinstance(changed, ScheduleState)
        assert (changed.tz, changed.parameters, changed.title) == ("Europe/Berlin", {"a": 5}, "T")
        assert schedules.pause("x", note="later").status == "paused"
        assert schedules.resume("x").status == "active"
        skipped = schedules.skip("x")
        assert isinstance(skipped, ScheduleState)
        assert skipped.skips == (changed.next_run_at,)
        task_id = schedules.trigger("x")
        past = schedules.backfill(
            "x", datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 7, tzinfo=UTC)
        )
        live_server.work()
        runs = schedules.runs("x").runs
        assert [run.task_id for run in runs] == [task_id, *reversed(past)]
        assert {(run.status, run.content) for run in runs} == {(RunEnd.SUCCESS, 5)}
        task = client.get(task_id)
        assert task.schedule is not None
        assert (task.schedule.name, task.schedule.origin) == ("x", "manual")
        assert [each.id for each in client.list(schedule="x").tasks] == [*reversed(past), task_id]
        (row,) = schedules.preview("x", 1, after=datetime(2027, 1, 1, tzinfo=UTC), tz="UTC")
        assert row.utc == datetime(2027, 1, 1, 9, tzinfo=UTC)
        (tried,) = schedules.try_rule("30 2 * * *", 1, tz="Europe/Berlin",
                                      after=datetime(2027, 3, 27, 12, tzinfo=UTC))  # fmt: skip
        assert tried.flags == ("moved_by_gap",)
        text = schedules.calendar()
        imported = schedules.import_calendar(text, "shop.add", {"a": 1}, owner="ann")
        assert (len(imported.schedules), imported.unread) == (3, [])
        assert schedules.delete("x")
        assert not schedules.delete("x")
        with pytest.raises(ScheduleNotFound) as raised:
            schedules.trigger("x")
        assert raised.value.name == "x"


async def test_the_http_client_asks_without_blocking_too(live_server: LiveServer) -> None:
    async with HttpClient(live_server.url, token=live_server.token("submit")) as client:
        made = await client.schedules.create_async("shop.add", "every 1h", arguments={"a": 1})

    assert isinstance(made, BriefSchedule)
    assert made.status == "active"


def test_tasks_show_their_schedule_in_python_too(live_server: LiveServer) -> None:
    app: Holdfast = live_server.app
    app.schedules.create("shop.add", "every 1h", name="hourly", arguments={"a": 1})
    task_id = app.schedules.trigger("hourly")

    task = app.get(task_id)

    assert task.schedule is not None
    assert (task.schedule.name, task.schedule.origin) == ("hourly", "manual")
    assert task.to_dict()["schedule"]["name"] == "hourly"
    assert [each.id for each in app.list(schedule="hourly").tasks] == [task_id]
