"""What is wrong with a form, at the fields that are to blame."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from holdfast.errors import HoldfastError
from holdfast.server.problems import Refused, refusal_of

_NO_FORM: Final = (401, 429)
"""Refusals that no other form would help."""


class Problems(NamedTuple):
    """By field what is wrong with it; `whole` is what no field is to blame for."""

    fields: Mapping[str, str] = {}
    whole: str = ""

    def __bool__(self) -> bool:
        return bool(self.fields or self.whole)


NONE: Final = Problems()


def problems_of(
    error: HoldfastError | Refused, known: Collection[str], names: Mapping[str, str] = {}
) -> Problems:
    """What an error says, at the fields of a form. `names` are those that the API calls otherwise.
    What is no mistake in the form is raised again.
    """
    refused = error if isinstance(error, Refused) else refusal_of(error)
    if refused.status >= 500 or refused.status in _NO_FORM:
        raise error
    told = refused.extra.get("errors") or [{"field": refused.field, "message": refused.detail}]
    fields: dict[str, str] = {}
    rest = []
    for each in told:
        at, says = each["field"] or "", each["message"]
        name = _field(at, known, names)
        if name is None:
            rest.append(says)
        else:
            says = says.removeprefix(f"{at}: ")
            fields.setdefault(name, says if at == name else _with_place(at, name, says))
    return Problems(fields, "; ".join(rest))


def _field(at: str, known: Collection[str], names: Mapping[str, str]) -> str | None:
    whole = names.get(at, at)
    first = re.split(r"[.\[]", at, maxsplit=1)[0]
    return next((name for name in (whole, names.get(first, first)) if name in known), None)


def _with_place(at: str, name: str, says: str) -> str:
    """Of a part of what is in a field, which part."""
    place = at.removeprefix(name).lstrip(".")
    return f"{place}: {says}" if at.startswith(name) and place else says
