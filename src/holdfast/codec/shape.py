"""What both codecs stand on: schemas from hints, errors as paths, one form for equal values."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import (
    CoreConfig,
    CoreSchema,
    PydanticSerializationError,
    core_schema,
    to_jsonable_python,
)
from typing_extensions import TypedDict

from holdfast.codec.hiding import secrets_in, without
from holdfast.core.task import Json

CORE_CONFIG = CoreConfig(
    ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants"
)
UNSERIALIZABLE = (PydanticSerializationError, ValueError, TypeError, RecursionError)
"""What serializing may raise for a value: no JSON form, bytes that are no UTF-8 inside a model, a
cycle or an abyss, a user's own serializer at odds with the value."""

_CONFIG = ConfigDict(
    ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants", extra="forbid"
)


def schema_of(
    hints: Mapping[str, Any], required: Collection[str] = (), nullable: Collection[str] = ()
) -> CoreSchema:
    """A schema for an object with these fields; plain dataclasses in it take our config along.

    What is required and what may be null is written into the schema, not said with `Required[…]`
    and `… | None`: the caches behind those take `str | bytes` and `bytes | str` for the same, and
    the order of a union decides how JSON is read.
    """
    shape = TypedDict("Arguments", {**hints}, total=False)  # type: ignore[misc] # made at run time
    shape.__pydantic_config__ = _CONFIG  # type: ignore[attr-defined] # as Pydantic documents it
    schema: Any = TypeAdapter(shape).core_schema
    fields = (schema["schema"] if schema["type"] == "definitions" else schema)["fields"]
    for name in required:
        fields[name]["required"] = True
    for name in nullable:
        fields[name]["schema"] = core_schema.nullable_schema(fields[name]["schema"])
    made: CoreSchema = schema
    return made


def described(schema: CoreSchema, reference: str, *, extra: str | None) -> dict[str, Json]:
    """A schema made by `schema_of` as JSON Schema; the field `extra` takes all other names."""
    made: dict[str, Json] = _Lenient(ref_template=reference).generate(schema, mode="validation")
    made.pop("title", None)
    if extra is not None:
        rest = made["properties"].pop(extra)
        made["additionalProperties"] = rest.get("additionalProperties", True)
    return made


class _Lenient(GenerateJsonSchema):
    """Leaves open what JSON Schema cannot say, and says nothing of defaults that it cannot show."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {
        "skipped-choice",
        "non-serializable-default",
    }

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        return {}


def field_schema(schema: Any, name: str) -> CoreSchema:
    """One field's schema out of an object's, with the definitions it refers to."""
    if schema["type"] == "definitions":
        inner: CoreSchema = {**schema, "schema": field_schema(schema["schema"], name)}
        return inner
    field: CoreSchema = schema["fields"][name]["schema"]
    return field


def is_loose(schema: Any) -> bool:
    """Whether JSON may lose a type under this schema: in `Any`, or between members of a union."""
    if isinstance(schema, dict):
        return schema.get("type") in {"any", "union"} or any(map(is_loose, schema.values()))
    return isinstance(schema, (list, tuple)) and any(map(is_loose, schema))


def is_same(sent: Any, arrived: Any) -> bool:
    """Whether a value came back as what it was, types included. A tuple may arrive as a list."""
    if isinstance(sent, (list, tuple)) and isinstance(arrived, (list, tuple)):
        return len(sent) == len(arrived) and all(map(is_same, sent, arrived))
    if type(sent) is not type(arrived):
        return False
    if isinstance(sent, dict):
        return sent.keys() == arrived.keys() and all(is_same(sent[k], arrived[k]) for k in sent)
    if _compares_by_identity(sent):
        return is_same(vars(sent), vars(arrived))
    return bool(sent == arrived)


def _compares_by_identity(value: object) -> bool:
    return hasattr(value, "__dict__") and not any(
        "__eq__" in vars(kind) for kind in type(value).__mro__[:-1]
    )


MOST_PROBLEMS = 20
ABSURDLY_MANY = 10_000


def problems_of(
    error: ValidationError, root: str, secret: Collection[str] = ()
) -> Iterator[tuple[str, str, str]]:
    """Each problem as (path, kind, sentence); the path reads like `items[3].price`.

    What was given for the fields named `secret` is not repeated, nor by a validator's own words. Of
    very many problems only the first are told, of absurdly many none: a list of a million wrong
    items is one mistake, and collecting a million messages takes seconds.
    """
    count = error.error_count()
    if count > ABSURDLY_MANY:
        yield root, "too_many", f"{count:,} things are wrong with it"
        return
    hidden = {(name,) for name in secret}
    for problem in error.errors(include_url=False, include_context=False)[:MOST_PROBLEMS]:
        place = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]
        )
        text = problem["msg"][0].lower() + problem["msg"][1:]
        if problem["loc"][:1] in hidden:
            given, text = "", without(text, secrets_in([problem["input"]]))
        elif problem["type"] in {"missing", "json_invalid"}:
            given = ""
        else:
            given = f", got {shown(problem['input'])}"
        yield place.removeprefix(".") or root, problem["type"], f"{text}{given}"


def digest(name: str, value: Json) -> str:
    """A short hash of a name and a JSON value, the same in every process."""
    body = orjson.dumps([name, value], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(body).hexdigest()[:40]


def canonical(value: Any) -> Json:
    """One JSON form for equal values: what came from a set is sorted, because sets iterate
    differently in each process.
    """
    match value:
        case dict():
            return {str(canonical(key)): canonical(item) for key, item in value.items()}
        case list() | tuple():
            return [canonical(item) for item in value]
        case set() | frozenset():
            return sorted((canonical(item) for item in value), key=orjson.dumps)
        case _:
            return to_jsonable_python(value, bytes_mode="base64")


def shown(value: object) -> str:
    """A value for an error message: short, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken __repr__ must not hide the real problem
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}…"
