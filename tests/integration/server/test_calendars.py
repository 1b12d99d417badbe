"""Schedules as a calendar, and schedules of a calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from dateutil.rrule import rrulestr
from icalendar import Calendar
from tests.integration.server.live import LiveServer

SCHEDULES = "/api/v1/schedules"
ADD = {"task_type": "shop.add", "parameters": {"a": 1}}

RULES: list[dict[str, Any]] = [
    {"cron": "0 9 * * 1-5"},
    {"cron": "*/15 9-17 * * *"},
    {"cron": "30 2 * * *"},
    {"cron": "0 0 13 * 5"},
    {"cron": "15 6 L * *"},
    {"cron": "0 12 * * 5#3"},
    {"cron": "0 8 15W * *"},
    {"cron": "0 1 * * *", "gap": "skip", "exdate": ["2027-01-02"]},
    {"every": "90m"},
    {"every": "1d", "dtstart": "2026-01-01T09:00"},
    {"every": "100s", "until": "2090-01-01"},
    {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "dtstart": "2026-01-01T17:00"},
    {"rrule": "FREQ=WEEKLY;INTERVAL=2;COUNT=90", "dtstart": "2026-01-01T17:00"},
    {
        "rrule": "FREQ=DAILY;BYHOUR=8,20",
        "dtstart": "2026-01-01T08:00",
        "rdate": ["2090-02-01T10:00"],
        "exdate": ["2027-03-28", "2027-03-29T20:00"],
    },
    {"rrule": "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29\nRRULE:FREQ=MONTHLY;BYMONTHDAY=31"},
    {"rrule": "FREQ=DAILY", "dtstart": "2026-01-01T02:30", "max_runs": 900},
    {"at": "2090-12-24T18:00"},
]


def _runs(client: httpx.Client, name: str, tz: str) -> list[str]:
    query: dict[str, str | int] = {"n": 20, "tz": tz}
    shown = client.get(f"{SCHEDULES}/{name}/preview", params=query).json()
    return [each["local"] for each in shown["runs"]]


def _send(client: httpx.Client, text: str, **query: str) -> httpx.Response:
    return client.post(
        f"{SCHEDULES}/import",
        params={"task_type": "shop.add", **query},
        content=text,
        headers={"content-type": "text/calendar"},
    )


def _calendar(*events: str) -> str:
    inside = "".join(f"BEGIN:VEVENT\n{event.strip()}\nEND:VEVENT\n" for event in events)
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n{inside}END:VCALENDAR\n"
    return text.replace("\n", "\r\n")


@pytest.mark.parametrize("tz", ["Europe/Berlin", "America/New_York"])
def test_what_is_exported_and_imported_runs_at_the_same_times(
    live_server: LiveServer, tz: str
) -> None:
    admin = live_server.admin
    for number, rule in enumerate(RULES):
        body = {**ADD, **rule, "name": f"r{number}", "tz": tz, "title": f"Nr. {number}; yes, ü"}
        assert admin.post(SCHEDULES, json=body).status_code == 201

    text = admin.get(f"{SCHEDULES}/calendar.ics").text
    answer = admin.post(f"{SCHEDULES}/import", json={**ADD, "calendar": text, "owner": "ann"})

    assert answer.status_code == 201, answer.text
    assert answer.json()["unread"] == []
    made = [each["id"] for each in answer.json()["schedules"]]
    listed = {each["id"]: each for each in admin.get(SCHEDULES).json()["schedules"]}
    assert [listed[name]["title"] for name in made] == [
        listed[name]["title"] for name in sorted(f"r{n}" for n in range(len(RULES)))
    ]
    for name in made:
        old = next(
            each["id"] for each in listed.values()
            if each["title"] == listed[name]["title"] and each["id"] != name
        )  # fmt: skip
        assert _runs(admin, name, "UTC") == _runs(admin, old, "UTC"), listed[old]["words"]
        assert listed[name]["owner"] == "ann"


def test_a_calendar_names_its_zones_and_keeps_to_the_standard(live_server: LiveServer) -> None:
    admin = live_server.admin
    for name, rule in (("a", {"cron": "30 9 * * 1-5"}), ("b", {"cron": "0 8 15W * *"})):
        admin.post(SCHEDULES, json={**ADD, **rule, "name": name, "tz": "Europe/Berlin"})
    admin.post(SCHEDULES, json={**ADD, "every": "2h", "name": "c"})
    admin.post(SCHEDULES, json={**ADD, "every": "2h", "name": "paused"})
    admin.post(f"{SCHEDULES}/paused/pause")
    skipped = admin.post(f"{SCHEDULES}/a/skip").json()["skips"][0]

    answer = live_server.client("read").get(f"{SCHEDULES}/calendar.ics")
    calendar: Any = Calendar.from_ical(answer.text)

    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    assert all(len(line.encode()) <= 75 for line in answer.text.splitlines())
    events = {str(event["UID"]): event for event in calendar.walk("VEVENT")}
    assert events.keys() == {"a@holdfast", "b@holdfast", "c@holdfast"}
    a, b, c = (events[f"{name}@holdfast"] for name in "abc")
    assert a["DTSTART"].params["TZID"] == "Europe/Berlin"
    assert a["RRULE"].to_ical() == (
        b"FREQ=WEEKLY;BYSECOND=0;BYMINUTE=30;BYHOUR=9;BYDAY=MO,TU,WE,TH,FR"
    )
    assert a["EXDATE"].dts[0].dt == datetime.fromisoformat(skipped)
    assert len(b["RDATE"].dts) == 99
    assert "RRULE" not in b
    assert c["DTSTART"].to_ical().endswith(b"Z")
    (zone,) = calendar.walk("VTIMEZONE")
    assert zone["TZID"] == "Europe/Berlin"
    (summer,) = zone.walk("DAYLIGHT")
    assert (summer["DTSTART"].dt.hour, summer["TZOFFSETFROM"].td) == (2, timedelta(hours=1))


def test_others_read_the_same_runs_out_of_a_calendar(live_server: LiveServer) -> None:
    rule = {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "dtstart": "2026-01-01T17:00"}
    body = {**ADD, **rule, "name": "x", "tz": "Europe/Berlin", "until": "2030-01-01"}
    live_server.admin.post(SCHEDULES, json=body)

    text = live_server.admin.get(f"{SCHEDULES}/calendar.ics").text
    calendar: Any = Calendar.from_ical(text)
    (event,) = calendar.walk("VEVENT")
    theirs = rrulestr(event["RRULE"].to_ical().decode(), dtstart=event["DTSTART"].dt)

    after = datetime(2027, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    query = {"n": "20", "after": "2026-12-31T23:00:00Z"}
    ours = live_server.admin.get(f"{SCHEDULES}/x/preview", params=query).json()["runs"]
    expected = [each.astimezone(UTC) for each in theirs.xafter(after, count=20)]
    assert [datetime.fromisoformat(each["utc"]) for each in ours] == expected


def test_entries_of_other_programs_are_read(live_server: LiveServer) -> None:
    text = _calendar(
        "UID:weekly\nSUMMARY:Weekly\\, all\nDESCRIPTION:Long\\nText\nCATEGORIES:work\n"
        "DTSTART;TZID=W. Europe Standard Time:20300107T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO\n"
        "EXDATE;TZID=W. Europe Standard Time:20300114T090000\n"
        "BEGIN:VALARM\nTRIGGER:-PT15M\nACTION:DISPLAY\nEND:VALARM",
        "UID:weekly\nRECURRENCE-ID;TZID=W. Europe Standard Time:20300121T090000\n"
        "DTSTART;TZID=W. Europe Standard Time:20300122T110000",
        "UID:floating@example.com\nSUMMARY:Floating\nDTSTART:20300101T100000",
        "UID:day\nSUMMARY:All day\nDTSTART;VALUE=DATE:20300501\nRRULE:FREQ=YEARLY",
        "UID:olson\nSUMMARY:Path\n"
        "DTSTART;TZID=/freeassociation.sourceforge.net/America/New_York:20300101T100000",
        "UID:utc\nSUMMARY:UTC\nDTSTART:20300101T100000Z\nRDATE:20300105T100000Z,20300106T100000Z",
        "UID:off\nSUMMARY:Off\nSTATUS:CANCELLED\nDTSTART:20300101T100000Z",
    )

    answer = _send(live_server.admin, text, tz="Asia/Tokyo", queue="slow")
    shown = {each["id"]: each for each in live_server.admin.get(SCHEDULES).json()["schedules"]}

    assert answer.status_code == 422  # shop.add wants a parameter
    assert shown == {}

    answer = live_server.admin.post(
        f"{SCHEDULES}/import", json={**ADD, "calendar": text, "tz": "Asia/Tokyo", "queue": "slow"}
    )
    shown = {each["id"]: each for each in live_server.admin.get(SCHEDULES).json()["schedules"]}

    assert answer.status_code == 201, answer.text
    assert [each["uid"] for each in answer.json()["unread"]] == ["off"]
    assert answer.json()["unread"][0]["reason"] == "it is cancelled"
    assert shown.keys() == {"weekly", "floating@example.com", "day", "olson", "utc"}
    weekly = shown["weekly"]
    assert (weekly["title"], weekly["description"]) == ("Weekly, all", "Long\nText")
    assert (weekly["category"], weekly["tz"], weekly["queue"]) == ("work", "Europe/Berlin", "slow")
    query = {"n": "4", "after": "2030-01-01T00:00:00Z"}
    runs = live_server.admin.get(f"{SCHEDULES}/weekly/preview", params=query).json()["runs"]
    assert [each["local"][:16] for each in runs] == [
        "2030-01-07T09:00", "2030-01-22T11:00", "2030-01-28T09:00", "2030-02-04T09:00",
    ]  # fmt: skip
    assert shown["floating@example.com"]["next_run_local"] == "2030-01-01T10:00:00+09:00"
    assert shown["day"]["next_run_local"] == "2030-05-01T00:00:00+09:00"
    assert shown["olson"]["tz"] == "America/New_York"
    assert shown["utc"]["next_run_at"] == "2030-01-01T10:00:00Z"


GOOD = "UID:good\nDTSTART:20300101T100000Z"


@pytest.mark.parametrize(
    ("event", "field", "reason"),
    [
        ("UID:a\nSUMMARY:s", "dtstart", "expected DTSTART once, got it 0 times"),
        ("UID:a\nDTSTART:soon", "at", "expected a time such as"),
        ("UID:a\nDTSTART;TZID=Mars/Base:20300101T100000", "tz", "expected the IANA name"),
        ("UID:a\nDTSTART:20300101T100000Z\nRRULE:FREQ=SOON", "rrule", "expected FREQ"),
        ("UID:a\nDTSTART:20300101T100000Z\nEXRULE:FREQ=DAILY", "rrule", "EXRULE"),
        ("UID:a\nDTSTART:20200101T100000Z", "at", "expected a run to come"),
        ("UID:a\nDTSTART:20200101T100000Z\nRRULE:FREQ=DAILY;COUNT=2", "rule", "a run to come"),
        ("UID:a\nDTSTART:20300101T100000Z\nno line", "calendar", "expected lines such as"),
    ],
)
def test_an_entry_that_cannot_be_read_makes_nothing_unless_it_is_to_be_skipped(
    live_server: LiveServer, event: str, field: str, reason: str
) -> None:
    text = _calendar(GOOD, event)
    body = {**ADD, "calendar": text}

    refused = live_server.admin.post(f"{SCHEDULES}/import", json=body)
    stored = live_server.admin.get(SCHEDULES).json()["schedules"]
    skipped = live_server.admin.post(f"{SCHEDULES}/import", json={**body, "unread": "skip"})

    problem = refused.json()
    assert (refused.status_code, problem["field"]) == (422, f"events[1].{field}"), refused.text
    assert reason in problem["detail"]
    assert problem["unread"][0].items() >= {"event": 1, "uid": "a", "field": field}.items()
    assert stored == []
    assert skipped.status_code == 201
    assert [each["id"] for each in skipped.json()["schedules"]] == ["good"]
    assert reason in skipped.json()["unread"][0]["reason"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected at least one VEVENT"),
        ("hello", "expected it to begin with BEGIN:VCALENDAR"),
        ("BEGIN:VCALENDAR\r\nEND:VCALENDAR", "expected at least one VEVENT"),
        ("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nEND:VCALENDAR", "expected END:VEVENT"),
        ("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n", "expected END:VEVENT at its end"),
    ],
)
def test_what_is_no_calendar_is_refused(live_server: LiveServer, text: str, reason: str) -> None:
    answer = _send(live_server.admin, text, task_type="shop.fail")

    assert (answer.status_code, answer.json()["field"]) == (422, "calendar")
    assert reason in answer.json()["detail"]


def test_an_import_says_what_else_is_wrong(live_server: LiveServer) -> None:
    admin, text = live_server.admin, _calendar(GOOD)
    answers = [
        _send(admin, text, task_type="shop.nobody"),
        _send(admin, text, task_type="shop.fail", tz="Mars"),
        _send(admin, text, task_type="shop.fail", colour="red"),
        admin.post(f"{SCHEDULES}/import", json={"calendar": text}),
        admin.post(f"{SCHEDULES}/import", content=text, headers={"content-type": "text/plain"}),
        _send(admin, _calendar(*[GOOD] * 1001), task_type="shop.fail"),
        _send(live_server.client("read"), text),
        _send(live_server.client("submit", owner="ann"), text, task_type="shop.fail", owner="bob"),
    ]

    assert [(each.status_code, each.json().get("field")) for each in answers] == [
        (422, "task_type"), (422, "tz"), (422, "colour"), (422, "task_type"), (415, None),
        (422, "calendar"), (403, None), (403, "owner"),
    ]  # fmt: skip
    assert admin.get(SCHEDULES).json()["schedules"] == []


def test_what_is_imported_twice_is_there_twice(live_server: LiveServer) -> None:
    first = _send(live_server.admin, _calendar(GOOD, GOOD), task_type="shop.fail").json()
    second = _send(live_server.admin, _calendar(GOOD), task_type="shop.fail").json()

    names = [each["id"] for each in [*first["schedules"], *second["schedules"]]]
    assert names[0] == "good"
    assert len(set(names)) == 3
