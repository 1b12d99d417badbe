"""What of a task anybody may see: stored JSON as values, and stars for what is secret.

A payload says itself where its secrets are, in one more key that no parameter can have:

    {"user": "ann", "password": "hunter2", "$secret": [["password"]]}

So whoever shows a task need not know its definition: a command line, a server without the app's
code. A path through a list without a number in it means every item. Hiding more than was meant is
always right here, showing more never is. `codec.secrets` makes the marks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.core.task import Json

Path = Sequence[str | int]

MARK = "$secret"
FLOW = "$flow"
"""Where a payload says what its task has to do with others (`core.flow`)."""
MASK = "**********"


def decoded(raw: bytes | None, loads: Callable[[bytes], Json] = json.loads) -> Json:
    """Stored JSON as a value; bytes that are none (encrypted, say) as text."""
    if raw is None:
        return None
    try:
        return loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def masked(raw: bytes, loads: Callable[[bytes], Json] = json.loads) -> Json:
    """A stored payload to be shown: what it marks as secret is stars, the marks are gone."""
    value = decoded(raw, loads)
    return hide(value, taken(value))


def taken(value: Json) -> list[Path]:
    """Take the marks out of a payload. What is no mark of ours is left alone."""
    if isinstance(value, dict) and isinstance(value.get(FLOW), dict):
        del value[FLOW]
    paths = value.get(MARK) if isinstance(value, dict) else None
    if not isinstance(paths, list) or not all(isinstance(path, list) for path in paths):
        return []
    del value[MARK]
    return paths


def hide(value: Json, paths: Iterable[Path]) -> Json:
    """Put stars in these places, in the value itself. Places that do not exist do not matter."""
    for path in paths:
        value = _hide(value, path)
    return value


def differences(plain: Json, shown: Json, path: tuple[str | int, ...] = ()) -> Iterator[Path]:
    """Where two forms of the same value differ: there the secrets are."""
    if isinstance(plain, dict) and isinstance(shown, dict) and plain.keys() == shown.keys():
        for key, inner in plain.items():
            yield from differences(inner, shown[key], (*path, key))
    elif isinstance(plain, list) and isinstance(shown, list) and len(plain) == len(shown):
        for index, inner in enumerate(plain):
            yield from differences(inner, shown[index], (*path, index))
    elif plain != shown:
        yield path


def without(fields: Iterable[tuple[str, object]], *hidden: str) -> str:
    """The inside of a `repr`, but for what may be large or secret."""
    return ", ".join(f"{name}={value!r}" for name, value in fields if name not in hidden)


def _hide(value: Json, path: Path) -> Json:
    if not path:
        return None if value is None else MASK
    first, rest = path[0], path[1:]
    if isinstance(value, dict) and first in value:
        value[first] = _hide(value[first], rest)
    elif isinstance(value, list) and isinstance(first, str):
        value[:] = [_hide(item, path) for item in value]
    elif isinstance(value, list) and isinstance(first, int) and 0 <= first < len(value):
        value[first] = _hide(value[first], rest)
    return value
