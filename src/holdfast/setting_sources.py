"""The settings in force, for people: where each comes from, with stars for what is secret."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final

from holdfast.core.limits import UNLIMITED
from holdfast.core.retry import RetryPolicy
from holdfast.settings import PREFIX, Settings

STARS: Final = "***"
FILE: Final = "pyproject.toml"
_PASSWORD: Final = re.compile(r"(?<=://)([^/@:]*:)[^/]*@")
_SECRET_OPTION: Final = re.compile(
    r"([?&][^=&]*(?:password|secret|token|key)=)[^&]*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in force and where it came from."""

    name: str
    value: object
    source: str


def settings_in_force(
    settings: Settings,
    given: Mapping[str, object],
    environment: Mapping[str, str] = os.environ,
    *,
    elsewhere: str = FILE,
) -> list[Setting]:
    """Every setting with its source: an option, a variable, the default, or `elsewhere`."""
    found = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        variable = f"{PREFIX}{field.name.upper()}"
        if given.get(field.name) is not None:
            source = f"--{field.name.replace('_', '-')}"
        elif variable in environment:
            source = variable
        elif value == field.default:
            source = "default"
        elif field.name == "heartbeat" and value == settings.lease / 3:
            source = "follows lease"
        else:
            source = elsewhere
        found.append(Setting(field.name, _plain(field.name, value, not field.repr), source))
    return found


def _plain(name: str, value: object, is_secret: bool) -> object:
    """A value for the screen: people paste it into bug reports, so secrets are stars."""
    if isinstance(value, str) and name.endswith("url"):
        return _SECRET_OPTION.sub(rf"\1{STARS}", _PASSWORD.sub(rf"\1{STARS}@", value))
    if is_secret and value is not None:
        return STARS
    if isinstance(value, Mapping):
        return {word: _plain(name, each, is_secret) for word, each in value.items()}
    if isinstance(value, RetryPolicy):
        return asdict(value)
    if name == "max_retries" and value == UNLIMITED:
        return "unlimited"
    if value == math.inf:
        return "none"
    return sorted(value) if isinstance(value, frozenset) else value
