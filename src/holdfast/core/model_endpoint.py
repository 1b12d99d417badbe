"""Where a language model is, as people write it into settings."""

from __future__ import annotations

import re
from typing import Final

_BASE: Final = re.compile(r"https?://[^\s?#@\\]+")
_LONGEST_MODEL: Final = 200


def read_url(value: object) -> str:
    """The base URL of an endpoint. What was found is not repeated: it may hold a password."""
    if isinstance(value, str) and _BASE.fullmatch(value):
        return value.rstrip("/")
    raise ValueError(
        "expected the base URL of an OpenAI-compatible endpoint, such as "
        "'https://api.openai.com/v1', without name, password, query and fragment"
    )


def read_key(value: object) -> str:
    """What goes into a header: ASCII without blanks. What was found is never repeated."""
    key = value.strip() if isinstance(value, str) else ""
    if key and key.isascii() and key.isprintable() and " " not in key:
        return key
    raise ValueError("expected the key of the endpoint: ASCII text without blanks")


def read_model(value: object) -> str:
    """The name of a model at that endpoint."""
    name = value.strip() if isinstance(value, str) else ""
    if name and name.isprintable() and len(name) <= _LONGEST_MODEL:
        return name
    raise ValueError(f"expected the name of a model, such as 'gpt-5-mini', got {value!r}")
