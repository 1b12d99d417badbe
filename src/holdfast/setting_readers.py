"""How single settings are read. `ValueError` says what was expected and what was found."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

from holdfast.core.duration import parse_duration, parse_size

EVERY_QUEUE = "*"
SHORTEST_SECRET = 16
LONGEST_WORKER_NAME = 100

_WITH_DRIVER = re.compile(r"^(postgresql|postgres|sqlite)\+\w+(?=://)")
"""A URL of SQLAlchemy names the driver too (`postgresql+psycopg://`). We have our own."""


def read_url(value: object, such_as: str = "'sqlite:///holdfast.db'") -> str:
    if isinstance(value, str) and "://" in value:
        return _WITH_DRIVER.sub(r"\1", value)
    raise ValueError(f"expected a URL such as {such_as}, got {value!r}")


def read_redis_url(value: object) -> str:
    return read_url(value, such_as="'redis://localhost:6379' (leave it out to work without Redis)")


def read_timer_url(value: object) -> str:
    return read_url(
        value, such_as="'gcloud://project/location/queue?target=https://…/v1/tasks/execute'"
    )


def read_task_name(value: object) -> str:
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value.strip()
    raise ValueError(f"expected the name of a task, got {value!r}")


def read_firestore_url(value: object) -> str:
    return read_url(value, such_as="'firestore://project' (leave it out to mirror nothing)")


def read_duration(value: object) -> float:
    seconds = parse_duration(value)
    if seconds == 0:
        raise ValueError(f"expected more than 0 seconds, got {value!r}")
    return seconds


def read_size(value: object) -> int:
    size = parse_size(value)
    if size == 0:
        raise ValueError(f"expected more than 0 bytes, got {value!r}")
    return size


def whole(least: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"expected a whole number, {least} or more, got {value!r}")
        return value

    return read


def read_truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    truth = words.get(str(value).strip().lower())
    if truth is None:
        raise ValueError(f"expected true or false, got {value!r}")
    return truth


def number(least: float, most: float, expected: str) -> Callable[[object], float]:
    def read(value: object) -> float:
        try:
            number = float(value) if isinstance(value, (int, float, str)) else math.nan
        except ValueError:
            number = math.nan
        if not least <= number <= most or isinstance(value, bool):
            raise ValueError(f"expected {expected}, got {value!r}")
        return number

    return read


def read_names(value: object) -> tuple[str, ...]:
    """Read several names; the order is kept, doubles and blanks around them are dropped."""
    many = value.split(",") if isinstance(value, str) else value
    if not isinstance(many, (list, tuple, set, frozenset)):
        raise ValueError(f"expected names, as a list or a text with commas, got {value!r}")
    names = [name.strip() if isinstance(name, str) else name for name in many]
    for name in names:
        if not isinstance(name, str) or not name or "\x00" in name:
            raise ValueError(f"expected names that are non-empty text, got {name!r} in {value!r}")
    return tuple(dict.fromkeys(sorted(names) if isinstance(many, (set, frozenset)) else names))


def read_modules(value: object) -> tuple[str, ...]:
    names = () if value == "" else read_names(value)
    for name in names:
        if not all(map(str.isidentifier, name.split("."))):
            raise ValueError(
                f"expected modules as they are imported ('orders.tasks'), got {name!r}"
            )
    return names


def read_worker_name(value: object) -> str:
    (name, *more) = read_names(value) or ("",)
    if more or not name.isprintable() or " " in name or len(name) > LONGEST_WORKER_NAME:
        raise ValueError(
            f"expected a name without blanks and commas, of {LONGEST_WORKER_NAME} characters at "
            f"most, got {value!r}"
        )
    return name


def read_queues(value: object) -> tuple[str, ...]:
    names = read_names(value)
    if not names:
        raise ValueError(f"expected at least one queue, or '*' for all of them, got {value!r}")
    return names


def read_name_set(value: object) -> frozenset[str]:
    return frozenset() if value == "" else frozenset(read_names(value))


def read_open_queues(value: object) -> frozenset[str]:
    names = read_name_set(value)
    if EVERY_QUEUE in names:
        raise ValueError(
            f"expected names of queues, got {value!r}. A misspelt task type would be accepted on "
            "every queue; name those that HTTP workers serve."
        )
    return names


def word_of(words: Iterable[str]) -> Callable[[object], str]:
    def read(value: object) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in words:
            raise ValueError(f"expected one of {', '.join(words)}, got {value!r}")
        return word

    return read


def read_secret(value: object) -> str:
    if not isinstance(value, str) or len(value) < SHORTEST_SECRET:
        # Without what was found: it may be the better half of a real secret.
        raise ValueError(f"expected a secret text of {SHORTEST_SECRET} characters or more")
    return value
