"""Secret parameters: stored as they are, because the handler needs them, and shown as stars.

A parameter is secret by its type (Pydantic's `SecretStr`, `SecretBytes`, `Secret[…]`, anywhere in
it) or by its name (`secret_fields=`). Whoever shows a task often does not know its definition: a
command line, a server without the app's code. So the payload itself says where its secrets are, in
one more key that no parameter can have:

    {"user": "ann", "password": "hunter2", "$secret": [["password"]]}

A path through a list without a number in it means every item. Hiding more than was meant is always
right here, showing more never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson
from pydantic_core import CoreSchema, SchemaSerializer

from holdfast.codec.shape import CORE_CONFIG
from holdfast.core.task import Json

MARK = "$secret"
MASK = "**********"

Path = Sequence[str | int]


def masked(raw: bytes) -> Json:
    """A stored payload to be shown: what it marks as secret is stars, the marks are gone.

    Bytes that are no JSON (encrypted, say) come back as text.
    """
    try:
        value: Json = orjson.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
    return hide(value, _taken(value))


def revealed(raw: bytes) -> bytes:
    """A stored payload for whoever runs the task: the secrets in place, the marks gone."""
    if MARK.encode() not in raw:
        return raw
    value: Json = orjson.loads(raw)
    return orjson.dumps(value) if _taken(value) else raw


def marked(value: dict[str, Json], paths: Iterable[Path]) -> dict[str, Json]:
    """The payload with its secrets marked; unchanged if there is none."""
    found = [list(path) for path in paths]
    return {**value, MARK: found} if found else value


def hide(value: Json, paths: Iterable[Path]) -> Json:
    """Put stars in these places, in the value itself. Places that do not exist do not matter."""
    for path in paths:
        value = _hide(value, path)
    return value


def differences(plain: Json, shown: Json, path: tuple[str | int, ...] = ()) -> Iterator[Path]:
    """Where two forms of the same value differ: there the secrets are."""
    if isinstance(plain, dict) and isinstance(shown, dict) and plain.keys() == shown.keys():
        for key, inner in plain.items():
            yield from differences(inner, shown[key], (*path, key))
    elif isinstance(plain, list) and isinstance(shown, list) and len(plain) == len(shown):
        for index, inner in enumerate(plain):
            yield from differences(inner, shown[index], (*path, index))
    elif plain != shown:
        yield path


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


def _taken(value: Json) -> list[Path]:
    """Take the marks out of a payload. What is no mark of ours is left alone."""
    paths = value.get(MARK) if isinstance(value, dict) else None
    if not isinstance(paths, list) or not all(isinstance(path, list) for path in paths):
        return []
    del value[MARK]
    return paths


def _hide(value: Json, path: Path) -> Json:
    if not path:
        return None if value is None else MASK
    first, rest = path[0], path[1:]
    if isinstance(value, dict) and first in value:
        value[first] = _hide(value[first], rest)
    elif isinstance(value, list) and isinstance(first, str):
        value[:] = [_hide(item, path) for item in value]
    elif isinstance(value, list) and isinstance(first, int) and 0 <= first < len(value):
        value[first] = _hide(value[first], rest)
    return value


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
