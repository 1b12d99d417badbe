"""The filters of the list of schedules as they stand in an address, and who fits them.

The store finds schedules by owner. What else is asked for is looked for among those, a thousand at
most for one page: the page may then be short, and its cursor goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from starlette.datastructures import QueryParams

from holdfast.schedules.book import SchedulePage
from holdfast.schedules.series import Series, Status
from holdfast.server.models.schedules import ScheduleSearch
from holdfast.server.problems import Refused
from holdfast.server.schedule_reach import ScheduleReach
from holdfast.server.shape import Shape

SEARCH: Final = Shape(ScheduleSearch)
PAGE: Final = 20
STEP: Final = 200
MOST_LOOKED_AT: Final = 1000
LONGEST_TEXT: Final = 200
STATUSES: Final = tuple(Status)


@dataclass(frozen=True, kw_only=True)
class Search:
    """Some schedules that somebody asked for, from `after` on."""

    owner: str | None = None
    status: Status | None = None
    text: str = ""
    after: str = ""
    limit: int = PAGE

    @property
    def filters(self) -> dict[str, str]:
        """As they stand in an address."""
        said = {"text": self.text, "status": self.status or "", "owner": self.owner or ""}
        return {name: str(each) for name, each in said.items() if each}

    def wider(self, limit: int) -> Search:
        """The same with so many to a page."""
        return replace(self, limit=limit)

    def fits(self, series: Series) -> bool:
        if self.status is not None and series.status is not self.status:
            return False
        about = series.about
        said = (series.id, about.title, about.purpose, about.description, series.template.name)
        wanted = self.text.casefold()
        return not wanted or any(wanted in (each or "").casefold() for each in said)


def read_search(query: QueryParams) -> Search:
    """`Refused` (422) for what makes no sense."""
    given = QueryParams([pair for pair in query.multi_items() if pair[1].strip()])
    ours = [pair for pair in given.multi_items() if pair[0] in ("owner", "after", "limit")]
    words = SEARCH.read_query(QueryParams(ours))
    status, text = given.get("status"), given.get("text", "").strip()
    if status is not None and status not in STATUSES:
        said = f"expected {', '.join(STATUSES)}, got {status!r:.60}"
        raise Refused(422, "invalid_request", said, field="status")
    if len(text) > LONGEST_TEXT:
        said = f"expected {LONGEST_TEXT} characters at most"
        raise Refused(422, "invalid_request", said, field="text")
    return Search(
        owner=words.get("owner"),
        status=None if status is None else Status(status),
        text=text,
        after=words.get("after", ""),
        limit=min(words.get("limit", PAGE), STEP),
    )


async def find(reach: ScheduleReach, search: Search) -> SchedulePage:
    """A page of those that fit."""
    found: list[Series] = []
    after, looked_at = search.after, 0
    step = STEP if search.text or search.status else search.limit
    while True:
        page = await reach.list(owner=search.owner, after=after, limit=step)
        looked_at += len(page.schedules)
        for series in page.schedules:
            if search.fits(series):
                found.append(series)
            if len(found) == search.limit:
                is_last = series is page.schedules[-1] and page.next is None
                return SchedulePage(found, None if is_last else series.id)
        if page.next is None or looked_at >= MOST_LOOKED_AT:
            return SchedulePage(found, page.next)
        after = page.next
