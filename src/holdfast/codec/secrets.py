"""Secret parameters: stored as they are, because the handler needs them, and shown as stars.

A parameter is secret by its type (Pydantic's `SecretStr`, `SecretBytes`, `Secret[…]`, anywhere in
it) or by its name (`secret_fields=`). `core.shown` says how a payload tells where its secrets are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from pydantic_core import CoreSchema, SchemaSerializer

from holdfast.codec.shape import CORE_CONFIG
from holdfast.core.shown import FLOW, MARK, Path, taken
from holdfast.core.task import Json


def revealed(raw: bytes) -> bytes:
    """A stored payload for whoever runs the task: the secrets in place, the marks gone, and what
    it says of other tasks.
    """
    if MARK.encode() not in raw and FLOW.encode() not in raw:
        return raw
    value: Json = orjson.loads(raw)
    is_said = isinstance(value, dict) and FLOW in value
    return orjson.dumps(value) if taken(value) or is_said else raw


def marked(value: dict[str, Json], paths: Iterable[Path]) -> dict[str, Json]:
    """The payload with its secrets marked; unchanged if there is none."""
    found = [list(path) for path in paths]
    return {**value, MARK: found} if found else value


def has_secrets(schema: Any) -> bool:
    """Whether a secret type is anywhere in this schema."""
    if isinstance(schema, dict):
        return _is_secret(schema) or any(map(has_secrets, schema.values()))
    return isinstance(schema, (list, tuple)) and any(map(has_secrets, schema))


def revealing_serializer(schema: CoreSchema) -> SchemaSerializer:
    """A serializer that writes secrets out, where Pydantic's own writes stars."""
    open_schema: Any = _opened(schema)
    make: Any = SchemaSerializer
    try:
        # Models bring a serializer along that would be used as it is, stars and all.
        serializer: SchemaSerializer = make(open_schema, CORE_CONFIG, _use_prebuilt=False)
    except TypeError:  # an older Pydantic, which always builds them anew
        serializer = make(open_schema, CORE_CONFIG)
    return serializer


def _is_secret(schema: dict[str, Any]) -> bool:
    writes = schema.get("serialization")
    function = writes.get("function") if isinstance(writes, dict) else None
    # Pydantic names them nowhere in public; these two functions are what makes a type secret.
    return getattr(function, "__module__", "") == "pydantic.types" and "secret" in getattr(
        function, "__name__", ""
    )


def _opened(schema: Any) -> Any:
    if isinstance(schema, dict):
        inner = {key: _opened(value) for key, value in schema.items()}
        if _is_secret(schema):
            inner["serialization"] = {
                "type": "function-plain",
                "function": lambda secret: secret.get_secret_value(),
                "when_used": "unless-none",
            }
        return inner
    if isinstance(schema, (list, tuple)):
        return type(schema)(map(_opened, schema))
    return schema
