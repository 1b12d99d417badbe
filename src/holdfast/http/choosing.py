"""The filter words of the local client as the server's JSON and its query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from holdfast.core.task import Json
from holdfast.errors import InvalidOption
from holdfast.filters import JSON_WORDS, FilterKeywords, where

_NAMES = JSON_WORDS | {"states": JSON_WORDS["state"]}


def filter_of(words: FilterKeywords) -> dict[str, Json]:
    """A filter as JSON; `InvalidOption` for words that make no sense, before anything is sent."""
    given = {name: value for name, value in asdict(where(**words)).items() if value is not None}
    return {_NAMES.get(name, name): _plain(value) for name, value in given.items()}


def query_of(words: FilterKeywords) -> Mapping[str, str | Sequence[str]]:
    """The same as a query."""
    if words.get("ids") is not None:
        raise InvalidOption("ids", "a list over HTTP takes no ids; get each, or act by filter")
    return filter_of(words)


def _plain(value: object) -> Json:
    match value:
        case datetime():
            return value.isoformat()
        case frozenset() | tuple():
            return sorted(str(each) for each in value)
        case _:
            return str(value)
