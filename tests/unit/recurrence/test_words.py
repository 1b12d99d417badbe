"""Schedules in words: what people read before they agree."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings

from holdfast.recurrence import Schedule

from .rules_at_random import Case, cases

BERLIN = "Europe/Berlin"
RULES = [
    ("FREQ=DAILY", "every day at 09:30"),
    ("FREQ=DAILY;INTERVAL=2", "every 2 days at 09:30, counted from 15 January 2026"),
    ("FREQ=DAILY;BYHOUR=9,17", "every day at 09:30 and 17:30"),
    (
        "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
        "every day at minutes 0, 20 and 40 of hours 9 to 16",
    ),
    ("FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR", "every day, only on Monday to Friday, at 09:30"),
    (
        "FREQ=DAILY;INTERVAL=3;BYMONTH=6,7,8;BYDAY=SA,SU",
        "every 3 days, only on Saturday and Sunday, only in June to August, at 09:30, counted from 15 January 2026",
    ),
    (
        "FREQ=DAILY;BYMONTHDAY=1,-1",
        "every day, only on the 1st and the last day of the month, at 09:30",
    ),
    ("FREQ=DAILY;COUNT=10", "every day at 09:30, counted from 15 January 2026, 10 times"),
    ("FREQ=DAILY;UNTIL=20261224T000000Z", "every day at 09:30, until 24 December 2026 00:00 UTC"),
    ("FREQ=WEEKLY", "every week on Thursday at 09:30"),
    ("FREQ=WEEKLY;BYDAY=MO,WE,FR", "every week on Monday, Wednesday and Friday at 09:30"),
    (
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU",
        "every 2 weeks on Tuesday and Sunday at 09:30, weeks starting on Sunday, counted from 15 January 2026",
    ),
    (
        "FREQ=WEEKLY;BYDAY=MO;BYMONTH=1,2",
        "every week on Monday, only in January and February, at 09:30",
    ),
    ("FREQ=MONTHLY", "every month on the 15th at 09:30"),
    ("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0", "every month on the last Friday at 17:00"),
    ("FREQ=MONTHLY;BYDAY=1MO,3MO", "every month on the first Monday and the third Monday at 09:30"),
    ("FREQ=MONTHLY;BYDAY=TU", "every month on every Tuesday at 09:30"),
    (
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "every month on every Monday to Friday at 09:30, only the last of these in each month",
    ),
    ("FREQ=MONTHLY;BYMONTHDAY=1,15", "every month on the 1st and 15th at 09:30"),
    ("FREQ=MONTHLY;BYMONTHDAY=-1", "every month on the last day at 09:30"),
    ("FREQ=MONTHLY;BYMONTHDAY=-3,10", "every month on the 10th and the 3rd to last day at 09:30"),
    ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "every month on the 13th, if it is a Friday, at 09:30"),
    (
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "every month on the 7th to 13th, if it is a Saturday, at 09:30",
    ),
    (
        "FREQ=MONTHLY;BYMONTH=3,6,9,12;BYMONTHDAY=-1",
        "every month on the last day in March, June, September and December at 09:30",
    ),
    (
        "FREQ=MONTHLY;INTERVAL=18;BYMONTHDAY=10",
        "every 18 months on the 10th at 09:30, counted from 15 January 2026",
    ),
    ("FREQ=MONTHLY;BYDAY=MO,-1FR", "every month on every Monday and the last Friday at 09:30"),
    ("FREQ=YEARLY", "every year on the 15th of January at 09:30"),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "every year on the 29th of February at 09:30"),
    ("FREQ=YEARLY;BYMONTH=1,6", "every year on the 15th of January and June at 09:30"),
    ("FREQ=YEARLY;BYMONTHDAY=15", "every year on the 15th of every month at 09:30"),
    ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", "every year on the fourth Thursday of November at 09:30"),
    ("FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "every year on every Thursday of March at 09:30"),
    ("FREQ=YEARLY;BYDAY=20MO", "every year on the 20th Monday of the year at 09:30"),
    ("FREQ=YEARLY;BYDAY=MO", "every year on every Monday at 09:30"),
    ("FREQ=YEARLY;BYWEEKNO=20", "every year on Thursday of week 20 at 09:30"),
    (
        "FREQ=YEARLY;BYWEEKNO=1,-1;BYDAY=MO,FR;WKST=SU",
        "every year on Monday and Friday of week 1 and the last week at 09:30, weeks starting on Sunday",
    ),
    (
        "FREQ=YEARLY;BYWEEKNO=20;BYMONTHDAY=15",
        "every year on the 15th of every month, if it is in week 20, at 09:30",
    ),
    (
        "FREQ=YEARLY;BYYEARDAY=1,100,-1",
        "every year on days 1 and 100 and the last day of the year at 09:30",
    ),
    (
        "FREQ=YEARLY;BYYEARDAY=1;BYDAY=MO",
        "every year on day 1 of the year, if it is a Monday, at 09:30",
    ),
    (
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "every 4 years on the 2nd to 8th of November, if it is a Tuesday, at 09:30, counted from 15 January 2026",
    ),
    (
        "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1;BYDAY=1MO",
        "every year on the 1st of January, if it is the first Monday of the month, at 09:30",
    ),
    ("FREQ=HOURLY", "every hour, counted from 15 January 2026 09:30"),
    ("FREQ=HOURLY;INTERVAL=6", "every 6 hours, counted from 15 January 2026 09:30"),
    (
        "FREQ=HOURLY;BYMINUTE=0,30",
        "every hour at minutes 0 and 30, counted from 15 January 2026 09:30",
    ),
    (
        "FREQ=HOURLY;BYMINUTE=0,30;BYSECOND=15;BYDAY=MO",
        "every hour at minutes 0 and 30 and second 15, only on Monday, counted from 15 January 2026 09:30",
    ),
    (
        "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12",
        "every 20 minutes, only in hours 9 to 12, counted from 15 January 2026 09:30",
    ),
    (
        "FREQ=SECONDLY;INTERVAL=10;BYMINUTE=0",
        "every 10 seconds, only in minute 0, counted from 15 January 2026 09:30",
    ),
    (
        "FREQ=MINUTELY;BYSECOND=0,30;BYMONTH=1",
        "every minute at seconds 0 and 30, only in January, counted from 15 January 2026 09:30",
    ),
]
LINES = [
    ("0 9 * * *", "every day at 09:00"),
    ("0 9 * * 1-5", "on Monday to Friday at 09:00"),
    ("30 8,20 1,15 * *", "on the 1st and 15th of the month at 08:30 and 20:30"),
    ("0 9 13 * 5", "on the 13th of the month, or on Friday, at 09:00"),
    ("*/15 * * * *", "every 15 minutes"),
    ("*/25 * * * *", "at minutes 0, 25 and 50 of every hour"),
    ("*/15 9-17 * * MON-FRI", "every 15 minutes of hours 9 to 17, on Monday to Friday"),
    ("0 * * * *", "every hour at minute 0"),
    ("5 * * * *", "at minute 5 of every hour"),
    ("* * * * *", "every minute"),
    ("0 9 L * *", "on the last day of the month at 09:00"),
    ("0 9 * * 5L", "on the last Friday of the month at 09:00"),
    ("0 9 * * 5#3,1", "on Monday and the third Friday of the month at 09:00"),
    (
        "0 9 15W,LW 1-3 *",
        "on the last workday and the workday nearest to the 15th of the month in January to March at 09:00",
    ),
    (
        "0 9 */2 * 1",
        "on the 1st, 3rd, 5th, 7th, 9th, 11th, 13th, 15th, 17th, 19th, 21st, 23rd, 25th, 27th, 29th and 31st of the month if it is Monday at 09:00",
    ),
    ("0 9 * 6 *", "every day in June at 09:00"),
    ("0 0,1,2,3,4,5,6,7,8,9 * * *", "every day at minute 0 of hours 0 to 9"),
    ("0 9 1 1 *", "on the 1st of the month in January at 09:00"),
]


@pytest.mark.parametrize(("rule", "words"), RULES)
def test_a_rule_in_words(rule: str, words: str) -> None:
    schedule = Schedule.rrule(rule, dtstart="2026-01-15T09:30", tz=BERLIN)

    assert schedule.describe() == f"{words}, {BERLIN}"


@pytest.mark.parametrize(("line", "words"), LINES)
def test_a_cron_line_in_words(line: str, words: str) -> None:
    assert Schedule.cron(line).words == f"{words}, UTC"


def test_everything_that_decides_is_said() -> None:
    schedule = Schedule.rrule(
        "RRULE:FREQ=DAILY\nRRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17",
        dtstart="2026-01-15T09:30",
        tz=BERLIN,
        rdate=["2026-02-01T12:00"],
        exdate=[date(2026, 1, 20), "2026-01-21T08:30Z"],
        gap="skip",
        overlap="both",
        until=date(2026, 12, 24),
        max_runs=9,
    )

    assert schedule.words == (
        "every day at 09:30; and every month on the last Friday at 17:30, "
        "also on 1 February 2026 12:00, until 24 December 2026, 9 times at most, "
        "except on 20 January 2026 and 21 January 2026 08:30 UTC, "
        "left out where the clock skips that time, "
        "both times where the clock shows it twice, Europe/Berlin"
    )


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (
            Schedule.every("90m", start="2026-01-01T00:00Z"),
            "every 90 minutes, counted from 1 January 2026 00:00, UTC",
        ),
        (Schedule.every("1d"), "every 24 hours, counted from 1 January 2001 00:00, UTC"),
        (
            Schedule.once("2026-03-29T02:30", tz=BERLIN),
            "once on 29 March 2026 02:30, Europe/Berlin",
        ),
        (
            Schedule.cron("@daily", start="2026-01-01", max_runs=1),
            "every day at 00:00, from 1 January 2026 00:00 on, once at most, UTC",
        ),
    ],
)
def test_other_kinds_in_words(schedule: Schedule, words: str) -> None:
    assert schedule.words == words


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_every_rule_has_words_and_one_spelling(case: Case) -> None:
    try:
        schedule = Schedule.rrule(case.text, dtstart=case.dtstart, tz=case.tz)
    except ValueError:
        return

    again = Schedule.rrule("\n".join(schedule.rules), dtstart=case.dtstart, tz=case.tz)

    assert again == schedule
    assert hash(again) == hash(schedule)
    assert again.words == schedule.words
    assert schedule.words.startswith("every ")
