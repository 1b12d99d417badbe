"""What the OpenAPI page says of a route.

FastAPI collects the routes; bodies and queries are ours (`shape`), so it is told about them here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from pydantic import TypeAdapter

from holdfast.core.task import Json
from holdfast.server.bodies import JSON
from holdfast.server.problems import MEDIA_TYPE
from holdfast.server.shape import REFERENCE, Shape

Reference = dict[str, str]
Kinds = type[Any] | tuple[type[Any], ...]
"""A `TypedDict`, or several of which it is one."""

COMPONENTS: Final[dict[str, Json]] = {}
"""Every schema that a route refers to, by name; `openapi` puts them on the page."""
WITH_BODY: Final = (400, 408, 413, 415, 422)
ALWAYS: Final = (401, 403, 429, 503)
PROBLEM: Final[Reference] = {"$ref": "#/components/schemas/Problem"}
MEANINGS: Final[Mapping[int, str]] = {
    400: "The body cannot be read as JSON.",
    401: "There is no token, or none that holds.",
    403: "The token lacks the scope.",
    404: "There is no such thing.",
    408: "The body did not arrive in time.",
    409: "It contradicts itself, or the state of things; nothing was changed.",
    413: "The body is too large.",
    415: "The body is of another media type.",
    422: "The request does not have the form described here; `field` says where.",
    429: "The token sends too many requests; `Retry-After` says how long to wait.",
    503: "The store cannot be reached. Nothing was acknowledged; try again.",
}


def responses_of(
    answers: Kinds | Mapping[int, Kinds] | None, status: int, problems: Collection[int]
) -> dict[int | str, dict[str, Any]]:
    """What a route answers, well or with one of these problems."""
    kinds = dict(answers) if isinstance(answers, Mapping) else {status: answers}
    return {
        **{code: _answer(code, kind) for code, kind in kinds.items()},
        **{code: problem(code) for code in sorted(problems)},
    }


def schema_of(kind: type[Any]) -> Reference:
    """A reference to the schema of a `TypedDict`, which is kept in `COMPONENTS`."""
    schema = TypeAdapter(kind).json_schema(ref_template=REFERENCE, mode="serialization")
    COMPONENTS.update(schema.pop("$defs", {}))
    if "$ref" not in schema:  # one that refers to itself is among its own definitions
        COMPONENTS[kind.__name__] = schema
    return {"$ref": REFERENCE.format(model=kind.__name__)}


def body_of(shape: Shape[Any], example: Json, *, is_required: bool) -> Json:
    COMPONENTS.update(shape.definitions)
    COMPONENTS[shape.name] = shape.schema
    content: dict[str, Json] = {"schema": {"$ref": REFERENCE.format(model=shape.name)}}
    if example is not None:
        content["examples"] = {"example": {"value": example}}
    return {"required": is_required, "content": {JSON: content}}


def problem(code: int) -> Json:
    """The description of a problem with this status."""
    return {
        "description": MEANINGS[code],
        "content": {MEDIA_TYPE: {"schema": PROBLEM}},
    }


def _answer(code: int, kind: Kinds | None) -> Json:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if kind is None:
        return {"description": HTTPStatus(code).phrase}
    schemas = [schema_of(each) for each in kinds if each is not None]
    return {
        "description": " ".join((getattr(kinds[0], "__doc__", None) or "").split()),
        "content": {JSON: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}},
    }


def parameters_of(names: Iterable[str], query: Shape[Any] | None) -> list[Json]:
    """What a path names, and the words of a query."""
    described = [
        {"name": name, "in": "path", "required": True, "schema": IN_PATHS[name]} for name in names
    ]
    if query is not None:
        COMPONENTS.update(query.definitions)
        for name, schema in query.schema.get("properties", {}).items():
            kept = {key: value for key, value in schema.items() if key != "title"}
            described.append({"name": name, "in": "query", "required": False, "schema": kept})
    return described


IN_PATHS: Final[Mapping[str, Json]] = {
    "task_id": {"type": "string", "format": "uuid"},
    "queue": {"type": "string", "minLength": 1, "maxLength": 200},
    "limit": {"type": "string", "minLength": 1},
    "schedule": {"type": "string", "minLength": 1, "maxLength": 200},
    "budget": {"type": "string", "pattern": "^(owner|schedule):[A-Za-z0-9_.-]+$", "maxLength": 200},
    "worker_id": {"type": "string", "minLength": 1},
    "token_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    "item_id": {"type": "string", "format": "uuid"},
    "recipient": {"type": "string", "minLength": 1, "maxLength": 500},
}
"""What a path may name."""
