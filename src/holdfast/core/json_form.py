"""How a value is told in JSON, and read again: made from a `TypedDict` that says each member once.

    class WorkerAnswer(TypedDict):
        worker_id: Annotated[str, From("id")]  # the value's `id`
        host: str  # the value's `host`

    WORKER = JsonForm(WorkerAnswer, WorkerInfo)
    WORKER.write(info)  # {"worker_id": …, "host": …}
    WORKER.read(data)  # WorkerInfo(id=…, host=…)

The `TypedDict` describes the answer in the API's page, too. How a member is written follows from
its type there, how it is read from the type of the value's field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cached_property
from operator import attrgetter
from types import NoneType
from typing import (
    Annotated,
    Any,
    Generic,
    NamedTuple,
    NotRequired,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from holdfast.core.task import Json

T = TypeVar("T")

_FORMS: dict[Any, JsonForm[Any]] = {}
"""By the value's type and by that of the answer, for those that stand in others."""


@dataclass(frozen=True, slots=True)
class From:
    """Where a member comes from: a field (`bounds.owner` leads further), or a function of the
    value, which is never read again. `shown` makes JSON of it.
    """

    source: str | Callable[[Any], Json]
    shown: Callable[[Any], Json] | None = None


TOLD = From("")
"""A member that the value does not know: whoever writes it tells it."""


class _Member(NamedTuple):
    name: str
    source: str | Callable[[Any], Json]
    write: Callable[..., Json] | None
    nested: Callable[..., Json] | None
    is_optional: bool


class JsonForm(Generic[T]):
    """The JSON of one kind of value."""

    def __init__(self, words: type[Any], of: type[T]) -> None:
        self._words = words
        self._of = of
        _FORMS.setdefault(words, self)
        _FORMS[of] = self

    def write(self, value: T, *, whole: bool = False, **told: Json) -> dict[str, Json]:
        """The value in JSON, instants and enums as they are; with `whole`, members that may be left
        out too. What the value does not know itself is `told`.
        """
        written = dict(zip(self._fields, self._get(value), strict=True))
        for name, source, write, nested, is_optional in self._special:
            if is_optional and not whole:
                written.pop(name, None)
            elif callable(source):
                written[name] = source(value)
            elif nested is not None:
                written[name] = nested(written[name], whole=whole)
            elif write is not None:
                written[name] = write(written[name])
        written.update(told)
        return written

    def pick(self, value: T, *names: str) -> dict[str, Json]:
        """Only these members."""
        written = self.write(value)
        return {name: written[name] for name in names}

    def read(self, data: Json, **known: Any) -> T:
        """The value of an answer; `known` are fields that are made otherwise."""
        found = {
            field: read(data[name]) if read else data[name]
            for field, name, read in self._readers
            if name in data and field not in known
        }
        return self._of(**found, **known)

    @cached_property
    def _members(self) -> list[_Member]:
        hints = get_type_hints(self._words, include_extras=True)
        return [_member(name, hint) for name, hint in hints.items()]

    @cached_property
    def _fields(self) -> dict[str, str]:
        """The value's fields, by the members that come from them."""
        members = self._members
        return {m.name: m.source for m in members if isinstance(m.source, str) and m.source}

    @cached_property
    def _get(self) -> Callable[[T], tuple[Json, ...]]:
        return attrgetter(*self._fields.values())

    @cached_property
    def _special(self) -> list[_Member]:
        """Those that are not written as the field is."""
        return [m for m in self._members if m.source and (callable(m.source) or any(m[2:]))]

    @cached_property
    def _readers(self) -> list[tuple[str, str, Callable[[Any], Any] | None]]:
        kinds = get_type_hints(self._of)
        fields = {m.source or m.name: m.name for m in self._members if isinstance(m.source, str)}
        return [(f, name, _reader(kinds[f])) for f, name in fields.items() if f in kinds]


def plain(value: Json) -> Json:
    """What `write` made as data of plain JSON types: instants as RFC 3339 in UTC, enums as text."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value.value if isinstance(value, Enum) else value


def _member(name: str, hint: Any) -> _Member:
    is_optional = get_origin(hint) is NotRequired
    hint = get_args(hint)[0] if is_optional else hint
    said = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, From)]
    source = said[0] if said else From(name)
    return _Member(name, source.source, source.shown, _nested(hint), is_optional)


def _nested(hint: Any) -> Callable[..., Json] | None:
    """How to write what has a form of its own, or a list of such."""
    for each in _alternatives(hint):
        if each in _FORMS:
            write = _FORMS[each].write
            return lambda value, whole: None if value is None else write(value, whole=whole)
        if get_origin(each) is list and get_args(each)[0] in _FORMS:
            write = _FORMS[get_args(each)[0]].write
            return lambda values, whole: [write(value, whole=whole) for value in values]
    return None


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    (kind,) = _alternatives(hint)
    read = _whole_reader(kind)
    if read is None or kind is hint:
        return read
    return lambda value: None if value is None else read(value)


def _whole_reader(kind: Any) -> Callable[[Any], Any] | None:
    origin = get_origin(kind)
    if origin in {tuple, frozenset}:
        item = _reader(get_args(kind)[0]) or (lambda value: value)
        return lambda values: origin(map(item, values))
    if origin is Mapping:
        key = _reader(get_args(kind)[0]) or str
        return lambda items: {key(name): item for name, item in items.items()}
    if kind in _FORMS:
        return _FORMS[kind].read
    if kind is datetime:
        return datetime.fromisoformat
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else None


def _alternatives(hint: Any) -> list[Any]:
    """What a type may be, but for None."""
    if get_origin(hint) is Annotated:
        return _alternatives(get_args(hint)[0])
    if NoneType in get_args(hint):
        return [each for each in get_args(hint) if each is not NoneType]
    return [hint]
