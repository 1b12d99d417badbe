"""The OpenAPI page without what no schema can say, for a program that makes up requests from it.

Which texts are rules, which names are zones, and that a time is to come: the server says that with
422, and `test_schedule_routes` tries it. Here every such word is one of a few that hold.
"""

from __future__ import annotations

from typing import Any

from holdfast.core.task import Json
from holdfast.schedules.rule_words import KINDS, OPTIONS

TEXTS: dict[str, list[Json]] = {
    "cron": ["0 9 * * 1-5", "@daily", "*/10 * * * *"],
    "rrule": ["FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17", "RRULE:FREQ=DAILY"],
    "every": ["90m", 3600],
    "at": ["2090-12-24T18:00", "2091-01-01T00:00:00Z"],
    "rule": ["0 9 * * 1-5", {"kind": "interval", "every": 3600}],
}
ZONES: list[Json] = ["UTC", "Europe/Berlin", "Asia/Tokyo"]
SCHEDULES = "/api/v1/schedules"


def narrowed(page: dict[str, Any]) -> dict[str, Any]:
    """The page itself, changed."""
    schemas, paths = page["components"]["schemas"], page["paths"]
    del paths[f"{SCHEDULES}/import"]  # nobody makes up a calendar
    made = [name for name in schemas if name.startswith("NewSchedule.")]
    for place, name in enumerate(made):
        _one_kind(schemas[name], list(KINDS)[place % len(KINDS)])
    _one_kind(schemas["PreviewWords"], "cron")
    schemas["PreviewWords"]["properties"].pop("between")
    changed = schemas["ChangedSchedule"]
    for word in ("task_type", "parameters", "queue", "priority", "required_capabilities",
                 "timeout_seconds", "max_retries", "retry", "unique_key", "lock", "tags",
                 "callback_url"):  # fmt: skip
        changed["properties"].pop(word)
    _one_kind(changed, "cron", is_required=False)
    _recipients(schemas)
    _messages(schemas["NewMessages"])
    for name in made:  # what can reach nobody is refused
        schemas[name]["properties"]["channels"] = {"enum": [["inbox"], [], None]}
    changed["properties"]["channels"] = {"enum": [["inbox"], []]}
    schemas["Pausing"]["properties"].pop("until")
    schemas["Backfilling"]["properties"] |= {
        "begin": {"type": "string", "enum": ["2026-01-05T00:00:00Z"]},
        "end": {"type": "string", "enum": ["2026-01-05T00:10:00Z"]},
    }
    schemas["Backfilling"]["properties"].pop("most")
    for parameter in paths[f"{SCHEDULES}/{{schedule}}/preview"]["get"]["parameters"]:
        if parameter["name"] == "tz":
            parameter["schema"] = {"type": "string", "enum": ZONES}
    schemas["NewBudget"]["properties"]["zone"] = {"type": "string", "enum": ZONES}
    for parameter in paths["/api/v1/usage"]["get"]["parameters"]:
        if parameter["name"] in ("from", "to"):
            parameter["schema"] = {"type": "string", "enum": ["2026-03-02"]}
    return page


def _recipients(schemas: dict[str, Any]) -> None:
    """Where deliveries go: addresses, zones and keys that are ones."""
    words = schemas["RecipientWords"]["properties"]
    words["email"] = {"enum": ["ann@example.com", None]}
    words["webhook_url"] = {"enum": ["https://hooks.example.com/a", None]}
    words["timezone"] = {"enum": [*ZONES, None]}
    words["unsubscribed"] = {"enum": [["email"], [], None]}
    words["quiet_hours"] = {"enum": [{"from": "22:00", "to": "07:00"}, None]}
    words.pop("web_push")


def _messages(schema: dict[str, Any]) -> None:
    """One message of a user, in words."""
    words = schema["properties"]
    words["timezone"] = {"enum": ZONES}
    content = {"enum": ["every day at 9 count the sheep", "pause it", "hello", "at 25:00 sing"]}
    said = {"type": "object", "properties": {"content": content}, "required": ["content"],
            "additionalProperties": False}  # fmt: skip
    words["messages"] = {"type": "array", "items": said, "minItems": 1, "maxItems": 1}
    schema["required"] = [*schema["required"], "messages"]


def _one_kind(schema: dict[str, Any], kind: str, *, is_required: bool = True) -> None:
    """A rule that is said in one way, in one of a few zones, without bounds."""
    words = schema["properties"]
    for word in (*KINDS, *OPTIONS):
        words.pop(word, None)
    words[kind] = {"enum": TEXTS[kind]}
    for word in ("tz", "show_tz"):
        if word in words:
            words[word] = {"enum": [*ZONES, None] if is_required else ZONES}
    schema.pop("oneOf", None)
    if is_required:
        schema["required"] = [*schema.get("required", ()), kind]
