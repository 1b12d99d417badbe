"""Other people's spellings of what our bodies and queries hold.

Looked at only when a request does not have our form, so that one that has it pays nothing:

- `taskType` is `task_type`, wherever a member of ours stands;
- `HIGH` is `high`, where a word out of a list is expected;
- `null` for a member that may be left out is as if it were left out. Only where the page says so:
  in a filter it would silently widen what is meant.

Guided by the schema, so that parameters and results, which are the user's, are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from holdfast.core.task import Json
from holdfast.definitions.readers import hint

NULL: Final = {"type": "null"}
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")

MEANT: Final = {
    **dict.fromkeys(("name", "type", "task", "task_name", "function", "job"), "task_type"),
    **dict.fromkeys(("args", "kwargs", "payload", "params", "data", "input"), "parameters"),
    **dict.fromkeys(("timeout", "time_limit", "job_timeout"), "timeout_seconds"),
    **dict.fromkeys(("delay", "countdown", "schedule_in"), "delay_seconds"),
    **dict.fromkeys(("eta", "scheduled_at", "scheduled_for", "schedule_at"), "run_at"),
    **dict.fromkeys(("retries", "max_attempts", "max_tries"), "max_retries"),
    **dict.fromkeys(
        ("base_retry_delay_seconds", "retry_delay", "retry_jitter", "backoff"), "retry"
    ),
    **dict.fromkeys(("callback", "webhook", "webhook_url"), "callback_url"),
    **dict.fromkeys(("capabilities", "requires"), "required_capabilities"),
    **dict.fromkeys(("state", "states"), "status"),
    "queue_name": "queue",
    "expires": "expires_at",
}
"""Which member of ours is probably meant by a word."""

Schema = Mapping[str, Any]


def stranger(name: str, members: Collection[str]) -> str:
    """What to say of a member that we do not know."""
    ours = MEANT.get(snake_case(name))
    meant = f" It is {ours!r} here." if ours in members else hint(name, members)
    return f"no such member.{meant} Expected: {', '.join(members)}"


def snake_case(name: str) -> str:
    """`maxRetries` as `max_retries`."""
    return _CAPITAL.sub(r"_\1", name).lower()


def with_nulls(schema: Schema) -> dict[str, Json]:
    """The schema of an object, with null allowed for every member that may be left out."""
    required = schema.get("required", ())
    members = {
        name: each if name in required or _takes_null(each) else {"anyOf": [each, NULL]}
        for name, each in schema.get("properties", {}).items()
    }
    return {**schema, "properties": members}


def respelled(value: Json, schema: Schema, definitions: Mapping[str, Schema]) -> Json:
    """The value in our spelling; the value itself if there is nothing to change."""
    kinds = list(_alternatives(schema, definitions))
    if type(value) is dict:
        kind = next((each for each in kinds if "properties" in each), None)
        return value if kind is None else _object(value, kind, definitions)
    if type(value) is list:
        items: Schema = {"anyOf": [each["items"] for each in kinds if "items" in each]}
        many = [respelled(item, items, definitions) for item in value]
        return many if any(new is not old for new, old in zip(many, value, strict=True)) else value
    if type(value) is str:
        lower = value.lower()
        is_ours = lower != value and any(lower in each.get("enum", ()) for each in kinds)
        return lower if is_ours else value
    return value


def _object(value: dict[str, Json], schema: Schema, definitions: Mapping[str, Schema]) -> Json:
    members = schema["properties"]
    found: dict[str, Json] = {}
    for given, item in value.items():
        ours = snake_case(given)
        name = ours if given not in members and ours in members and ours not in value else given
        if name not in members:
            found[name] = item
        elif item is not None or NULL not in members[name].get("anyOf", ()):
            found[name] = respelled(item, members[name], definitions)
    same = found.keys() == value.keys() and all(found[name] is value[name] for name in found)
    return value if same else found


def _alternatives(schema: Schema, definitions: Mapping[str, Schema]) -> Iterator[Schema]:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema and "properties" not in schema:
        for each in schema["anyOf"]:
            yield from _alternatives(each, definitions)
    else:
        yield schema


def _takes_null(schema: Schema) -> bool:
    return not schema.keys() - {"title", "description"} or NULL in schema.get("anyOf", ())
