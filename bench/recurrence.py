"""How long it takes to find the next run: `python -m bench.recurrence [number]`.

Mixed rules, starts up to 60 years back, instants anywhere from the start to ten years ahead. Prints
the time of each kind, and of all of them together.
"""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, datetime, timedelta

from holdfast.recurrence import Schedule, tz_version

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")
RULES = (
    "FREQ=DAILY",
    "FREQ=DAILY;INTERVAL=3;BYDAY=MO,WE",
    "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
    "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU",
    "FREQ=WEEKLY;BYMONTH=1;BYDAY=MO",
    "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17",
    "FREQ=MONTHLY;BYMONTHDAY=31",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
    "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
    "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    "FREQ=DAILY;COUNT=50000",
    "FREQ=HOURLY;INTERVAL=6",
    "FREQ=HOURLY;INTERVAL=24;BYHOUR=10",
    "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16",
    "FREQ=MINUTELY",
    "FREQ=SECONDLY;INTERVAL=7;BYDAY=MO;BYHOUR=3",
)
LINES = ("0 9 * * 1-5", "*/15 * * * *", "*/5 9-17 * * MON-FRI", "0 9 L * *", "30 2 * * 5#3")


def schedules(draw: random.Random) -> dict[str, Schedule]:
    """One schedule of each kind, with a start and a zone of its own."""
    found: dict[str, Schedule] = {}
    for rule in RULES:
        days = draw.randrange(60 * 365) if "BYHOUR=10" not in rule else 0
        start = datetime(1966, 1, 3, 9, tzinfo=UTC) + timedelta(days=days)
        zone = draw.choice(ZONES) if "INTERVAL=24" not in rule else "Europe/Berlin"
        found[rule] = Schedule.rrule(rule, dtstart=start.replace(tzinfo=None), tz=zone)
    for line in LINES:
        found[line] = Schedule.cron(line, tz=draw.choice(ZONES))
    found["every 90 minutes"] = Schedule.every("90m", start="1970-01-01T00:10Z")
    return found


def main(number: int) -> None:
    """Measure and print."""
    draw = random.Random(15)
    kinds = schedules(draw)
    spent: dict[str, list[float]] = {name: [] for name in kinds}
    names = list(kinds)
    for n in range(number):
        name = names[n % len(names)]
        begin = kinds[name].start.replace(tzinfo=UTC)
        span = (datetime(2036, 1, 1, tzinfo=UTC) - begin).total_seconds()
        after = begin + timedelta(seconds=draw.random() * span)
        clock = time.perf_counter()
        kinds[name].next_after(after)
        spent[name].append(time.perf_counter() - clock)
    print(f"tz database {tz_version()}, microseconds: p50, p99, largest")
    for name in names:
        print(f"  {_row(spent[name])}  {name}")
    every = [each for times in spent.values() for each in times]
    print(f"  {_row(every)}  all, {len(every):,} next runs in {sum(every):.2f} s")


def _row(times: list[float]) -> str:
    ordered = sorted(times)
    picked = (ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], ordered[-1])
    return " ".join(f"{each * 1e6:8.1f}" for each in picked)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
