"""Every knob, one name each: as a keyword, as `HOLDFAST_<NAME>`, and in `[tool.holdfast]`.

A keyword wins over the environment, that over the nearest `pyproject.toml` (upward from the working
directory, to the project's root at most), that over the default. A misspelt name or value is
refused at once, with what was expected, what was found and where: a setting that is silently
ignored is worse than none.

This module stays light (no Pydantic): the supervisor of worker processes imports it.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, Unpack

from holdfast.core import limits
from holdfast.core.duration import Duration, Size, parse_duration, parse_size
from holdfast.core.priority import Aging
from holdfast.core.retry import RetryPolicy, fixed, parse_policy
from holdfast.core.task import Priority
from holdfast.errors import ConfigError
from holdfast.logs import FORMATS, LEVELS

PREFIX = "HOLDFAST_"
PREFIX_OF_TESTS = "HOLDFAST_TEST_"
"""Variables of `holdfast.testing` (where its servers are found); no settings."""
EVERY_QUEUE = "*"
SHORTEST_SECRET = 16
LONGEST_WORKER_NAME = 100

Retries = int | Literal["unlimited"]
Names = str | list[str] | tuple[str, ...] | set[str] | frozenset[str]
"""Several names: a collection, or one text with commas."""


class SettingsKeywords(TypedDict, total=False):
    """The settings as a caller may write them. None means "not given"."""

    url: str | None
    redis_url: str | None
    include: Names | None
    lease: Duration | None
    heartbeat: Duration | None
    sweep: Duration | None
    poll: Duration | None
    retry_base: Duration | None
    retry_multiplier: float | None
    retry_cap: Duration | None
    retry_delay: Duration | None
    retry_jitter: bool | None
    retry: RetryPolicy | str | Mapping[str, object] | None
    aging_low: Duration | None
    aging_normal: Duration | None
    max_retries: Retries | str | Mapping[str, Retries] | None
    timeout: Duration | Mapping[str, Duration] | None
    crash_limit: int | None
    unknown_task_grace: Duration | None
    drain: Duration | None
    stop_grace: Duration | None
    max_payload: Size | None
    max_result: Size | None
    retention: Duration | None
    dead_letter_retention: Duration | None
    idempotency_window: Duration | None
    schedule_floor: Duration | None
    worker_name: str | None
    queues: Names | None
    concurrency: int | None
    processes: int | None
    capabilities: Names | None
    open_queues: Names | None
    max_body: Size | None
    max_connections: int | None
    rate_limit: float | None
    request_timeout: Duration | None
    callback_hosts: Names | None
    callback_previous_secret: str | None
    callback_secret: str | None
    timer_url: str | None
    timer_previous_secret: str | None
    timer_secret: str | None
    log_level: str | None
    log_format: str | None
    processor_interval: Duration | None
    batch_size: int | None
    stale_claim_timeout: Duration | None
    worker_id: str | None


OTHER_NAMES = {
    "processor_interval": "poll",
    "batch_size": "concurrency",
    "stale_claim_timeout": "lease",
    "worker_id": "worker_name",
}
"""Settings as other task processors call them, and what they are here."""


_WITH_DRIVER = re.compile(r"^(postgresql|postgres|sqlite)\+\w+(?=://)")
"""A URL of SQLAlchemy names the driver too (`postgresql+psycopg://`). We have our own."""


def _url(value: object, such_as: str = "'sqlite:///holdfast.db'") -> str:
    if isinstance(value, str) and "://" in value:
        return _WITH_DRIVER.sub(r"\1", value)
    raise ValueError(f"expected a URL such as {such_as}, got {value!r}")


def _redis_url(value: object) -> str:
    return _url(value, such_as="'redis://localhost:6379' (leave it out to work without Redis)")


def _timer_url(value: object) -> str:
    return _url(
        value, such_as="'gcloud://project/location/queue?target=https://…/v1/tasks/execute'"
    )


def _duration(value: object) -> float:
    seconds = parse_duration(value)
    if seconds == 0:
        raise ValueError(f"expected more than 0 seconds, got {value!r}")
    return seconds


def _size(value: object) -> int:
    size = parse_size(value)
    if size == 0:
        raise ValueError(f"expected more than 0 bytes, got {value!r}")
    return size


def _whole(least: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"expected a whole number, {least} or more, got {value!r}")
        return value

    return read


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    truth = words.get(str(value).strip().lower())
    if truth is None:
        raise ValueError(f"expected true or false, got {value!r}")
    return truth


def _number(least: float, most: float, expected: str) -> Callable[[object], float]:
    def read(value: object) -> float:
        try:
            number = float(value) if isinstance(value, (int, float, str)) else math.nan
        except ValueError:
            number = math.nan
        if not least <= number <= most or isinstance(value, bool):
            raise ValueError(f"expected {expected}, got {value!r}")
        return number

    return read


def _names(value: object) -> tuple[str, ...]:
    """Read several names; the order is kept, doubles and blanks around them are dropped."""
    many = value.split(",") if isinstance(value, str) else value
    if not isinstance(many, (list, tuple, set, frozenset)):
        raise ValueError(f"expected names, as a list or a text with commas, got {value!r}")
    names = [name.strip() if isinstance(name, str) else name for name in many]
    for name in names:
        if not isinstance(name, str) or not name or "\x00" in name:
            raise ValueError(f"expected names that are non-empty text, got {name!r} in {value!r}")
    return tuple(dict.fromkeys(sorted(names) if isinstance(many, (set, frozenset)) else names))


def _modules(value: object) -> tuple[str, ...]:
    names = () if value == "" else _names(value)
    for name in names:
        if not all(map(str.isidentifier, name.split("."))):
            raise ValueError(
                f"expected modules as they are imported ('orders.tasks'), got {name!r}"
            )
    return names


def _worker_name(value: object) -> str:
    (name, *more) = _names(value) or ("",)
    if more or not name.isprintable() or " " in name or len(name) > LONGEST_WORKER_NAME:
        raise ValueError(
            f"expected a name without blanks and commas, of {LONGEST_WORKER_NAME} characters at "
            f"most, got {value!r}"
        )
    return name


def _queues(value: object) -> tuple[str, ...]:
    names = _names(value)
    if not names:
        raise ValueError(f"expected at least one queue, or '*' for all of them, got {value!r}")
    return names


def _name_set(value: object) -> frozenset[str]:
    return frozenset() if value == "" else frozenset(_names(value))


def _open_queues(value: object) -> frozenset[str]:
    names = _name_set(value)
    if EVERY_QUEUE in names:
        raise ValueError(
            f"expected names of queues, got {value!r}. A misspelt task type would be accepted on "
            "every queue; name those that HTTP workers serve."
        )
    return names


def _word(words: Iterable[str]) -> Callable[[object], str]:
    def read(value: object) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in words:
            raise ValueError(f"expected one of {', '.join(words)}, got {value!r}")
        return word

    return read


def _secret(value: object) -> str:
    if not isinstance(value, str) or len(value) < SHORTEST_SECRET:
        # Without what was found: it may be the better half of a real secret.
        raise ValueError(f"expected a secret text of {SHORTEST_SECRET} characters or more")
    return value


def _setting(read: Callable[[object], object], default: Any, *, secret: bool = False) -> Any:
    """A setting: how what somebody gave is read, and what it is if nobody gave it."""
    return field(default=default, repr=not secret, metadata={"read": read})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings, read and checked; times in seconds, sizes in bytes.

    `max_retries` and `timeout` are by priority (`retries_for`, `timeout_for`): None means the
    defaults, a mapping replaces those it names, one value replaces all. With a `retry_delay` every
    retry waits just that long, and the curve of the other three is not used; a `retry` replaces all
    four. `retry_jitter` None means: the curve has it, a `retry_delay` has not. A `rate_limit` of 0
    means none.
    """

    url: str = _setting(_url, "sqlite:///holdfast.db", secret=True)  # there may be passwords in it
    redis_url: str | None = _setting(_redis_url, None, secret=True)
    include: tuple[str, ...] = _setting(_modules, ())
    lease: float = _setting(_duration, 30.0)
    heartbeat: float = _setting(_duration, 10.0)
    sweep: float = _setting(_duration, 5.0)
    poll: float = _setting(_duration, 1.0)
    retry_base: float = _setting(parse_duration, 5.0)
    retry_multiplier: float = _setting(_number(1, 1000, "a number from 1 to 1000"), 2.0)
    retry_cap: float = _setting(parse_duration, 3600.0)
    retry_delay: float | None = _setting(parse_duration, None)
    retry_jitter: bool | None = _setting(_truth, None)
    retry: RetryPolicy | None = _setting(parse_policy, None)
    aging_low: float = _setting(parse_duration, 600.0)
    aging_normal: float = _setting(parse_duration, 1200.0)
    max_retries: int | Mapping[str, int] | None = _setting(
        limits.by_priority(limits.parse_retries), None
    )
    timeout: float | Mapping[str, float] | None = _setting(
        limits.by_priority(limits.parse_timeout), None
    )
    crash_limit: int = _setting(_whole(1), 3)
    unknown_task_grace: float = _setting(parse_duration, 3600.0)
    drain: float = _setting(parse_duration, 30.0)
    stop_grace: float = _setting(parse_duration, 5.0)
    max_payload: int = _setting(_size, 1024 * 1024)
    max_result: int = _setting(_size, 1024 * 1024)
    retention: float = _setting(parse_duration, 7 * 86_400.0)
    dead_letter_retention: float = _setting(parse_duration, 30 * 86_400.0)
    idempotency_window: float = _setting(parse_duration, 86_400.0)
    schedule_floor: float = _setting(_duration, 1.0)
    worker_name: str | None = _setting(_worker_name, None)
    queues: tuple[str, ...] = _setting(_queues, ("default",))
    concurrency: int = _setting(_whole(1), 10)
    processes: int = _setting(_whole(1), 1)
    capabilities: frozenset[str] = _setting(_name_set, frozenset())
    open_queues: frozenset[str] = _setting(_open_queues, frozenset())
    max_body: int = _setting(_size, 16 * 1024 * 1024)
    max_connections: int = _setting(_whole(1), 1000)
    rate_limit: float = _setting(_number(0, 1e9, "requests per second, or 0 for no limit"), 0.0)
    request_timeout: float = _setting(_duration, 30.0)
    callback_hosts: frozenset[str] = _setting(_name_set, frozenset())
    callback_previous_secret: str | None = _setting(_secret, None, secret=True)
    callback_secret: str | None = _setting(_secret, None, secret=True)
    timer_url: str | None = _setting(_timer_url, None)
    timer_previous_secret: str | None = _setting(_secret, None, secret=True)
    timer_secret: str | None = _setting(_secret, None, secret=True)
    log_level: str = _setting(_word(LEVELS), "info")
    log_format: str = _setting(_word(FORMATS), "text")

    @classmethod
    def load(cls, **overrides: Unpack[SettingsKeywords]) -> Self:
        """Merge keywords, environment, `pyproject.toml` and defaults.

        Where `lease` is set and `heartbeat` is not, the heartbeat follows it down to a third.
        """
        return cls()._with(_found(overrides))

    def override(self, **overrides: Unpack[SettingsKeywords]) -> Self:
        """These settings, but for what is given here."""
        return self._with(_read_all(_from_keywords(overrides)))

    def _with(self, given: dict[str, Any]) -> Self:
        if "lease" in given and "heartbeat" not in given:
            given = {**given, "heartbeat": min(self.heartbeat, given["lease"] / 3)}
        settings = replace(self, **given)
        if settings.heartbeat >= settings.lease:
            raise ConfigError(
                "heartbeat",
                f"heartbeat: expected less than lease ({settings.lease:g} s), got "
                f"{settings.heartbeat:g} s. A worker must beat several times per lease, or it is "
                "taken for lost while it works.",
            )
        return settings

    @property
    def aging(self) -> Aging:
        return Aging(low=self.aging_low, normal=self.aging_normal)

    @property
    def retry_policy(self) -> RetryPolicy:
        """The backoff of tasks that name none."""
        if self.retry is not None:
            return self.retry
        if self.retry_delay is not None:
            return fixed(self.retry_delay, jitter=self.retry_jitter or False)
        return RetryPolicy(
            base=self.retry_base,
            multiplier=self.retry_multiplier,
            cap=self.retry_cap,
            jitter=self.retry_jitter is not False,
        )

    @property
    def timer_secrets(self) -> tuple[str, ...]:
        """What timers are signed with: the first of them, and the others hold too."""
        given = (self.timer_secret, self.timer_previous_secret)
        return tuple(secret for secret in given if secret is not None)

    @property
    def served_queues(self) -> tuple[str, ...] | None:
        """The queues a worker takes from; None for all of them."""
        return None if EVERY_QUEUE in self.queues else self.queues

    def retries_for(self, priority: Priority) -> int:
        return limits.chosen(self.max_retries, priority, limits.RETRIES)

    def timeout_for(self, priority: Priority) -> float:
        """The time limit in seconds; infinite for none."""
        return limits.chosen(self.timeout, priority, limits.TIMEOUTS)


_READERS: Mapping[str, Callable[[object], object]] = {
    each.name: each.metadata["read"] for each in fields(Settings)
}

Given = tuple[str, object, str]
"""A setting's name, the value somebody gave it, and where, for the error message."""


def _found(overrides: Mapping[str, object]) -> dict[str, Any]:
    """Every setting that somebody gave, checked; the strongest source comes last and wins."""
    return _read_all(
        chain(_from_pyproject(Path.cwd()), _from_environment(os.environ), _from_keywords(overrides))
    )


def _read_all(given: Iterable[Given]) -> dict[str, Any]:
    return {name: _read(name, value, label) for name, value, label in given}


def _in_our_words(given: Iterable[Given]) -> Iterator[Given]:
    """What one source gave, by our names; both names at once would leave one of them ignored."""
    labels: dict[str, str] = {}
    for name, value, label in given:
        ours = OTHER_NAMES.get(name, name)
        if ours in labels:
            raise ConfigError(
                name, f"{label}: is another word for {ours}; give one of them, not both"
            )
        labels[ours] = label
        yield ours, value, label


def _from_keywords(keywords: Mapping[str, object]) -> Iterator[Given]:
    given = ((name, value, name) for name, value in keywords.items() if value is not None)
    return _in_our_words(given)


def _from_pyproject(folder: Path) -> Iterator[Given]:
    path = _pyproject(folder)
    if path is not None:
        label = f"in [tool.holdfast] of {path}"
        yield from _in_our_words((n, value, f"{n} {label}") for n, value in _table(path).items())


def _pyproject(folder: Path) -> Path | None:
    """The nearest file, upward to the project's root: a folder with `.git`, or the home. A folder
    in which everybody may write (`/tmp`) is no part of a project, and ends the search.
    """
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none
    for place in (folder, *folder.parents):
        found = place / "pyproject.toml"
        if _is_open_to_all(place):
            return found if place == folder and _is_mine(found) else None
        if found.is_file():
            return found
        if place == home or (place / ".git").exists():
            return None
    return None


def _is_open_to_all(folder: Path) -> bool:
    return os.name == "posix" and bool(folder.stat().st_mode & stat.S_IWOTH)


def _is_mine(file: Path) -> bool:
    return file.is_file() and file.stat().st_uid in {0, os.getuid()}


def _table(path: Path) -> Mapping[str, object]:
    import tomllib  # noqa: PLC0415 - only where a file is there to be read

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("holdfast", {})
    except (OSError, ValueError) as error:
        raise ConfigError("pyproject", f"{path} cannot be read: {error}") from None
    if not isinstance(table, dict):
        raise ConfigError("pyproject", f"{path}: expected [tool.holdfast] to be a table")
    return table


def _from_environment(environment: Mapping[str, str]) -> Iterator[Given]:
    return _in_our_words(
        (name.removeprefix(PREFIX).lower(), value, name)
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX) and not name.startswith(PREFIX_OF_TESTS)
    )


def _read(name: str, value: object, label: str) -> object:
    if name not in _READERS:
        close = get_close_matches(name, (*_READERS, *OTHER_NAMES), n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ConfigError(
            name, f"{label}: no such setting.{hint} Expected one of: {', '.join(_READERS)}."
        )
    try:
        return _READERS[name](value)
    except ValueError as error:
        raise ConfigError(name, f"{label}: {error}") from None
