"""`holdfast schedule …`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.integration.cli.conftest import Ran, Shell

from holdfast.testing.eventually import eventually

BERLIN = ("--tz", "Europe/Berlin")
ANN = '{"to": "ann"}'


@pytest.fixture
def made(fresh: Shell) -> Shell:
    """A store with one schedule of each spelling."""
    for name, rule in (
        ("weekdays", "0 9 * * 1-5"),
        ("last-friday", "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17"),
        ("poll", "every 90m"),
        ("eve", "2099-12-24T18:00"),
    ):
        add(fresh, rule, "--name", name)
    return fresh


def add(shell: Shell, rule: str, *options: str) -> Any:
    return shell.ok("schedule", "add", "shop:app", "send_mail", rule, ANN, *BERLIN, *options)


def table(ran: Ran) -> dict[str, str]:
    """The lines of a table by their first word."""
    assert ran.code == 0, ran.err
    return {line.split()[0]: line for line in ran.out.splitlines() if line}


def test_every_spelling_of_a_rule_is_taken_and_said_in_words(made: Shell) -> None:
    listed = {one["name"]: one for one in made.ok("schedule", "list")["schedules"]}

    assert {name: (one["kind"], one["words"]) for name, one in listed.items()} == {
        "weekdays": ("cron", "on Monday to Friday at 09:00, Europe/Berlin"),
        "last-friday": ("rrule", "every month on the last Friday at 17:00, Europe/Berlin"),
        "poll": (
            "interval",
            "every 90 minutes, counted from 1 January 2001 00:00, Europe/Berlin",
        ),
        "eve": ("once", "once on 24 December 2099 18:00, Europe/Berlin"),
    }
    assert {one["status"] for one in listed.values()} == {"active"}
    assert listed["eve"]["next_run_at"] == "2099-12-24T17:00:00Z"
    assert listed["eve"]["next_run_local"] == "2099-12-24T18:00:00+01:00"


def test_the_list_shows_people_the_next_run_the_rule_and_how_the_last_one_ended(
    made: Shell,
) -> None:
    made.ok("schedule", "trigger", "eve")
    made.work()

    lines = table(made.run("schedule", "list"))

    assert "2099-12-24 18:00 CET" in lines["eve"]
    assert "success" in lines["eve"]
    assert "once on 24 December 2099 18:00, Europe/Berlin" in lines["eve"]
    assert "09:00 CE" in lines["weekdays"]
    assert "success" not in lines["weekdays"]


def test_an_empty_list_says_how_to_make_one(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})

    assert "holdfast schedule add APP TASK RULE" in fresh.run("schedule", "list").out
    assert fresh.ok("schedule", "list") == {"schedules": [], "next": None}


def test_what_was_said_of_a_schedule_is_shown(fresh: Shell) -> None:
    said = add(
        fresh, "every 1h", "--name", "hourly", "--start", "2026-01-01T00:30", "--until",
        "2099-01-01", "--overlap", "queue_one", "--catch-up", "all", "--catch-up-most", "7",
        "--catch-up-window", "2d", "--jitter", "30s", "--pause-after-failures", "3", "--owner",
        "ann", "--title", "Hourly mail", "--channel", "inbox",
        "--estimated-units", "2.5", "--queue", "slow", "--priority", "low", "--tag", "news",
    )  # fmt: skip
    shown = fresh.ok("schedule", "show", "hourly")
    text = fresh.run("schedule", "show", "hourly").out

    assert shown == said
    expected = {
        "overlap": "queue_one", "catch_up": "all", "catch_up_most": 7,
        "catch_up_window_seconds": 172_800.0, "jitter_seconds": 30.0, "pause_after_failures": 3,
        "owner": "ann", "title": "Hourly mail", "channels": ["inbox"],
        "estimated_units": 2.5, "queue": "slow", "priority": "low", "tags": ["mail", "news"],
        "task_type": "shop.send_mail", "parameters": {"to": "ann"},
        "is_declared": False,
    }  # fmt: skip
    assert {name: shown[name] for name in expected} == expected
    assert shown["rule"]["dtstart"] == "2026-01-01T00:30:00"
    assert "catch up         all, 7 at most, none older than 2 d" in text
    assert "counted from 1 January 2026 00:30, until 1 January 2099, Europe/Berlin" in text


def test_a_dry_run_shows_what_would_be_and_stores_nothing(fresh: Shell) -> None:
    said = add(fresh, "2099-12-24T18:00", "--dry-run")
    text = fresh.run(
        "schedule", "add", "shop:app", "send_mail", "0 9 * * *", ANN, "--dry-run", "--next", "2"
    ).out

    assert said["words"] == "once on 24 December 2099 18:00, Europe/Berlin"
    assert [run["utc"] for run in said["runs"]] == ["2099-12-24T17:00:00Z"]
    assert said["is_complete"] is True
    assert text.startswith("Every day at 09:00, UTC.\n")
    assert text.count(" 09:00:00 ") == 2
    assert fresh.ok("schedule", "list")["schedules"] == []


# Wrong input: the field, the reason, what would be valid; exit code 2; nothing stored.

WRONG = {
    "zone": (["0 9 * * *", ANN, "--tz", "Europe/Berln"], ["tz:", "Europe/Berlin"]),
    "cron line": (["61 * * * *", ANN], ["cron: expected the minute from 0 to 59", "61"]),
    "rule": (["FREQ=FORTNIGHTLY", ANN], ["FREQ", "WEEKLY"]),
    "rule that never runs": (["FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", ANN], ["never"]),
    "no rule": (["every now and then", ANN], ["every:", "expected a duration"]),
    "until before the start": (
        ["every 1h", ANN, "--start", "2027-01-02T00:00", "--until", "2027-01-01"],
        ["until:", "2027-01-01"],
    ),
    "past date": (["2020-01-01T10:00", ANN], ["at: expected a run to come"]),
    "interval under the floor": (["every 0s", ANN], ["every:", "at least 1"]),
    "runs counted from no start": (
        ["every 1h", ANN, "--max-runs", "3"],
        ["dtstart: expected a start"],
    ),
    "overlap": (["every 1h", ANN, "--overlap", "skp"], ["overlap:", "Did you mean 'skip'?"]),
    "catch up": (["every 1h", ANN, "--catch-up", "most"], ["catch_up:", "one, all, skip"]),
    "jitter": (["every 1h", ANN, "--jitter", "some"], ["jitter:", "expected a duration"]),
    "name": (["every 1h", ANN, "--name", "a b"], ["name:", "without blanks"]),
    "name that is taken": (["every 1h", ANN, "--name", "taken"], ["name:", "already"]),
    "JSON": (["every 1h", "{to: ann}"], ["the arguments are no JSON"]),
    "an option that does not go with the rule": (
        ["2099-01-01T10:00", ANN, "--until", "2100-01-01"],
        ["until:", "expected"],
    ),
}


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]], ids=["stored", "dry"])
def test_what_is_wrong_is_refused_with_the_field_and_what_would_be_valid(
    fresh: Shell, dry_run: list[str]
) -> None:
    add(fresh, "every 1h", "--name", "taken")

    for case, (arguments, sentences) in WRONG.items():
        ran = fresh.run("schedule", "add", "shop:app", "send_mail", *arguments, *dry_run)

        assert ran.code == 2, (case, ran)
        assert all(sentence in ran.err for sentence in sentences), (case, ran.err)
        assert "Traceback" not in ran.err
        assert ran.out == ""
    assert len(fresh.ok("schedule", "list")["schedules"]) == 1


def test_arguments_that_do_not_fit_the_task_are_refused_as_submit_does(fresh: Shell) -> None:
    add(fresh, "every 1h", "--name", "fits")

    ran = fresh.run("schedule", "add", "shop:app", "send_mail", "every 1h", '{"to": 1}', "--json")

    assert ran.code == 1
    assert ran.error["problems"][0]["place"] == "to"
    assert len(fresh.ok("schedule", "list")["schedules"]) == 1


# Preview.


def test_a_preview_says_in_words_what_is_odd_about_a_run(shell: Shell) -> None:
    after = ("--after", "2026-03-28T12:00", "--next", "2")

    ran = shell.run("schedule", "preview", "30 2 * * *", *BERLIN, *after)
    said = shell.ok("schedule", "preview", "30 2 * * *", *BERLIN, *after)

    assert ran.out == (
        "Every day at 02:30, Europe/Berlin.\n"
        "\n"
        "IN EUROPE/BERLIN         ZONE  UTC                   NOTE\n"
        "Sun 2026-03-29 03:30:00  CEST  2026-03-29 01:30:00Z  "
        "moved: 02:30 does not exist that day\n"
        "Mon 2026-03-30 02:30:00  CEST  2026-03-30 00:30:00Z\n"
    )
    assert said["runs"][0] == {
        "local": "2026-03-29T03:30:00+02:00",
        "utc": "2026-03-29T01:30:00Z",
        "abbreviation": "CEST",
        "flags": ["moved_by_gap"],
        "meant": "2026-03-29T02:30:00",
        "skipped": [],
    }


@pytest.mark.parametrize(
    ("rule", "after", "sentence"),
    [
        ("30 2 * * *", "2026-10-24T12:00", "the first of two: the clock shows that time twice"),
        ("FREQ=MONTHLY;BYMONTHDAY=31", "2026-02-01", "before it 2026-02 had no such day"),
    ],
)
def test_other_oddities_are_told_too(shell: Shell, rule: str, after: str, sentence: str) -> None:
    ran = shell.run("schedule", "preview", rule, *BERLIN, "--after", after)

    assert sentence in ran.out


def test_a_preview_can_be_seen_in_another_zone(shell: Shell) -> None:
    said = shell.ok(
        "schedule", "preview", "0 9 * * *", *BERLIN, "--after", "2026-01-01T00:00Z", "--in",
        "Asia/Tokyo", "--next", "1",
    )  # fmt: skip

    assert (said["tz"], said["shown_tz"]) == ("Europe/Berlin", "Asia/Tokyo")
    assert said["runs"][0]["local"] == "2026-01-01T17:00:00+09:00"


def test_a_rule_that_ends_says_so(shell: Shell) -> None:
    ran = shell.run("schedule", "preview", "2026-12-24T18:00", "--after", "2026-01-01")
    over = shell.run("schedule", "preview", "2020-12-24T18:00")

    assert ran.out.endswith("There are no more.\n")
    assert over.out.endswith("It does not run any more.\n")


def test_a_schedule_is_previewed_by_its_name_in_its_own_zone(made: Shell) -> None:
    said = made.ok("schedule", "preview", "weekdays", "--after", "2026-03-06T10:00", "--next", "1")
    zoned = made.run("schedule", "preview", "weekdays", "--tz", "UTC")

    assert said["runs"][0]["local"] == "2026-03-09T09:00:00+01:00"
    assert zoned.code == 2
    assert "has a zone, Europe/Berlin" in zoned.err


def test_neither_a_name_nor_a_rule_is_refused_as_both(made: Shell) -> None:
    ran = made.run("schedule", "preview", "weekday")

    assert ran.code == 2
    assert "there is no schedule 'weekday', and it is no rule either" in ran.err


# Acts.


def test_a_pause_lasts_until_its_end_or_until_somebody_resumes_it(made: Shell) -> None:
    paused = made.ok("schedule", "pause", "poll", "--note", "moving house")
    resumed = made.run("schedule", "resume", "poll")
    until = made.run("schedule", "pause", "poll", "--until", "2098-01-01T00:00")
    past = made.run("schedule", "pause", "poll", "--until", "2020-01-01T00:00")

    assert (paused["status"], paused["note"], paused["next_run_at"]) == (
        "paused",
        "moving house",
        None,
    )
    assert resumed.out.startswith("poll is active; next run ")
    assert until.out == "poll is paused until 2098-01-01 00:00 CET.\n"
    assert past.code == 2
    assert "until: expected a time to come" in past.err


def test_a_skip_leaves_out_the_next_run_and_another_one_that_after_it(made: Shell) -> None:
    first = made.ok("schedule", "show", "weekdays")
    skipped = made.ok("schedule", "skip", "weekdays")
    twice = made.ok("schedule", "skip", "weekdays")
    nothing = made.run("schedule", "skip", "eve"), made.run("schedule", "skip", "eve")

    assert skipped["skips"] == [first["next_run_at"]]
    assert skipped["next_run_at"] > first["next_run_at"]
    assert twice["skips"] == [first["next_run_at"], skipped["next_run_at"]]
    assert nothing[0].out.startswith("The run of 2099-12-24 18:00 CET is left out. ")
    assert nothing[1].code == 2
    assert "has no run to come" in nothing[1].err


def test_a_run_by_hand_is_a_task_that_names_its_schedule(made: Shell) -> None:
    task_id = made.run("schedule", "trigger", "weekdays").out.strip()
    made.work()

    [run] = made.ok("schedule", "runs", "weekdays")["runs"]
    found = made.ok("task", "list", "--schedule", "weekdays")["tasks"]
    text = made.run("schedule", "runs", "weekdays").out

    assert (run["task_id"], run["origin"], run["status"]) == (task_id, "manual", "success")
    assert run["content"] == "1 to ann"
    assert [task["task_id"] for task in found] == [task_id]
    assert found[0]["schedule"]["name"] == "weekdays"
    assert made.ok("task", "list", "--schedule", "poll")["tasks"] == []
    assert task_id in text
    assert "took" in text


def test_a_run_that_failed_says_why(fresh: Shell) -> None:
    fresh.ok("schedule", "add", "shop:app", "bill", "every 1h", '{"customer": "x"}', "-n", "bills")
    fresh.ok("schedule", "trigger", "bills")
    fresh.work()

    text = fresh.run("schedule", "show", "bills").out

    assert "failure" in text
    assert "ValueError: no customer 'x'" in text


def test_a_backfill_runs_what_is_missing_in_the_schedules_own_time_once(made: Shell) -> None:
    week = ("2026-03-02T00:00", "2026-03-09T00:00")

    first = made.ok("schedule", "backfill", "weekdays", *week)
    again = made.run("schedule", "backfill", "weekdays", *week)
    many = made.run("schedule", "backfill", "poll", "2020-01-01", "2026-01-01")

    assert len(first["task_ids"]) == 5
    assert again.out == "Nothing was left to run.\n"
    runs = made.ok("schedule", "runs", "weekdays")["runs"]
    assert [run["local"] for run in reversed(runs)] == [
        f"2026-03-{day:02}T09:00:00+01:00" for day in range(2, 7)
    ]
    assert {(run["origin"], run["status"]) for run in runs} == {("backfill", "running")}
    assert many.code == 2
    assert "most: there are more than 1,000 runs in this range" in many.err


def test_runs_come_in_pages(made: Shell) -> None:
    made.ok("schedule", "backfill", "weekdays", "2026-03-02", "2026-03-07")

    first = made.ok("schedule", "runs", "weekdays", "--limit", "3")
    rest = made.ok("schedule", "runs", "weekdays", "--after", first["next"])

    assert (len(first["runs"]), len(rest["runs"]), rest["next"]) == (3, 2, None)


def test_delete_asks_first_and_leaves_the_tasks(made: Shell) -> None:
    made.ok("schedule", "trigger", "poll")

    asked = made.run("schedule", "delete", "poll")
    gone = made.ok("schedule", "delete", "poll", "--yes")
    again = made.run("schedule", "delete", "poll", "--yes", "--json")

    assert asked.code == 2
    assert "add --yes" in asked.err
    assert gone == {"id": "poll", "deleted": True}
    assert (again.code, again.error["code"]) == (1, "schedule_not_found")
    assert len(made.ok("task", "list", "--schedule", "poll")["tasks"]) == 1


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "skip", "trigger", "runs"])
def test_a_schedule_that_is_not_there_is_named(made: Shell, verb: str) -> None:
    ran = made.run("schedule", verb, "nobody")

    assert ran.code == 1
    assert "no schedule 'nobody' in this store" in ran.err


# Declared in code.


def sync(shell: Shell, *options: str, rule: str = "0 2 * * *") -> Ran:
    ran = shell.run("schedule", "sync", "scheduled:app", *options, RULE=rule)
    assert ran.code == 0, ran.err
    return ran


def test_sync_says_what_a_deploy_adds_changes_and_removes(fresh: Shell) -> None:
    assert sync(fresh).out == "nightly: added\npoll: added\n"
    assert sync(fresh).out == "Everything is as the code says.\n"
    assert sync(fresh, rule="0 3 * * *").out == "nightly: changed\n"
    assert json.loads(sync(fresh, "--json", rule="").out) == {
        "added": [],
        "changed": [],
        "removed": ["nightly"],
        "kept": [],
    }
    assert [one["name"] for one in fresh.ok("schedule", "list")["schedules"]] == ["poll"]


def test_what_is_declared_says_so_and_comes_back_when_deleted(fresh: Shell) -> None:
    sync(fresh)

    shown = fresh.run("schedule", "show", "nightly").out
    asked = fresh.run("schedule", "delete", "nightly")

    assert "\ndeclared   in code\n" in shown
    assert "It comes back with the next worker that declares it." in asked.err


def test_a_worker_brings_what_is_declared_and_fires_it(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})
    worker = fresh.start("worker", "scheduled:app", RULE="every 1s")
    try:
        seen = ("task", "list", "--schedule", "nightly")
        asyncio.run(eventually(lambda: fresh.ok(*seen)["tasks"], within=60))
    finally:
        worker.terminate()
        worker.wait(30)

    first = fresh.ok("schedule", "runs", "nightly")["runs"][-1]
    assert first["origin"] == "schedule"
    assert first["lateness_seconds"] >= 0
