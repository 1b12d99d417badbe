"""What is refused, with the field, the reason and what would be valid; and that nothing else is
raised, however odd the text.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidOption
from holdfast.recurrence import Schedule

START = "2026-01-01T09:00"


def rule(text: str, **options: Any) -> Callable[[], object]:
    return lambda: Schedule.rrule(text, **{"dtstart": START, **options})


def cron(text: str, **options: Any) -> Callable[[], object]:
    return lambda: Schedule.cron(text, **options)


REFUSED: list[tuple[Callable[[], object], str, str]] = [
    # the shape of a rule
    (rule(""), "rrule", "expected a rule such as FREQ=DAILY"),
    (rule("DAILY"), "rrule", "expected parts such as FREQ=DAILY"),
    (rule("INTERVAL=2"), "rrule", "expected FREQ=…"),
    (rule("FREQ=FORTNIGHTLY"), "rrule", "SECONDLY, MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY"),
    (rule("FREQ=DAILY;FREQ=DAILY"), "rrule", "expected FREQ once, got it twice"),
    (rule("FREQ=DAILY;BYEASTER=0"), "rrule", "got 'BYEASTER'"),
    (rule("FREQ=DAILY;X-FOO=1"), "rrule", "got 'X-FOO'"),
    (rule("FREQ=DAILY;;BYHOUR=1"), "rrule", "got ''"),
    (rule("FREQ=DAILY;BYHOUR="), "rrule", "expected a value after BYHOUR="),
    (rule("FREQ=DAILY;BYHOUR=1,,2"), "rrule", "expected BYHOUR from 0 to 23, got ''"),
    # values
    (rule("FREQ=DAILY;INTERVAL=0"), "rrule", "expected INTERVAL to be a whole number from 1"),
    (rule("FREQ=DAILY;INTERVAL=-1"), "rrule", "got '-1'"),
    (rule("FREQ=DAILY;INTERVAL=1.5"), "rrule", "got '1.5'"),
    (rule("FREQ=DAILY;INTERVAL=" + "9" * 30), "rrule", "expected INTERVAL"),
    (rule("FREQ=DAILY;COUNT=0"), "rrule", "expected COUNT from 1 to 100,000, got '0'"),
    (rule("FREQ=DAILY;COUNT=100001"), "rrule", "expected COUNT from 1 to 100,000"),
    (rule("FREQ=DAILY;BYHOUR=24"), "rrule", "expected BYHOUR from 0 to 23, got '24'"),
    (rule("FREQ=DAILY;BYMINUTE=60"), "rrule", "expected BYMINUTE from 0 to 59, got '60'"),
    (rule("FREQ=DAILY;BYSECOND=60"), "rrule", "expected BYSECOND from 0 to 59, got '60'"),
    (rule("FREQ=DAILY;BYHOUR=-1"), "rrule", "expected BYHOUR from 0 to 23, got '-1'"),
    (rule("FREQ=DAILY;BYHOUR=٣"), "rrule", "expected BYHOUR from 0 to 23"),
    (rule("FREQ=YEARLY;BYMONTH=13"), "rrule", "expected BYMONTH from 1 to 12, got '13'"),
    (rule("FREQ=YEARLY;BYMONTH=0"), "rrule", "expected BYMONTH from 1 to 12, got '0'"),
    (rule("FREQ=MONTHLY;BYMONTHDAY=32"), "rrule", "from 1 to 31 or -31 to -1, got '32'"),
    (rule("FREQ=MONTHLY;BYMONTHDAY=0"), "rrule", "got '0'"),
    (rule("FREQ=YEARLY;BYYEARDAY=367"), "rrule", "expected BYYEARDAY from 1 to 366"),
    (rule("FREQ=YEARLY;BYWEEKNO=54"), "rrule", "expected BYWEEKNO from 1 to 53"),
    (rule("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0"), "rrule", "expected BYSETPOS from 1 to 366"),
    (rule("FREQ=WEEKLY;BYDAY=MON"), "rrule", "expected BYDAY to list days such as MO or -1FR"),
    (rule("FREQ=MONTHLY;BYDAY=0MO"), "rrule", "got '0MO'"),
    (rule("FREQ=YEARLY;BYDAY=54MO"), "rrule", "(-53 to 53), got '54MO'"),
    (rule("FREQ=WEEKLY;WKST=XX"), "rrule", "expected WKST to be one of MO, TU"),
    # what does not go together
    (rule("FREQ=DAILY;COUNT=3;UNTIL=20270101"), "rrule", "expected COUNT or UNTIL, got both"),
    (rule("FREQ=DAILY;BYSETPOS=1"), "rrule", "expected another BY part beside BYSETPOS"),
    (rule("FREQ=WEEKLY;BYDAY=1MO"), "rrule", "numbers need FREQ=MONTHLY or FREQ=YEARLY"),
    (rule("FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO"), "rrule", "beside BYWEEKNO"),
    (rule("FREQ=MONTHLY;BYWEEKNO=20"), "rrule", "BYWEEKNO only with FREQ=YEARLY"),
    (rule("FREQ=MONTHLY;BYYEARDAY=20"), "rrule", "BYYEARDAY with FREQ=YEARLY"),
    (rule("FREQ=WEEKLY;BYMONTHDAY=13"), "rrule", "got FREQ=WEEKLY"),
    # rules that never run
    (rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"), "rrule", "which never does"),
    (rule("FREQ=MONTHLY;BYMONTH=4;BYMONTHDAY=31"), "rrule", "which never does"),
    (rule("FREQ=MONTHLY;BYDAY=6MO"), "rrule", "which never does"),
    (rule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31"), "rrule", "which never does"),
    (rule("FREQ=DAILY;INTERVAL=7;BYDAY=MO"), "rrule", "which never does"),
    (rule("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30"), "rrule", "which never does"),
    (rule("FREQ=YEARLY;INTERVAL=2;BYYEARDAY=366", dtstart="2025-01-01"), "rrule", "never does"),
    (rule("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6"), "rrule", "which never does"),
    (rule("FREQ=DAILY;BYHOUR=9;BYSETPOS=2"), "rrule", "which never does"),
    (
        rule("FREQ=HOURLY;INTERVAL=24;BYHOUR=13", tz="Europe/Berlin"),
        "rrule",
        "its steps from the start never meet",
    ),
    (rule("FREQ=MINUTELY;INTERVAL=60;BYMINUTE=30"), "rrule", "never meet"),
    (rule("FREQ=SECONDLY;INTERVAL=2;BYSECOND=1"), "rrule", "never meet"),
    (rule("FREQ=HOURLY;BYMINUTE=0,30;BYSETPOS=3"), "rrule", "a period has 2 of these at most"),
    # starts, ends and dates
    (rule("FREQ=DAILY;UNTIL=20251231"), "until", "expected a time from the start on"),
    (rule("FREQ=DAILY;UNTIL=20260230"), "until", "expected a day and time that exist"),
    (rule("FREQ=DAILY;UNTIL=soon"), "until", "expected a time such as"),
    (rule("FREQ=YEARLY;BYMONTH=12;UNTIL=20260601"), "until", "does not run by then"),
    (rule("FREQ=DAILY", until="2025-01-01"), "until", "it does not run by then"),
    (rule("FREQ=DAILY", dtstart="tomorrow"), "dtstart", "expected a time such as"),
    (rule("FREQ=DAILY", dtstart="2026-01-01T24:00"), "dtstart", "that exist"),
    (rule("FREQ=DAILY", dtstart="20260101T235960"), "dtstart", "leap seconds are no run times"),
    (rule("FREQ=DAILY", dtstart="0001-01-01T00:00"), "dtstart", "expected a year from 2 to 9998"),
    (rule("FREQ=DAILY;COUNT=3", dtstart=None), "dtstart", "expected a start"),
    (rule("DTSTART:20260101T090000\nFREQ=DAILY"), "dtstart", "got it in the text and as an"),
    (rule("FREQ=DAILY", exdate="2026-01-01"), "exdate", "expected a list of times"),
    (rule("FREQ=DAILY", rdate=["x"]), "rdate", "expected a time such as"),
    (rule("RDATE;VALUE=PERIOD:20260101T0900/PT1H"), "rdate", "expected VALUE=DATE or DATE-TIME"),
    (rule("FREQ=DAILY\nEXRULE:FREQ=WEEKLY"), "rrule", "got EXRULE"),
    (rule("FREQ=DAILY\nSUMMARY:x"), "rrule", "got 'SUMMARY'"),
    (rule("FREQ=DAILY", max_runs=0), "max_runs", "from 1 to 100,000, got 0"),
    (rule("FREQ=DAILY", gap="move"), "gap", "expected shift or skip, got 'move'"),
    (rule("FREQ=DAILY", overlap="all"), "overlap", "expected first, second or both"),
    # zones
    (rule("FREQ=DAILY", tz="Europe/Berln"), "tz", "Did you mean Europe/Berlin"),
    (rule("FREQ=DAILY", tz="europe/berlin"), "tz", "Did you mean Europe/Berlin?"),
    (rule("FREQ=DAILY", tz="Berlin"), "tz", "Did you mean Europe/Berlin?"),
    (rule("FREQ=DAILY", tz="new york"), "tz", "Did you mean America/New_York?"),
    (rule("FREQ=DAILY", tz="EST"), "tz", "Did you mean America/New_York? UTC is accepted"),
    (rule("FREQ=DAILY", tz="CET"), "tz", "Did you mean Europe/Berlin?"),
    (rule("FREQ=DAILY", tz="PST"), "tz", "Did you mean America/Los_Angeles?"),
    (rule("FREQ=DAILY", tz="../etc/passwd"), "tz", "expected the IANA name"),
    (rule("FREQ=DAILY", tz="right/Europe/Berlin"), "tz", "expected the IANA name"),
    (rule("FREQ=DAILY", tz="America"), "tz", "expected the IANA name"),
    (rule("FREQ=DAILY", tz="Mars/Base\0"), "tz", "expected the IANA name"),
    (rule("FREQ=DAILY", tz=5), "tz", "expected the IANA name of a zone such as"),
    (
        lambda: Schedule.rrule("DTSTART;TZID=Asia/Tokyo:20260101T090000", tz="UTC"),
        "tz",
        "expected one zone",
    ),
    # intervals and single runs
    (lambda: Schedule.every("0s"), "every", "at least 1"),
    (lambda: Schedule.every(1.5), "every", "expected a whole number of seconds"),
    (lambda: Schedule.every("1 month"), "every", "expected a duration such as"),
    (lambda: Schedule.every("1h", max_runs=3), "start", "expected a start"),
    (lambda: Schedule.once("2026-02-30T09:00"), "at", "that exist"),
    (
        lambda: Schedule.once("2026-03-29T02:30", tz="Europe/Berlin", gap="skip"),
        "at",
        "expected a time that exists in Europe/Berlin",
    ),
    # cron
    (cron("0 9 * *"), "cron", "expected five fields (minute, hour"),
    (cron("0 0 9 * * *"), "cron", "got 6 in '0 0 9 * * *': fields for seconds and years"),
    (cron("0 0 9 * * * 2026"), "cron", "got 7"),
    (cron(""), "cron", "got 0"),
    (cron("60 * * * *"), "cron", "expected the minute from 0 to 59, got '60'"),
    (cron("0 24 * * *"), "cron", "expected the hour from 0 to 23"),
    (cron("0 0 0 * *"), "cron", "expected the day of month from 1 to 31"),
    (cron("0 0 * 13 *"), "cron", "expected the month from 1 to 12 or JAN to DEC"),
    (cron("0 0 * * 8"), "cron", "expected the day of week from 0 to 7 or SUN to SAT"),
    (cron("0 0 * * FOO"), "cron", "got 'FOO'"),
    (cron("5-1 * * * *"), "cron", "expected the minute range to go up, got '5-1'"),
    (cron("*/0 * * * *"), "cron", "expected the step of the minute from 1 to 59"),
    (cron("1,,2 * * * *"), "cron", "got ''"),
    (cron("0 0 * * 5#6"), "cron", "expected 1 to 5 after #"),
    (cron("0 0 * * L"), "cron", "such as 5L"),
    (cron("0 0 32W * *"), "cron", "expected W after a day from 1 to 31"),
    (cron("0 0 30 2 *"), "cron", "which never does"),
    (cron("@reboot"), "cron", "a schedule belongs to no machine"),
    (cron("@sometimes"), "cron", "expected one of @yearly"),
    (cron("0 9 * * *", tz="CET"), "tz", "Did you mean Europe/Berlin?"),
    (cron("0 9 * * *", max_runs=3), "start", "expected a start"),
    # questions, and stored schedules
    (
        lambda: Schedule.every("1h").next_after(datetime(2026, 1, 1)),
        "after",
        "expected a datetime with a zone",
    ),
    (lambda: Schedule.every("1h").preview(3), "after", "as the schedule has no start"),
    (lambda: Schedule.from_json([]), "schedule", "expected a mapping with a kind"),
    (lambda: Schedule.from_json({"kind": "moon"}), "kind", "expected one of once, interval, cron"),
    (
        lambda: Schedule.from_json({"kind": "cron", "cron": "@daily", "zone": "UTC"}),
        "schedule",
        "got 'zone'",
    ),
    (
        lambda: Schedule.from_json({"kind": "rrule", "rules": "FREQ=DAILY"}),
        "rules",
        "expected a list of texts",
    ),
    (lambda: Schedule.from_json({"kind": "cron"}), "cron", "expected a value, got none"),
]


@pytest.mark.parametrize(("make", "field", "reason"), REFUSED)
def test_refused_with_field_and_reason(make: Callable[[], object], field: str, reason: str) -> None:
    began = time.monotonic()

    with pytest.raises(InvalidOption) as refusal:
        make()

    assert refusal.value.option == field
    assert reason in str(refusal.value)
    assert len(str(refusal.value)) < 400
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("tz", ["Asia/Calcutta", "UTC", "Etc/UTC", "Japan", "US/Eastern"])
def test_links_and_utc_are_accepted(tz: str) -> None:
    assert Schedule.rrule("FREQ=DAILY", tz=tz).tz == tz


def test_an_abbreviation_is_good_enough_for_one_run() -> None:
    assert Schedule.once("2026-01-01T09:00", tz="EST").tz == "EST"


QUICK = settings(max_examples=150, deadline=10_000, suppress_health_check=list(HealthCheck))
PIECES = st.sampled_from(
    [
        "FREQ=",
        "DAILY",
        "HOURLY",
        "SECONDLY",
        "YEARLY",
        "MONTHLY",
        ";",
        "=",
        ",",
        "BYDAY=",
        "BYHOUR=",
        "BYMONTH=",
        "BYSETPOS=",
        "COUNT=",
        "INTERVAL=",
        "UNTIL=",
        "MO",
        "-1FR",
        "1",
        "2",
        "0",
        "-1",
        "13",
        "29",
        "60",
        "366",
        "20260101",
        "T090000",
        "Z",
        "RRULE:",
        "DTSTART:",
        "EXDATE:",
        "RDATE:",
        "\n",
        "*",
        "/",
        "-",
        "L",
        "#",
        "W",
        "@daily",
        "5",
        "59",
        "99999",
        ";TZID=",
        "UTC",
        ":",
    ]
)
TEXTS = st.text(max_size=60) | st.lists(PIECES, max_size=14).map("".join)


@QUICK
@given(text=TEXTS)
def test_odd_texts_are_refused_or_run(text: str) -> None:
    for make in (Schedule.rrule, Schedule.cron, Schedule.every, Schedule.once):
        try:
            schedule = make(text)
        except InvalidOption:
            continue
        assert schedule.describe()
        assert Schedule.from_json(schedule.to_json()) == schedule


@QUICK
@given(
    freq=st.sampled_from(
        ["SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"]
    ),
    parts=st.lists(
        st.sampled_from(
            [
                "BYMONTH=2",
                "BYMONTHDAY=29",
                "BYMONTHDAY=-31,30",
                "BYDAY=MO",
                "BYDAY=5WE",
                "BYYEARDAY=366",
                "BYWEEKNO=53",
                "BYHOUR=13",
                "BYMINUTE=59",
                "BYSECOND=59",
                "BYSETPOS=-1",
                "BYSETPOS=200",
                "COUNT=100000",
                "UNTIL=99981231",
            ]
        ),
        max_size=5,
        unique=True,
    ),
    interval=st.sampled_from([1, 2, 3, 7, 24, 400, 773, 7919, 86_400, 146_097, 9_999_999_999]),
    tz=st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia"]),
)
def test_sparse_rules_take_bounded_time(
    freq: str, parts: list[str], interval: int, tz: str
) -> None:
    text = ";".join([f"FREQ={freq}", f"INTERVAL={interval}", *parts])
    try:
        schedule = Schedule.rrule(text, dtstart=START, tz=tz)
    except InvalidOption:
        return
    instant = schedule.next_after(datetime.fromisoformat("2026-01-01T00:00:00+00:00"))
    for _ in range(3):
        if instant is not None:
            instant = schedule.next_after(instant)
