"""Keys made from arguments: for locks ("doc:{doc_id}") and for uniqueness.

A template is Python's format language over the checked arguments, `{order.id}` and `{day:%F}`
included. A name that is no parameter is refused where the task is defined, not at three in the
morning. A function gets exactly the arguments the task gets; it may answer None for "no key".
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from string import Formatter
from typing import Any

from holdfast.definitions.readers import hint, read_key, read_text
from holdfast.errors import InvalidOption

KeyMaker = str | Callable[..., str | None]
"""A template over the arguments ("doc:{doc_id}"), or a function of them."""
MakeKey = Callable[[tuple[Any, ...], dict[str, Any], dict[str, Any]], str | None]
"""From positional arguments, keyword arguments, and all of them by name, to a key."""

_FIRST_NAME = re.compile(r"[^.\[]*")


def key_maker(option: str, source: object, parameters: Collection[str] | None) -> MakeKey:
    """Turn a template or a function into a maker of keys. A template may name these `parameters`;
    None: what it may name shows at a submit.
    """
    if isinstance(source, str):
        return _from_template(option, source, parameters)
    if callable(source) and not inspect.iscoroutinefunction(source):
        return _from_function(option, source)
    raise InvalidOption(
        option, f"expected a template such as 'doc:{{doc_id}}' or a plain function, got {source!r}"
    )


def _from_template(option: str, template: str, parameters: Collection[str] | None) -> MakeKey:
    read_text(option, template, 10_000)
    try:
        fields = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
    except ValueError as error:
        raise InvalidOption(option, f"template {template!r} cannot be read: {error}") from None
    for field in fields:
        match = _FIRST_NAME.match(field)
        name = match[0] if match else field
        if parameters is not None and name not in parameters:
            raise InvalidOption(
                option,
                f"template {template!r} names {name!r}, which is no parameter of the task."
                f"{hint(name, parameters)} It has: {', '.join(parameters) or 'none'}.",
            )

    def make(args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any]) -> str:
        try:
            key = template.format(**named)
        except KeyError as error:
            raise InvalidOption(
                option, f"template {template!r} names {error}, which this task has not"
            ) from error
        except Exception as error:
            raise InvalidOption(
                option, f"template {template!r} does not work for these arguments: {error!r}"
            ) from error
        return read_key(option, key)

    return make


def _from_function(option: str, function: Callable[..., Any]) -> MakeKey:
    def make(args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any]) -> str | None:
        key = function(*args, **kwargs)
        return None if key is None else read_key(option, key)

    return make
