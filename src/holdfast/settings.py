"""Every knob, one name each: as a keyword, as `HOLDFAST_<NAME>`, and in `[tool.holdfast]`.

A keyword wins over the environment, that over the nearest `pyproject.toml` (upward from the working
directory, to the project's root at most), that over the default. A misspelt name or value is
refused at once, with what was expected, what was found and where: a setting that is silently
ignored is worse than none.

This module stays light (no Pydantic): the supervisor of worker processes imports it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, Unpack

from holdfast.core import delivery_settings, limits, model_endpoint
from holdfast.core.duration import Duration, Size, parse_duration
from holdfast.core.mail_address import parse_address
from holdfast.core.priority import Aging
from holdfast.core.retry import RetryPolicy, fixed, parse_policy
from holdfast.core.task import Priority
from holdfast.errors import ConfigError
from holdfast.logs import FORMATS, LEVELS
from holdfast.setting_readers import (
    EVERY_QUEUE,
    number,
    read_duration,
    read_firestore_url,
    read_modules,
    read_name_set,
    read_open_queues,
    read_queues,
    read_redis_url,
    read_secret,
    read_size,
    read_task_name,
    read_timer_url,
    read_truth,
    read_url,
    read_worker_name,
    whole,
    word_of,
)

PREFIX = "HOLDFAST_"
PREFIX_OF_TESTS = "HOLDFAST_TEST_"
"""Variables of `holdfast.testing` (where its servers are found); no settings."""

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
    agent: str | None
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
    llm_url: str | None
    llm_key: str | None
    llm_model: str | None
    llm_timeout: Duration | None
    smtp_url: str | None
    mail_from: str | None
    public_url: str | None
    delivery_secret: str | None
    delivery_templates: str | None
    fcm_credentials: str | None
    fcm_url: str | None
    vapid_private_key: str | None
    vapid_subject: str | None
    inbox_retention: Duration | None
    firestore_url: str | None
    otel: bool | None
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

    url: str = _setting(
        read_url, "sqlite:///holdfast.db", secret=True
    )  # there may be passwords in it
    redis_url: str | None = _setting(read_redis_url, None, secret=True)
    include: tuple[str, ...] = _setting(read_modules, ())
    lease: float = _setting(read_duration, 30.0)
    heartbeat: float = _setting(read_duration, 10.0)
    sweep: float = _setting(read_duration, 5.0)
    poll: float = _setting(read_duration, 1.0)
    retry_base: float = _setting(parse_duration, 5.0)
    retry_multiplier: float = _setting(number(1, 1000, "a number from 1 to 1000"), 2.0)
    retry_cap: float = _setting(parse_duration, 3600.0)
    retry_delay: float | None = _setting(parse_duration, None)
    retry_jitter: bool | None = _setting(read_truth, None)
    retry: RetryPolicy | None = _setting(parse_policy, None)
    aging_low: float = _setting(parse_duration, 600.0)
    aging_normal: float = _setting(parse_duration, 1200.0)
    max_retries: int | Mapping[str, int] | None = _setting(
        limits.by_priority(limits.parse_retries), None
    )
    timeout: float | Mapping[str, float] | None = _setting(
        limits.by_priority(limits.parse_timeout), None
    )
    crash_limit: int = _setting(whole(1), 3)
    unknown_task_grace: float = _setting(parse_duration, 3600.0)
    drain: float = _setting(parse_duration, 30.0)
    stop_grace: float = _setting(parse_duration, 5.0)
    max_payload: int = _setting(read_size, 1024 * 1024)
    max_result: int = _setting(read_size, 1024 * 1024)
    retention: float = _setting(parse_duration, 7 * 86_400.0)
    dead_letter_retention: float = _setting(parse_duration, 30 * 86_400.0)
    idempotency_window: float = _setting(parse_duration, 86_400.0)
    schedule_floor: float = _setting(read_duration, 1.0)
    agent: str | None = _setting(read_task_name, None)
    worker_name: str | None = _setting(read_worker_name, None)
    queues: tuple[str, ...] = _setting(read_queues, ("default",))
    concurrency: int = _setting(whole(1), 10)
    processes: int = _setting(whole(1), 1)
    capabilities: frozenset[str] = _setting(read_name_set, frozenset())
    open_queues: frozenset[str] = _setting(read_open_queues, frozenset())
    max_body: int = _setting(read_size, 16 * 1024 * 1024)
    max_connections: int = _setting(whole(1), 1000)
    rate_limit: float = _setting(number(0, 1e9, "requests per second, or 0 for no limit"), 0.0)
    request_timeout: float = _setting(read_duration, 30.0)
    callback_hosts: frozenset[str] = _setting(read_name_set, frozenset())
    callback_previous_secret: str | None = _setting(read_secret, None, secret=True)
    callback_secret: str | None = _setting(read_secret, None, secret=True)
    timer_url: str | None = _setting(read_timer_url, None)
    timer_previous_secret: str | None = _setting(read_secret, None, secret=True)
    timer_secret: str | None = _setting(read_secret, None, secret=True)
    llm_url: str | None = _setting(model_endpoint.read_url, None, secret=True)
    llm_key: str | None = _setting(model_endpoint.read_key, None, secret=True)
    llm_model: str | None = _setting(model_endpoint.read_model, None)
    llm_timeout: float = _setting(read_duration, 20.0)
    smtp_url: str | None = _setting(delivery_settings.smtp_url, None, secret=True)
    mail_from: str | None = _setting(parse_address, None)
    public_url: str | None = _setting(delivery_settings.public_url, None)
    delivery_secret: str | None = _setting(read_secret, None, secret=True)
    delivery_templates: str | None = _setting(delivery_settings.text, None)
    fcm_credentials: str | None = _setting(
        delivery_settings.text, None, secret=True
    )  # a path, or the JSON itself
    fcm_url: str = _setting(delivery_settings.public_url, "https://fcm.googleapis.com")
    vapid_private_key: str | None = _setting(delivery_settings.vapid_key, None, secret=True)
    vapid_subject: str | None = _setting(delivery_settings.vapid_subject, None)
    inbox_retention: float = _setting(parse_duration, 90 * 86_400.0)
    firestore_url: str | None = _setting(read_firestore_url, None)
    otel: bool = _setting(read_truth, False)
    log_level: str = _setting(word_of(LEVELS), "info")
    log_format: str = _setting(word_of(FORMATS), "text")

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
