"""A schedule told in words and read again runs at the same times."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.unit.assistant.scoring import runs, schedule_of

from holdfast.assistant import parse

ZONES = (
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "UTC",
    "America/Argentina/Buenos_Aires",
)
REQUESTS = (
    "every day at {time}",
    "every weekday at {time}",
    "every weekend at {time} and {time}",
    "every {n} days at {time}",
    "every other {day} at {time}",
    "every {day} and {day} at {time}",
    "{day}s at {time} and {day}s at {time}",
    "every {n} weeks on {day} at {time}",
    "on the {m}th of each month at {time}",
    "on the 1st and 15th of each month at {time}",
    "the last day of each month at {time}",
    "the {nth} {day} of every month at {time}",
    "the {nth} working day of each month at {time}",
    "every {n} months on the {m}th at {time}",
    "quarterly at {time}",
    "the last day of each quarter at {time}",
    "every year on {month} {m} at {time}",
    "the {nth} {day} of {month} each year at {time}",
    "every {n} hours",
    "every {k} minutes",
    "every hour on the hour",
    "every {n} hours on weekdays",
    "every {k} minutes from 9:00 to 12:00 on weekdays",
    "every hour from 8:00 to 20:00",
    "every day at {time} for {n} weeks",
    "every {day} at {time} until the end of the year",
    "every {k} minutes, {n} times",
    "every day at {time}, {n} times",
    "every day at {time} except tomorrow",
    "every day except {day} at {time}",
    "every {day} in {month} and {month} at {time}",
    "starting {month} {m}, every {day} at {time}",
    "tomorrow at {time}",
    "next {day} at {time}",
    "in {k} minutes",
    "on {month} {m} at {time}",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "May", "June", "July", "August", "October", "December")


def filled(request: str, draw: random.Random) -> str:
    while "{" in request:
        for name, value in (
            ("time", f"{draw.randrange(24):02}:{draw.choice((0, 5, 15, 30, 45)):02}"),
            ("n", str(draw.randrange(2, 9))),
            ("k", str(draw.choice((10, 15, 20, 25, 30, 40, 45, 90)))),
            ("m", str(draw.randrange(4, 21))),
            ("day", draw.choice(DAYS)),
            ("month", draw.choice(MONTHS)),
            ("nth", draw.choice(("first", "second", "third", "last", "second to last"))),
        ):
            request = request.replace("{" + name + "}", value, 1)
    return request


@pytest.mark.parametrize("request_", REQUESTS)
def test_words_to_schedule_to_words_gives_the_same_runs(request_: str) -> None:
    draw = random.Random(request_)
    for _ in range(8):
        zone = draw.choice(ZONES)
        now = datetime(2026, 1, 1, 11, 30, tzinfo=ZoneInfo(zone)) + timedelta(
            days=draw.randrange(330), hours=draw.randrange(24)
        )
        text = filled(request_, draw) + ", check the oven"
        first = parse(text, now, zone)
        if first["kind"] == "refuse":
            continue  # "every Monday and Monday", an end before the first run …
        schedule = schedule_of(first, zone)
        words = schedule.describe()

        wanted = runs(schedule, now, 40)
        # Words tell what recurs, not from when: they are read shortly before the first run.
        then = max(now, wanted[0] - timedelta(minutes=2)) if "starting" in text else now
        if "except tomorrow" in text:
            then = max(now, wanted[0] - timedelta(hours=1))

        again = parse(f"{words}: check the oven", then.astimezone(now.tzinfo), zone)

        assert again["kind"] == first["kind"], (text, words, again)
        assert runs(schedule_of(again, zone), then, 40) == wanted, (text, words, again)
