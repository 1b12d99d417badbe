"""Every example of RFC 5545, section 3.8.5.3, with the dates that it prints."""

from __future__ import annotations

import pytest

from holdfast.recurrence import Schedule

from .dates import days, local_runs

JANUARIES = "1998 Jan 1-31 | 1999 Jan 1-31 | 2000 Jan 1-31"
TUESDAYS_AND_THURSDAYS = "1997 Sep 2,4,9,11,16,18,23,25,30; Oct 2"

EXAMPLES = [
    ("FREQ=DAILY;COUNT=10", "0902", "1997 Sep 2-11"),
    (
        "FREQ=DAILY;UNTIL=19971224T000000Z",
        "0902",
        "1997 Sep 2-30; Oct 1-31; Nov 1-30; Dec 1-23",
    ),
    ("FREQ=DAILY;INTERVAL=10;COUNT=5", "0902", "1997 Sep 2,12,22; Oct 2,12"),
    (
        "FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA",
        "19980101",
        JANUARIES,
    ),
    ("FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1", "19980101", JANUARIES),
    ("FREQ=WEEKLY;COUNT=10", "0902", "1997 Sep 2,9,16,23,30; Oct 7,14,21,28; Nov 4"),
    (
        "FREQ=WEEKLY;UNTIL=19971224T000000Z",
        "0902",
        "1997 Sep 2,9,16,23,30; Oct 7,14,21,28; Nov 4,11,18,25; Dec 2,9,16,23",
    ),
    ("FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH", "0902", TUESDAYS_AND_THURSDAYS),
    ("FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH", "0902", TUESDAYS_AND_THURSDAYS),
    (
        "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
        "0901",
        "1997 Sep 1,3,5,15,17,19,29; Oct 1,3,13,15,17,27,29,31; Nov 10,12,14,24,26,28;"
        " Dec 8,10,12,22",
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
        "0902",
        "1997 Sep 2,4,16,18,30; Oct 2,14,16",
    ),
    (
        "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
        "0905",
        "1997 Sep 5; Oct 3; Nov 7; Dec 5 | 1998 Jan 2; Feb 6; Mar 6; Apr 3; May 1; Jun 5",
    ),
    (
        "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR",
        "0905",
        "1997 Sep 5; Oct 3; Nov 7; Dec 5",
    ),
    (
        "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
        "0907",
        "1997 Sep 7,28; Nov 2,30 | 1998 Jan 4,25; Mar 1,29; May 3,31",
    ),
    (
        "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
        "0922",
        "1997 Sep 22; Oct 20; Nov 17; Dec 22 | 1998 Jan 19; Feb 16",
    ),
    (
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
        "0902",
        "1997 Sep 2,15; Oct 2,15; Nov 2,15; Dec 2,15 | 1998 Jan 2,15",
    ),
    (
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
        "0930",
        "1997 Sep 30; Oct 1,31; Nov 1,30; Dec 1,31 | 1998 Jan 1,31; Feb 1",
    ),
    (
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        "0910",
        "1997 Sep 10-15 | 1999 Mar 10-13",
    ),
    (
        "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
        "0610",
        "1997 Jun 10; Jul 10 | 1998 Jun 10; Jul 10 | 1999 Jun 10; Jul 10 | 2000 Jun 10; Jul 10"
        " | 2001 Jun 10; Jul 10",
    ),
    (
        "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
        "0310",
        "1997 Mar 10 | 1999 Jan 10; Feb 10; Mar 10 | 2001 Jan 10; Feb 10; Mar 10"
        " | 2003 Jan 10; Feb 10; Mar 10",
    ),
    (
        "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
        "0101",
        "1997 Jan 1; Apr 10; Jul 19 | 2000 Jan 1; Apr 9; Jul 18 | 2003 Jan 1; Apr 10; Jul 19"
        " | 2006 Jan 1",
    ),
    (
        "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
        "0904",
        "1997 Sep 4; Oct 7; Nov 6",
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
        "0805",
        "1997 Aug 5,10,19,24",
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
        "0805",
        "1997 Aug 5,17,19,31",
    ),
    (
        "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
        "20070115",
        "2007 Jan 15,30; Feb 15; Mar 15,30",
    ),
]

ENDLESS = [
    (
        "FREQ=DAILY;INTERVAL=2",
        "0902",
        "1997 Sep 2,4,6,8,10,12,14,16,18,20,22,24,26,28,30;"
        " Oct 2,4,6,8,10,12,14,16,18,20,22,24,26,28,30;"
        " Nov 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29; Dec 1,3",
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
        "0902",
        "1997 Sep 2,16,30; Oct 14,28; Nov 11,25; Dec 9,23 | 1998 Jan 6,20; Feb 3,17",
    ),
    (
        "FREQ=MONTHLY;BYMONTHDAY=-3",
        "0928",
        "1997 Sep 28; Oct 29; Nov 28; Dec 29 | 1998 Jan 29; Feb 26",
    ),
    (
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        "0902",
        "1997 Sep 2,9,16,23,30; Nov 4,11,18,25 | 1998 Jan 6,13,20,27; Mar 3,10,17,24,31",
    ),
    ("FREQ=YEARLY;BYDAY=20MO", "0519", "1997 May 19 | 1998 May 18 | 1999 May 17"),
    ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "0512", "1997 May 12 | 1998 May 11 | 1999 May 17"),
    ("FREQ=YEARLY;BYWEEKNO=20", "0512", "1997 May 12 | 1998 May 11 | 1999 May 17"),
    (
        "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
        "0313",
        "1997 Mar 13,20,27 | 1998 Mar 5,12,19,26 | 1999 Mar 4,11,18,25",
    ),
    (
        "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
        "0605",
        "1997 Jun 5,12,19,26; Jul 3,10,17,24,31; Aug 7,14,21,28"
        " | 1998 Jun 4,11,18,25; Jul 2,9,16,23,30; Aug 6,13,20,27"
        " | 1999 Jun 3,10,17,24; Jul 1,8,15,22,29; Aug 5,12,19,26",
    ),
    (
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "0913",
        "1997 Sep 13; Oct 11; Nov 8; Dec 13 | 1998 Jan 10; Feb 7; Mar 7; Apr 11; May 9; Jun 13",
    ),
    (
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "19961105",
        "1996 Nov 5 | 2000 Nov 7 | 2004 Nov 2",
    ),
    (
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "0929",
        "1997 Sep 29; Oct 30; Nov 27; Dec 30 | 1998 Jan 29; Feb 26; Mar 30",
    ),
]


def new_york(rule: str, day: str, **options: object) -> Schedule:
    day = day if len(day) == 8 else f"1997{day}"
    return Schedule.rrule(
        f"DTSTART;TZID=America/New_York:{day}T090000\nRRULE:{rule}",
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("rule", "start", "expected"), EXAMPLES)
def test_a_finite_example_gives_all_its_dates(rule: str, start: str, expected: str) -> None:
    assert local_runs(new_york(rule, start)) == days(expected)


@pytest.mark.parametrize(("rule", "start", "expected"), ENDLESS)
def test_an_endless_example_gives_its_first_dates(rule: str, start: str, expected: str) -> None:
    wanted = days(expected)

    assert local_runs(new_york(rule, start), len(wanted)) == wanted


def test_every_friday_the_13th_without_the_start() -> None:
    schedule = Schedule.rrule(
        "DTSTART;TZID=America/New_York:19970902T090000\n"
        "EXDATE;TZID=America/New_York:19970902T090000\n"
        "RRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13"
    )

    assert local_runs(schedule, 5) == days(
        "1998 Feb 13; Mar 13; Nov 13 | 1999 Aug 13 | 2000 Oct 13"
    )


def test_every_third_hour_of_one_day() -> None:
    # The RFC prints 15:00 too, but its UNTIL is 13:00 in New York: erratum 3883 makes it 21:00 UTC.
    printed = new_york("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z", "0902")
    corrected = new_york("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z", "0902")

    assert local_runs(printed) == ["1997-09-02T09:00", "1997-09-02T12:00"]
    assert local_runs(corrected) == [f"1997-09-02T{hour}:00" for hour in ("09", "12", "15")]


@pytest.mark.parametrize(
    ("rule", "clocks"),
    [
        ("FREQ=MINUTELY;INTERVAL=15;COUNT=6", "09:00 09:15 09:30 09:45 10:00 10:15"),
        ("FREQ=MINUTELY;INTERVAL=90;COUNT=4", "09:00 10:30 12:00 13:30"),
    ],
)
def test_every_few_minutes(rule: str, clocks: str) -> None:
    assert local_runs(new_york(rule, "0902")) == [f"1997-09-02T{c}" for c in clocks.split()]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
        "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16",
    ],
)
def test_every_20_minutes_of_the_working_day(rule: str) -> None:
    clocks = [f"{hour:02}:{minute:02}" for hour in range(9, 17) for minute in (0, 20, 40)]

    assert local_runs(new_york(rule, "0902"), 48) == [
        f"1997-09-{day:02}T{clock}" for day in (2, 3) for clock in clocks
    ]
