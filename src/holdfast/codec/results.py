"""A function's result: encoded as what it is, decoded as what the annotation says."""

from __future__ import annotations

from typing import Any

import orjson
from pydantic import ValidationError
from pydantic_core import SchemaSerializer, SchemaValidator, to_jsonable_python

from holdfast.codec.shape import CORE_CONFIG, UNSERIALIZABLE, field_schema, problems_of, schema_of
from holdfast.core.payload import MAX_INT, MIN_INT, check_size, check_text, check_value
from holdfast.core.task import Json
from holdfast.errors import InvalidArguments, PayloadRefused

_PLAIN = (Any, type(None), int, str, bool)
"""Hints under which None, int and str need no serializer."""


class ResultCodec:
    """One function's result."""

    def __init__(self, task: str, hint: Any) -> None:
        self._task = task
        self._is_plain = hint in _PLAIN
        schema = field_schema(schema_of({"result": hint}), "result")
        self._validate_json = SchemaValidator(schema, CORE_CONFIG).validate_json
        self._serialize = SchemaSerializer(schema, CORE_CONFIG).to_python

    def dump(self, value: Any, *, limit: int) -> bytes:
        """Encode a result; `PayloadRefused` if it has no JSON form.

        What the hint does not describe is stored as what it is: the work is done, and a wrong
        annotation must not undo it.
        """
        if self._is_plain:
            if value is None:
                return b"null"
            if type(value) is int and MIN_INT <= value <= MAX_INT:
                return b"%d" % value
            if type(value) is str:
                check_text(value, "result")
                return _encoded(value, limit)
        plain = self._plain(value)
        check_value(plain, "result")
        return _encoded(plain, limit)

    def load(self, result: bytes) -> Any:
        """Decode a stored result as the hint's type."""
        try:
            return self._validate_json(result)
        except ValidationError as error:
            problems = tuple((path, text) for path, _, text in problems_of(error, "result"))
            raise InvalidArguments(
                f"the stored result of task {self._task!r} does not fit its return annotation: "
                f"{'; '.join(': '.join(problem) for problem in problems)}. The task itself "
                "completed; `task().result` has the JSON as it was stored.",
                problems=problems,
            ) from None

    def _plain(self, value: Any) -> Json:
        try:
            return self._serialize(value, mode="json", warnings="error")
        except UNSERIALIZABLE:
            pass
        try:
            return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="constants")
        except UNSERIALIZABLE as error:
            raise PayloadRefused("result", f"has no JSON form ({error})") from None


def _encoded(value: Json, limit: int) -> bytes:
    encoded = orjson.dumps(value)
    check_size(encoded, limit, what="result")
    return encoded
