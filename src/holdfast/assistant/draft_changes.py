"""Changes of what waits for a yes: "make it 7", "call it Plants", "by email"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from holdfast.assistant.conversation import Open
from holdfast.assistant.titles import title_of
from holdfast.core.task import Json

DRAFT: Final = "draft"
_WHEN: Final = ("dtstart", "rrule", "exdate", "tz")


def draft_as_task(pending: Open) -> dict[str, Json]:
    """What waits, in the form in which planners are told of tasks."""
    said = {name: pending.result[name] for name in _WHEN if pending.result.get(name)}
    title = pending.title or title_of(str(pending.result.get("purpose") or pending.text))
    delivery = list(pending.result.get("delivery") or ())
    return {"id": DRAFT, "title": title, "status": "ACTIVE", "delivery": delivery, **said}


def changed_draft(pending: Open, read: Mapping[str, Json]) -> Open | None:
    """What waits after such a change; None if the message is none, or if tasks wait for theirs."""
    is_new = pending.result.get("kind") in ("once", "recurring")
    if not is_new or read.get("kind") != "update" or read["target"] not in (DRAFT, "*"):
        return None
    match read["op"]:
        case "reschedule":
            kept = {name: each for name, each in pending.result.items() if name not in _WHEN}
            when = {name: read[name] for name in _WHEN if read.get(name)}
            zone = {"tz": when.get("tz") or pending.result["tz"]}
            kind = {"kind": "recurring" if when.get("rrule") else "once"}
            return replace(pending, result={**kept, **when, **zone, **kind})
        case "rename":
            return replace(pending, title=str(read["title"]))
        case "deliver":
            return replace(pending, result={**pending.result, "delivery": read["delivery"]})
        case _:
            return None
