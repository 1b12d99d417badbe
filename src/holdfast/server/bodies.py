"""Reads JSON bodies, and refuses what other readers would quietly bend.

orjson reads them, fast and strictly (UTF-8, no NaN, no lone surrogates). Two things it lets pass:
of a key that comes twice it takes the last, and an integer beyond 64 bits becomes a float. Both are
rare and both can be ruled out cheaply, so only a body that is suspect is read again by a slow
reader that sees them. Each key needs one colon: as many keys as colons means that none was lost.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Final

import orjson
from starlette.requests import Request

from holdfast.core.flow import DEEPEST as NESTED
from holdfast.core.payload import MAX_DEPTH, MAX_INT, MIN_INT
from holdfast.core.task import Json
from holdfast.server.problems import Refused

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
DEEPEST: Final = MAX_DEPTH + 4 + 2 * (NESTED + 2)
"""Arguments may be `MAX_DEPTH` deep; around them are an object and a list, for every level of
children. Two levels more can be read, so that they are refused by name.
"""
MOST_VALUES: Final = 1_000_000
"""A few bytes of JSON can take a hundred bytes of memory, so values are counted before parsing."""
SMALL: Final = 1024 * 1024
"""Bytes of a request that carries no arguments, results or log lines."""

_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}").search


async def read_body(request: Request) -> bytes:
    """The whole body. The limits on its size and time are in `receive` already."""
    message = await request.receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body
    chunks = [body]
    while message.get("more_body", False):
        message = await request.receive()
        chunks.append(message.get("body", b""))
    return b"".join(chunks)


async def read_json(
    request: Request, largest: int | None = SMALL, *, is_optional: bool = False
) -> Json:
    """The body as a JSON value; an empty object if it `is_optional` and missing. None for
    `largest`: what carries data may be as large as bodies may be at all.
    """
    if not is_optional:
        require(request, JSON)
    body = await read_body(request)
    if largest is not None and len(body) > largest:
        raise Refused(413, "body_too_large", f"expected {largest:,} bytes at most for this request")
    if is_optional and not body:
        return {}
    require(request, JSON)
    return parse(body)


async def read_lines(request: Request, longest: int) -> AsyncIterator[tuple[int, bytes]]:
    """The lines of a stream with their numbers, blank ones left out, as they come."""
    rest, number, more = b"", 0, True
    while more:
        message = await request.receive()
        more = message.get("more_body", False)
        *lines, rest = (rest + message.get("body", b"")).split(b"\n")
        if not more:
            lines, rest = [*lines, rest], b""
        for line in lines:
            number += 1
            _refuse_long(line, number, longest)
            if line.strip():
                yield number, line
        _refuse_long(rest, number + 1, longest)


def media_type(request: Request) -> str:
    """What the body says it is, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def require(request: Request, *kinds: str) -> str:
    """Refuse a body that does not say it is one of these; which it is."""
    kind = media_type(request)
    if kind not in kinds:
        raise Refused(
            415,
            "unsupported_media_type",
            f"expected Content-Type: {' or '.join(kinds)}, got {kind or 'none'}",
            headers={"Accept": ", ".join(kinds)},
        )
    return kind


def parse(body: bytes) -> Json:
    """A JSON text as a value; `Refused` for what is none, or is not to be trusted."""
    if body.count(b",") + body.count(b"[") + body.count(b"{") > MOST_VALUES:
        raise Refused(413, "too_many_values", f"expected {MOST_VALUES:,} values at most")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(400, "invalid_json", f"the body is no JSON: {error}") from None
    keys = _count_keys(value, DEEPEST)
    if keys != body.count(b":") or _LONG_NUMBER(body):
        return _parse_carefully(body)
    return value


def _count_keys(value: Json, depth: int) -> int:
    """How many keys there are in all; `Refused` for what is nested too deep."""
    keys = 0
    many: Iterable[Json]
    if type(value) is dict:
        many, keys = value.values(), len(value)
    elif type(value) is list:
        many = value
    else:
        return 0
    if depth == 0:
        raise _too_deep()
    for item in many:
        if type(item) is dict or type(item) is list:
            keys += _count_keys(item, depth - 1)
    return keys


def _too_deep() -> Refused:
    return Refused(400, "too_deep", f"the body is nested deeper than {DEEPEST} levels")


def _parse_carefully(body: bytes) -> Json:
    try:
        return json.loads(body, object_pairs_hook=_without_doubles, parse_int=_integer)
    except RecursionError:  # in a value that another one of the same key hid before
        raise _too_deep() from None
    except ValueError as error:  # an integer of thousands of digits
        raise Refused(400, "invalid_json", f"the body is no JSON: {error}") from None


def _integer(digits: str) -> int | float:
    """An integer beyond 64 bits is a float if that is exactly the same number: some languages write
    their floats so. Any other stays what it is, for the rules of payloads to refuse.
    """
    number = int(digits)
    if MIN_INT <= number <= MAX_INT or abs(number) > sys.float_info.max:
        return number
    near = float(number)
    return near if int(near) == number else number


def _without_doubles(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise Refused(
            400,
            "duplicate_key",
            f"the key {twice!r} comes twice in one object; readers do not agree on which one "
            "counts. Send it once",
            field=twice,
        )
    return found


def _refuse_long(line: bytes, number: int, longest: int) -> None:
    if len(line) > longest:
        raise Refused(413, "line_too_long", f"line {number} is longer than {longest:,} bytes")
