"""What a body or a query may hold: a `TypedDict`, checked strictly, described as JSON Schema.

One source for both, so that the OpenAPI page cannot say something else than the server does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Generic, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError
from starlette.datastructures import QueryParams

from holdfast.codec.shape import problems_of
from holdfast.core.task import Json
from holdfast.server.problems import Refused, located
from holdfast.server.spelling import respelled, snake_case, stranger, with_nulls

CLOSED: Final = ConfigDict(extra="forbid", strict=True)
"""For bodies: nothing unknown, nothing converted."""
SPELLED: Final = ConfigDict(extra="forbid")
"""For queries, where everything is text."""
EXACT: Final = 2**53
"""Up to here a float is the integer it looks like."""
FREE: Final = frozenset({"parameters", "result", "payload"})
"""Members that hold whatever the client likes."""
MOST_MEMBERS: Final = 50_000
REFERENCE: Final = "#/components/schemas/{model}"

T = TypeVar("T")


class Shape(Generic[T]):
    """A `TypedDict` as it is sent to us. With `nullable`, null stands for what is left out."""

    def __init__(self, kind: type[T], *, nullable: bool = False) -> None:
        self.name = kind.__name__
        self._adapter: TypeAdapter[T] = TypeAdapter(kind)
        self._check = self._adapter.validator.validate_python
        schema = self._adapter.json_schema(ref_template=REFERENCE)
        inner: Mapping[str, Json] = schema.pop("$defs", {})
        if nullable:
            inner = {name: with_nulls(each) if "properties" in each else each
                     for name, each in inner.items()}  # fmt: skip
        self.definitions = inner
        self.schema: Mapping[str, Json] = with_nulls(schema) if nullable else schema
        properties = schema.get("properties", {})
        self._names = tuple(properties)
        self._many = {name for name, each in properties.items() if each.get("type") == "array"}

    def read(self, value: Json, at: str = "") -> T:
        """A parsed body, checked. `Refused` lists all that is wrong with it; `at` is where it
        stands in a larger one.
        """
        if _members(value) > MOST_MEMBERS:
            raise Refused(
                422, "invalid_request", f"expected {MOST_MEMBERS:,} members and items at most"
            )
        try:
            return cast("T", self._check(value))
        except ValidationError as error:
            ours = with_whole_numbers(respelled(value, self.schema, self.definitions))
            if ours is not value:
                return self.read(ours, at)
            refused = refusal(error, self._names)
            raise (located(refused, at) if at else refused) from None

    def read_query(self, query: QueryParams) -> T:
        """A query, checked. A word that may come once may not come twice."""
        words: dict[str, Any] = {}
        for given, text in query.multi_items():
            name = given if given in self._names else snake_case(given)
            if name in self._many:
                words.setdefault(name, []).append(text)
            elif name in words:
                raise Refused(422, "invalid_request", f"{name} is given twice", field=name)
            else:
                words[name] = text
        return self.read(words)


def _members(value: Json) -> int:
    """How many members and items there are, but for free values: each may be a mistake that is
    told, and to collect a million of them takes seconds.
    """
    inner: list[Json]
    if type(value) is dict:
        inner = [item for name, item in value.items() if name not in FREE]
    elif type(value) is list:
        inner = value
    else:
        return 0
    return len(value) + sum(_members(item) for item in inner if type(item) in {dict, list})


def with_whole_numbers(value: Json) -> Json:
    """The same with `3` for every `3.0`: to JSON both are the integer three, and some languages
    write the one for the other. The value itself if there is none.
    """
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) <= EXACT else value
    if type(value) is dict:
        items = {key: with_whole_numbers(item) for key, item in value.items()}
        return items if any(items[key] is not value[key] for key in value) else value
    if type(value) is list:
        many = [with_whole_numbers(item) for item in value]
        return many if any(new is not old for new, old in zip(many, value, strict=True)) else value
    return value


def refusal(error: ValidationError, members: Collection[str]) -> Refused:
    """What Pydantic found, as a refusal. `members` are those that the body may have."""
    problems = [
        {
            "field": at,
            "message": stranger(at, members)
            if kind == "extra_forbidden" and "." not in at and "[" not in at
            else text,
        }
        for at, kind, text in problems_of(error, "")
    ]
    listed = "; ".join(f"{each['field'] or 'the body'}: {each['message']}" for each in problems[:5])
    more = f"; and {error.error_count() - 5} more" if error.error_count() > 5 else ""
    return Refused(
        422,
        "invalid_request",
        f"{listed}{more}",
        field=problems[0]["field"] or None,
        errors=problems,
    )
