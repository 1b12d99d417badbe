"""Changes of tasks in many wordings, and where results go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.assistant.scoring import load

from holdfast.assistant import parse

HERE = Path(__file__).parent
NOW, ZONE = "2026-09-14T16:40:00+01:00", "Europe/London"
"""A Monday."""
CHANNELS = ["EMAIL", "WEB", "MOBILE"]


def _task(key: str, title: str, start: str, rule: str | None = None, **more: Any) -> dict[str, Any]:
    found = {"id": key, "title": title, "dtstart": start, "tz": ZONE, "status": "ACTIVE", **more}
    return {"delivery": CHANNELS, **found, **({} if rule is None else {"rrule": rule})}


TASKS = [
    _task("digest", "Sales digest", "2026-09-15T08:30:00", "FREQ=DAILY;BYHOUR=8;BYMINUTE=30"),
    _task("call", "Call Grandma", "2026-09-20T17:00:00", "FREQ=WEEKLY;BYDAY=SU;BYHOUR=17"),
    _task("tax", "Pay council tax", "2026-10-05T10:00:00", "FREQ=MONTHLY;BYMONTHDAY=5;BYHOUR=10"),
    _task("suit", "Pick up the suit", "2026-09-17T15:00:00", delivery=["EMAIL"]),
]


def change(text: str, focus: str | None = None) -> dict[str, Any]:
    return parse(text, NOW, ZONE, tasks=TASKS, focus=focus)


@pytest.mark.parametrize(
    ("text", "focus", "op", "target"),
    [
        ("the council tax one on the 20th please", None, "reschedule", "tax"),
        ("no, make that 8", "call", "reschedule", "call"),
        ("half an hour earlier please", "call", "reschedule", "call"),
        ("push it back a week", "suit", "reschedule", "suit"),
        ("could we do 10am instead, 8:30 is too early", "digest", "reschedule", "digest"),
        ("no digest until October 1, I'm on leave", None, "pause", "digest"),
        ("put that one on ice", "call", "pause", "call"),
        ("I'm back, carry on with the sales digest", None, "resume", "digest"),
        ("take it off hold", "call", "resume", "call"),
        ("the council tax one can go", None, "cancel", "tax"),
        ("council tax is paid, cancel the reminder", None, "cancel", "tax"),
        ("call it off", "suit", "cancel", "suit"),
        ("kick off now", "digest", "run_now", "digest"),
        ("send me the sales digest right away", None, "run_now", "digest"),
        ("skip tomorrow's", "digest", "skip", "digest"),
        ("leave the upcoming one out", "call", "skip", "call"),
        ("call the grandma one Call Nana", None, "rename", "call"),
        ("it should be called Bins out", "suit", "rename", "suit"),
        ("sales digest by email only", None, "deliver", "digest"),
    ],
)
def test_a_change_is_understood_in_many_wordings(
    text: str, focus: str | None, op: str, target: str
) -> None:
    found = change(text, focus)

    assert (found["kind"], found.get("op"), found.get("target")) == ("update", op, target), found


@pytest.mark.parametrize(
    ("text", "focus", "delivery"),
    [
        ("I want that on mobile too", "suit", ["EMAIL", "MOBILE"]),
        ("not to the web", "digest", ["EMAIL", "MOBILE"]),
        ("no push, just email", "digest", ["EMAIL"]),
        ("no more emails please", "digest", ["WEB", "MOBILE"]),
        ("everywhere please", "suit", CHANNELS),
    ],
)
def test_channels_are_set_added_and_taken_away(text: str, focus: str, delivery: list[str]) -> None:
    assert sorted(change(text, focus)["delivery"]) == sorted(delivery)


@pytest.mark.parametrize(
    "text",
    [
        "pause it", "make it 9", "turn it back on", "half an hour later please", "only by email",
        "pause the yoga reminder", "rename the yoga one to Stretching", "skip tomorrow's yoga",
        "that one at 9 please", "what about that one?", "the council tax one",
    ],
)  # fmt: skip
def test_what_speaks_of_a_task_but_not_clearly_is_refused_and_no_new_task(text: str) -> None:
    found = change(text)

    assert found["kind"] == "refuse"
    assert "target" in found["fields"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("every Monday at 9 send me the sales digest of the competitor", "recurring"),
        ("remind me tomorrow at 8 to call grandma about the suit", "once"),
        ("tomorrow at 9 cancel my gym membership", "once"),
        ("at 5 tell me to skip dinner", "once"),
        ("translate the release notes into Italian", "once"),
    ],
)
def test_a_request_with_a_purpose_of_its_own_is_a_new_task(text: str, kind: str) -> None:
    assert change(text, "call")["kind"] == kind


@pytest.mark.parametrize("text", ["remind me", "please remind me!", "set a reminder", "reminder"])
def test_an_opening_alone_is_refused(text: str) -> None:
    assert parse(text, NOW, ZONE)["fields"] == ["purpose"]


@pytest.mark.parametrize(
    ("text", "delivery", "purpose"),
    [
        ("every weekday at 9 sort my inbox and email it to me", ["EMAIL"], "sort my inbox"),
        ("summarise my inbox every weekday at 9 by email", ["EMAIL"], "summarise my inbox"),
        ("every day at 8 check the build and send the result to my phone", ["MOBILE"],
         "check the build"),
        ("email me the weather every day at 7", ["EMAIL"], "email me the weather"),
        ("jeden Tag um 8 die Nachrichten als Push aufs Handy", ["MOBILE"], "die Nachrichten"),
        ("chaque jour à 8h résume mes messages par e-mail", ["EMAIL"], "résume mes messages"),
        ("cada lunes a las 9 resume las ventas y envíamelo por correo", ["EMAIL"],
         "resume las ventas"),
        ("每天早上8点总结新闻，发到我的手机", ["MOBILE"], "总结新闻"),
    ],
)  # fmt: skip
def test_words_for_where_the_result_goes_are_no_purpose(
    text: str, delivery: list[str], purpose: str
) -> None:
    found = parse(text, NOW, ZONE)

    assert (found["delivery"], found["purpose"]) == (delivery, purpose)


@pytest.mark.parametrize(
    "text",
    [
        "every day at 7 email the invoice to Bob", "every Monday at 9 email the team",
        "tomorrow at 9 ask Bob by email", "every morning collect the news and mail it to Anna",
        "tomorrow at 9 remind me to send the invoice by email", "每天9点给小王发邮件",
        "demain à 9h répondre à Paul par e-mail", "morgen um 9 Bob per E-Mail antworten",
    ],
)  # fmt: skip
def test_what_is_sent_to_others_is_the_purpose(text: str) -> None:
    assert "delivery" not in parse(text, NOW, ZONE)


@pytest.mark.parametrize(
    "file", ["en_once", "en_purpose_traps", "en_recurring", "lang_es", "lang_fr"]
)
def test_a_new_task_is_the_same_whatever_was_talked_about(file: str) -> None:
    cases = load(HERE / "cases" / f"{file}.jsonl")
    new = [each for each in cases if each["expect"]["kind"] in ("once", "recurring")]

    changed = [
        each["text"]
        for each in new
        if "tasks" not in each
        and parse(each["text"], each["now"], each["tz"])
        != parse(each["text"], each["now"], each["tz"], tasks=TASKS, focus="call")
    ]

    assert changed == []
