"""A function's arguments: bound, validated, encoded, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, Unpack, get_args, get_origin

import orjson
from pydantic import ValidationError
from pydantic_core import CoreSchema, SchemaSerializer, SchemaValidator

from holdfast.codec import secrets
from holdfast.codec.hiding import marked_secrets, secrets_between
from holdfast.codec.shape import (
    CORE_CONFIG,
    UNSERIALIZABLE,
    canonical,
    described,
    digest,
    field_schema,
    is_loose,
    is_same,
    problems_of,
    schema_of,
    shown,
)
from holdfast.core.payload import check_size, check_value
from holdfast.core.shown import MASK, Path, differences, hide, masked
from holdfast.core.task import Json
from holdfast.errors import InvalidArguments, PayloadRefused, UnfitArguments

Parameter = inspect.Parameter
Values = dict[str, Any]
"""Checked arguments by parameter name, in the order of the signature."""


class Checked(NamedTuple):
    """Checked arguments, complete; `left_out` have their default, because nobody gave them."""

    values: Values
    left_out: Collection[str]


_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_SINGLE = {*_POSITIONAL, *_BY_NAME}
_NOTHING_SUBMITTED = "Nothing was submitted."
_ANOTHER_VERSION = "It was submitted for another version of the function, and was not run."
_TELL_APART = "JSON cannot tell the types under this annotation apart; annotate it with one type"


class ArgumentCodec:
    """One function's arguments. `parameters` come without the context, hints as resolved types.

    `secret_fields` are paths such as `password` or `card.number`, secret beside what is so by type.
    """

    def __init__(
        self,
        task: str,
        parameters: Sequence[Parameter],
        hints: Mapping[str, Any],
        secret_fields: Sequence[str] = (),
    ) -> None:
        self._task = task
        self._parameters = parameters
        self._positional = [p.name for p in parameters if p.kind in _POSITIONAL]
        self._by_name = {p.name for p in parameters if p.kind in _BY_NAME}
        self._rest = _name_of(parameters, Parameter.VAR_POSITIONAL)
        self._extra = _name_of(parameters, Parameter.VAR_KEYWORD)
        self._is_plain = len(self._by_name) == len(parameters)
        self._untyped = [p.name for p in parameters if hints[p.name] is Any]
        schema = schema_of(
            {p.name: _shape(p, hints[p.name]) for p in parameters},
            # What a caller may leave out, a payload may lack too.
            required=[p.name for p in parameters if p.default is p.empty and p.kind in _SINGLE],
            nullable=[p.name for p in parameters if p.default is None],
        )
        validator = SchemaValidator(schema, CORE_CONFIG)
        self._is_loose = is_loose(schema)
        self._validate: Callable[[object], Values] = validator.validate_python
        self._validate_json: Callable[..., Values] = validator.validate_json
        self._schema = schema
        self._serialize = SchemaSerializer(schema, CORE_CONFIG).to_python
        self._mask_fields = [field.split(".") for field in secret_fields]
        self._serialize_masked = self._serialize
        if secrets.has_secrets(schema):
            self._serialize = secrets.revealing_serializer(schema).to_python
        self._secret = _secret_parameters(schema, self._mask_fields)
        self._defaults = {
            p.name: p.default
            for p in parameters
            if p.default is not Parameter.empty
            and _can_be_sent(p.default, field_schema(schema, p.name))
        }

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Checked:
        """Bind a call's arguments and validate them; what comes back is complete and in order."""
        return self.check_bound(self.bind(args, kwargs))

    def check_bound(self, bound: Values) -> Checked:
        """The same for arguments that are bound."""
        values = self._defaults | bound
        for name in self._untyped:
            self._guarded(check_value, values.get(name), name)
        try:
            return Checked(self._validate(values), self._left_out(bound))
        except ValidationError as error:
            raise self._misfit(error) from None

    def check_json(self, named: Mapping[str, Json], *, strict: bool = False) -> Checked:
        """Like `check`, for JSON values given by name: `"aGk="` is bytes, `"2030-01-01"` a date.

        A name that is no parameter goes to `**kwargs`, if the function has it. With `strict`, `"3"`
        is no integer: what JSON can say, it must say.
        """
        self._guarded(check_value, dict(named), "$")
        values = dict(named)
        if self._extra is not None:
            known = {p.name for p in self._parameters}
            strangers = {name: values.pop(name) for name in named if name not in known}
            extra = values.get(self._extra, {})
            values[self._extra] = extra | strangers if isinstance(extra, dict) else extra
        try:
            read = self._validate_json(orjson.dumps(values), strict=strict or None)
            return Checked(self._validate(self._defaults | read), self._left_out(read))
        except ValidationError as error:
            raise self._misfit(error) from None

    def json_schema(self, reference: str) -> dict[str, Json]:
        """What `check_json` takes, as a JSON Schema; `reference` is where its definitions will be,
        such as `"#/$defs/{model}"`. What has no JSON Schema is left open.
        """
        return described(self._schema, reference, extra=self._extra)

    def dump(self, checked: Checked) -> bytes:
        """Encode checked arguments; `PayloadRefused` names what no store may hold. What was left
        out is not stored: the worker's function has its own default, and may lack the parameter.
        """
        values, left_out = checked
        if left_out:
            values = {name: value for name, value in values.items() if name not in left_out}
        plain = self._serialized(values, "json")
        self._guarded(check_value, plain, "$")
        encoded = orjson.dumps(plain)
        if self._is_loose:
            self._refuse_to_change(values, encoded)
        if self._secret:
            return orjson.dumps(secrets.marked(plain, self._secret_paths(values, plain)))
        return encoded

    def masked(self, payload: bytes) -> Json:
        """A stored payload to be shown. One that does not fit the function as it is now, where that
        has secrets, shows only its names: nobody knows any more where they are.
        """
        shown_as_marked = masked(payload, orjson.loads)
        if not self._secret:
            return shown_as_marked
        try:
            values = self._read(payload, _ANOTHER_VERSION)
            known = self._serialize_masked(values, mode="json", warnings="none")
        except Exception:  # noqa: BLE001 - a user's validator or serializer may raise anything
            named = isinstance(shown_as_marked, dict)
            return dict.fromkeys(shown_as_marked, MASK) if named else MASK
        return hide(known, self._mask_fields)

    def secrets_in(self, payload: bytes) -> frozenset[str]:
        """What must not be seen of a stored payload, in the forms that texts may have it in."""
        if not self._secret:
            return marked_secrets(payload)
        return secrets_between(payload, self.masked(payload))

    def check_limit(self, payload: bytes, limit: int) -> None:
        """Refuse a payload of more than `limit` bytes."""
        self._guarded(check_size, payload, limit)

    def values(self, payload: bytes) -> Values:
        """Decode and validate a stored payload into values by name."""
        return self._read(payload, _ANOTHER_VERSION)

    def load(self, payload: bytes) -> tuple[tuple[Any, ...], Values]:
        """Decode and validate a stored payload into what to call the function with."""
        values = self._read(payload, _ANOTHER_VERSION)
        return ((), values) if self._is_plain else self.spread(values)

    def spread(self, values: Values) -> tuple[tuple[Any, ...], Values]:
        """Turn values by name into positional and keyword arguments."""
        left = dict(values)
        extra = left.pop(self._extra, {}) if self._extra else {}
        rest = left.pop(self._rest, ()) if self._rest else ()
        # What stands before a rest, or before a `/`, can only be given by position.
        kinds = _POSITIONAL if rest else (Parameter.POSITIONAL_ONLY,)
        args = [left.pop(p.name, p.default) for p in self._parameters if p.kind in kinds]
        return (*args, *rest), {**left, **extra}

    def digest(self, values: Values) -> str:
        """A hash that is equal for equal arguments, whatever the order in their sets and dicts."""
        return digest(self._task, canonical(self._serialized(values, "python")))

    def missing(self, given: Collection[str]) -> str | None:
        """The first parameter that must be given and is not."""
        return next(
            (
                p.name
                for p in self._parameters
                if p.kind in _SINGLE and p.default is Parameter.empty and p.name not in given
            ),
            None,
        )

    def _left_out(self, given: Values) -> Collection[str]:
        return self._defaults.keys() - given.keys() if self._defaults else ()

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Values:
        """A call's arguments by the names of their parameters, not validated yet."""
        values: Values = dict(zip(self._positional, args, strict=False))
        rest = args[len(self._positional) :]
        if self._rest is not None:
            values[self._rest] = rest
        elif rest:
            most = len(self._positional)
            problem = f"{most} at most can be given by position, got {len(args)}"
            raise self._refusal([("arguments", problem)])
        extra: Values = {}
        for name, value in kwargs.items():
            (values if self._takes(name, values) else extra)[name] = value
        if self._extra is not None:
            values[self._extra] = extra
        return values

    def _takes(self, name: str, values: Values) -> bool:
        """Whether the keyword is a parameter; one that is neither that nor wanted is refused."""
        if name in self._by_name:
            if name in values:
                raise self._refusal([(name, "is given twice, by position and by name")])
            return True
        if self._extra is None:
            raise self._refusal([(name, self._stranger(name))])
        return False

    def _stranger(self, name: str) -> str:
        if name in self._positional:
            return "can only be given by position"
        close = get_close_matches(name, self._by_name, n=1)
        return "is no parameter of this task" + (f" (did you mean {close[0]!r}?)" if close else "")

    def _secret_paths(self, values: Values, plain: Json) -> Iterator[Path]:
        yield from differences(plain, self._serialize_masked(values, mode="json", warnings="none"))
        yield from (field for field in self._mask_fields if field[0] in plain)

    def _read(self, payload: bytes, what_now: str) -> Values:
        try:
            return self._validate_json(secrets.revealed(payload) if self._secret else payload)
        except ValidationError as error:
            plain = secrets.revealed(payload)
            if plain is not payload and not self._secret:
                return self._read(plain, what_now)  # it had secrets when it was submitted
            misfit = self._misfit(error, what_now)
            if what_now == _ANOTHER_VERSION:
                raise UnfitArguments(str(misfit), problems=misfit.problems) from None
            raise misfit from None

    def _refuse_to_change(self, values: Values, encoded: bytes) -> None:
        """JSON has no dates and no bytes; where the hint leaves room, a value could arrive as
        something else. Better refused here than misread there.
        """
        arrived = self._read(encoded, _NOTHING_SUBMITTED)
        problems = [
            (name, f"would arrive as {self._shown(name, arrived.get(name))}. {_TELL_APART}")
            for name, value in values.items()
            if not is_same(value, arrived.get(name))
        ]
        if problems:
            raise self._refusal(problems)

    def _shown(self, name: str, value: object) -> str:
        return "something else" if name in self._secret else shown(value)

    def _serialized(self, values: Values, mode: str) -> Json:
        try:
            return self._serialize(values, mode=mode, warnings="none")
        except UNSERIALIZABLE as error:
            raise self._refusal(
                [("arguments", f"a value has no JSON form ({error})")],
                "For bytes inside a Pydantic model, set ser_json_bytes and val_json_bytes to "
                f"'base64' in its config. {_NOTHING_SUBMITTED}",
            ) from None

    def _guarded(self, rule: Callable[..., None], *args: object) -> None:
        """Apply a payload rule; name the task in what it refuses."""
        try:
            rule(*args)
        except PayloadRefused as error:
            path = error.path.removeprefix("$").removeprefix(".") or "arguments"
            raise PayloadRefused(
                path, f"{error.problems[0][1]}. (Task {self._task!r}. {_NOTHING_SUBMITTED})"
            ) from None

    def _misfit(
        self, error: ValidationError, what_now: str = _NOTHING_SUBMITTED
    ) -> InvalidArguments:
        problems = [
            (path, self._stranger(path) if kind == "extra_forbidden" and "." not in path else text)
            for path, kind, text in problems_of(error, "arguments", self._secret)
        ]
        untold = error.error_count() - len(problems)
        more = f"There are {untold:,} more such problems. " if untold > 0 else ""
        return self._refusal(problems, f"{more}{what_now}")

    def _refusal(
        self, problems: Sequence[tuple[str, str]], what_now: str = _NOTHING_SUBMITTED
    ) -> InvalidArguments:
        listed = "; ".join(f"{path}: {text}" for path, text in problems)
        return InvalidArguments(
            f"the arguments do not fit task {self._task!r}: {listed}. {what_now}",
            problems=tuple(problems),
        )


def _can_be_sent(default: object, schema: CoreSchema) -> bool:
    """Whether a default fits its own annotation and has a JSON form."""
    try:
        value = SchemaValidator(schema, CORE_CONFIG).validate_python(default)
        check_value(SchemaSerializer(schema, CORE_CONFIG).to_python(value, mode="json"))
    except UNSERIALIZABLE:
        return False
    return True


def _secret_parameters(schema: Any, fields: Sequence[Sequence[str]]) -> frozenset[str]:
    """The parameters with something secret in them. Schemas that refer to others (recursive models)
    are taken as a whole.
    """
    named = {field[0] for field in fields}
    whole = schema["type"] == "definitions"
    parts = (schema["schema"] if whole else schema)["fields"]
    by_type = {
        name for name, part in parts.items() if secrets.has_secrets(schema if whole else part)
    }
    return frozenset(named | by_type)


def _name_of(parameters: Sequence[Parameter], kind: object) -> str | None:
    return next((p.name for p in parameters if p.kind is kind), None)


def _shape(parameter: Parameter, hint: Any) -> Any:
    """The type of what a payload holds for a parameter."""
    is_unpacked = get_origin(hint) is Unpack
    if parameter.kind is Parameter.VAR_POSITIONAL:
        items: Any = Any if is_unpacked else hint
        return list[items]
    if parameter.kind is Parameter.VAR_KEYWORD:
        return get_args(hint)[0] if is_unpacked else dict[str, hint]
    return hint
