"""The schedules of `bench/schedules.py`: `python -m bench.schedule_tasks VERB N`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import uuid4

from holdfast import Holdfast
from holdfast.core.record import Changes, Record
from holdfast.recurrence import Schedule
from holdfast.schedules.occurrence import OCCURRENCE, Occurrence, read_occurrence

AT_A_TIME = 500
SOON = timedelta(seconds=1)

app = Holdfast()


@app.task(name="plain")
async def plain(number: int) -> int:
    return number


async def create(number: int, at: datetime) -> None:
    """Store so many schedules, all due at one instant."""
    async with app:
        book = (await app.verbs()).schedules
        now, rule = await book.store.now(), Schedule.once(at)
        for start in range(0, number, AT_A_TIME):
            made = [
                book.made(
                    book.template(plain.call(n)), rule, tz=None, name=f"s{n}", now=now, words={}
                )
                for n in range(start, min(number, start + AT_A_TIME))
            ]
            await book.store.commit(Changes(uuid4().hex, records=[one.put(0) for one in made]))


async def fired(number: int) -> Sequence[Occurrence]:
    """What became of them, once all are fired."""
    async with app:
        store = (await app.verbs()).store
        while True:
            found: list[Record] = []
            after: Record | None = None
            while page := await store.records(OCCURRENCE, limit=1000, after=after):
                found += page
                after = page[-1]
            if len(found) >= number:
                return [read_occurrence(record) for record in found]
            await asyncio.sleep(0.2)


def main(verb: str, number: int) -> None:
    if verb == "create":
        asyncio.run(create(number, datetime.fromisoformat(sys.argv[3])))
    else:
        found = asyncio.run(fired(number))
        print(max(one.lateness or 0.0 for one in found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
