"""What a model may answer, as a JSON schema made from the slots themselves.

There is no member in it for an owner, an address, a limit, a handler, a date or rule text: what the
schema lacks, an answer cannot say, and `answers` refuses what it says beside it.

There are two forms. The compact one leaves out what does not apply and bounds every text: small
models on llama.cpp or vLLM would run on without it. The complete one requires every member and
knows no bounds on texts, as the strict mode of some services wants it; what does not apply is null.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from holdfast.assistant.slots import Amount, Clock, Day, Slots

CATEGORIES: Final = ("REMINDER", "REPORT", "ANALYSIS", "OTHERS")
LONGEST_TITLE: Final = 80
LONGEST_QUOTE: Final = 200
MOST_QUOTES: Final = 16
_MOST_QUOTES_ASKED: Final = 6
_MOST_OBJECTS: Final = 4
_MOST_NUMBERS: Final = 12
_SHARED: Final = (Amount, Clock, Day)
"""Used in many places, so written once."""


@cache
def compact_schema() -> dict[str, Any]:
    """The schema in which a short answer is enough."""
    return _Form(complete=False).answer()


@cache
def complete_schema() -> dict[str, Any]:
    """The schema in which every member is required."""
    return _Form(complete=True).answer()


def slot_names() -> tuple[str, ...]:
    """The slots that a model may fill. Where each was read is said by quotes, not by numbers."""
    return tuple(each.name for each in dataclasses.fields(Slots) if each.name != "evidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    complete: bool

    def answer(self) -> dict[str, Any]:
        slot = {"type": "string", "enum": list(slot_names())}
        quote = self._object({"slot": slot, "quote": self._text(LONGEST_QUOTE)}, {"slot", "quote"})
        members = {
            "evidence": {"type": "array", "items": quote, "maxItems": _MOST_QUOTES_ASKED},
            "slots": self._of_class(Slots),
            "title": _nullable(self._text(LONGEST_TITLE)),
            "category": _nullable({"type": "string", "enum": list(CATEGORIES)}),
        }
        return {
            **self._object(members, {"evidence", "slots"}),
            "$defs": {kind.__name__: self._of_class(kind) for kind in _SHARED},
        }

    def _of_class(self, kind: type) -> dict[str, Any]:
        hints = get_type_hints(kind)
        needed = {e.name for e in dataclasses.fields(kind) if e.default is dataclasses.MISSING}
        members = {name: self._of(hint) for name, hint in hints.items() if name != "evidence"}
        return self._object(members, needed)

    def _of(self, hint: Any) -> dict[str, Any]:
        origin, inside = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            return _nullable(self._of(next(each for each in inside if each is not NoneType)))
        if origin is Literal:
            return {"type": "string", "enum": list(inside)}
        if origin is tuple:
            most = _MOST_OBJECTS if dataclasses.is_dataclass(inside[0]) else _MOST_NUMBERS
            return {"type": "array", "items": self._of(inside[0]), "maxItems": most}
        if hint in _SHARED:
            return {"$ref": f"#/$defs/{hint.__name__}"}
        if dataclasses.is_dataclass(hint):
            assert isinstance(hint, type)
            return self._of_class(hint)
        if hint is str:
            return self._text(LONGEST_QUOTE)
        return {"type": {int: "integer", bool: "boolean"}[hint]}

    def _object(self, members: dict[str, Any], needed: set[str]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": members,
            "required": [name for name in members if self.complete or name in needed],
            "additionalProperties": False,
        }

    def _text(self, longest: int) -> dict[str, Any]:
        return {"type": "string"} if self.complete else {"type": "string", "maxLength": longest}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}
