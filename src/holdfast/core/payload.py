"""What a payload may hold, the same on every store.

JSON only. Refused, with the path of the offending value: NUL, lone surrogates, NaN and infinities,
more than 64 levels, integers beyond 64 bits, keys that are no strings, and anything larger than the
limit. A rule that one store keeps and another does not would surface on the day the URL changes.
"""

from __future__ import annotations

import math

from holdfast.core.task import Json
from holdfast.errors import PayloadRefused

MAX_DEPTH = 64
MIN_INT, MAX_INT = -(2**63), 2**63 - 1


def check_value(value: Json, path: str = "$") -> None:
    """Raise `PayloadRefused` for the first value in there that a store may not hold."""
    _check(value, path, 1)


def check_size(encoded: bytes, limit: int, *, what: str = "payload") -> None:
    """Raise `PayloadRefused` if the encoded bytes are more than `limit`."""
    if len(encoded) > limit:
        raise PayloadRefused(
            "$",
            f"the {what} is {len(encoded):,} bytes of JSON, the limit is {limit:,} (`max_{what}`). "
            "Store large data elsewhere and pass a reference to it.",
        )


def check_text(text: str, path: str) -> None:
    """Raise `PayloadRefused` for text with NUL or a lone surrogate."""
    if "\x00" in text:
        raise PayloadRefused(
            path, "text contains NUL (U+0000), which not every store can hold; remove it"
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise PayloadRefused(
                path,
                f"text contains a lone surrogate at character {error.start}; "
                "it is not valid Unicode",
            ) from None


def _check(value: Json, path: str, depth: int) -> None:
    if value is None or value is True or value is False:
        return
    kind = type(value)
    if kind is str:
        check_text(value, path)
    elif kind is int:
        if not MIN_INT <= value <= MAX_INT:
            raise PayloadRefused(
                path, f"integer {_short(value)} is beyond 64 bits; send it as text"
            )
    elif kind is float:
        if not math.isfinite(value):
            raise PayloadRefused(path, f"{value} is no JSON number; send null or text")
    elif kind is dict:
        _check_depth(path, depth)
        for key, item in value.items():
            if type(key) is not str:
                raise PayloadRefused(
                    path, f"key {key!r} is a {type(key).__name__}; JSON keys are text"
                )
            check_text(key, f"{path} key")
            _check(item, f"{path}.{key}", depth + 1)
    elif kind is list or kind is tuple:
        _check_depth(path, depth)
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth + 1)
    else:
        raise PayloadRefused(
            path, f"a {kind.__name__} has no JSON form; annotate the parameter or convert it"
        )


def _check_depth(path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise PayloadRefused(
            path, f"nested deeper than {MAX_DEPTH} levels; flatten it or send it as text"
        )


def _short(value: int) -> str:
    return str(value) if value.bit_length() < 200 else f"of {value.bit_length()} bits"
