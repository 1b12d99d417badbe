"""What a step returned, as the journal keeps it: JSON by the return annotation of its function.

The handler always gets what was recorded, in its first attempt too: what it sees then is what it
would see in any later one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import orjson
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from holdfast.codec import ResultCodec
from holdfast.core.task import Json
from holdfast.definitions.hints import Unresolved, hint_of
from holdfast.errors import InvalidArguments, PayloadRefused

_MOST_KEPT: Final = 1000
_kept: Final[dict[int, tuple[object, StepCodec]]] = {}


class StepCodec:
    """One function's results."""

    def __init__(self, hint: Any) -> None:
        self._codec = ResultCodec("step", hint)

    def dump(self, step: str, value: Any, limit: int) -> bytes:
        """Encode a result; `PayloadRefused` if it has no JSON form or is too large."""
        try:
            return self._codec.dump(value, limit=limit)
        except PayloadRefused as error:
            raise _named(error, f"step {step!r}") from None

    def load(self, result: bytes) -> Any:
        """Decode what was recorded: as the annotation says, or as it is if that does not fit."""
        try:
            return self._codec.load(result)
        except InvalidArguments:
            return orjson.loads(result)

    def read(self, value: Json) -> Any:
        return self.load(orjson.dumps(value))


PLAIN: Final = StepCodec(Any)


def plain_json(what: str, value: Any, limit: int) -> Json:
    """A value as JSON has it; `PayloadRefused` if it has no such form."""
    try:
        return orjson.loads(ResultCodec(what, Any).dump(value, limit=limit))
    except PayloadRefused as error:
        raise _named(error, what) from None


def _named(error: PayloadRefused, what: str) -> PayloadRefused:
    where = error.path.removeprefix("result").removeprefix("$")
    return PayloadRefused(f"{what}{where}", error.problems[0][1])


def codec_of(function: Callable[..., Any]) -> StepCodec:
    """The codec of a step's function; made once for each piece of code, lambdas and all."""
    code = getattr(function, "__code__", None)
    if code is None:
        return _codec_elsewhere(function)
    known = _kept.get(id(code))
    if known is None:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        # The code is kept too, so that no other one gets its id.
        known = _kept[id(code)] = code, _made(function)
    return known[1]


def _codec_elsewhere(function: Callable[..., Any]) -> StepCodec:
    """Of what is called like a function, but is none."""
    if isinstance(function, partial):
        return codec_of(function.func)
    inner = inspect.unwrap(function)
    return PLAIN if inner is function else codec_of(inner)


def _made(function: Callable[..., Any]) -> StepCodec:
    annotation = getattr(function, "__annotations__", {}).get("return", inspect.Parameter.empty)
    if annotation is inspect.Parameter.empty:
        return PLAIN
    try:
        return StepCodec(hint_of(function, annotation, {}))
    except (Unresolved, NameError, PydanticSchemaGenerationError, PydanticUserError):
        return PLAIN  # what is recorded is what it is, whatever the annotation says
