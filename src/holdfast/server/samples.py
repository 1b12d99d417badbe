"""Makes up a value that fits a JSON Schema, for examples: the plainest, not the most telling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.core.task import Json

_TEXTS: Final = {
    "date-time": "2030-01-01T10:00:00Z",
    "date": "2030-01-01",
    "time": "10:00:00Z",
    "duration": "PT10M",
    "uuid": "018f3f6e-0000-7000-8000-000000000000",
    "uri": "https://example.org/",
    "email": "ann@example.org",
}
DEEPEST: Final = 8


def sample(schema: Json, schemas: Mapping[str, Json], depth: int = 0) -> Json:
    """A value for the schema; `schemas` are the page's, by name."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    if "$ref" in schema:
        return sample(schemas.get(schema["$ref"].rpartition("/")[2]), schemas, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return sample(schema[key][0], schemas, depth + 1)
    return _of_type(schema, schemas, depth)


def _of_type(schema: dict[str, Json], schemas: Mapping[str, Json], depth: int) -> Json:
    match schema.get("type"):
        case "string":
            return _TEXTS.get(schema.get("format", ""), "text")
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case "array":
            least = schema.get("minItems", 0)
            return [sample(schema.get("items"), schemas, depth + 1) for _ in range(least)]
        case "object":
            wanted = schema.get("required", ())
            properties = schema.get("properties", {})
            return {name: sample(properties[name], schemas, depth + 1) for name in wanted}
        case _:
            return None
