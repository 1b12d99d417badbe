"""Requests about tokens."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import Field, StringConstraints, with_config
from typing_extensions import TypedDict

from holdfast.server.models import words
from holdfast.server.shape import CLOSED


@with_config(CLOSED)
class NewToken(TypedDict, total=False):
    """A token to be. Without `expires_in_seconds` it holds until it is revoked."""

    name: Required[
        Annotated[
            str, StringConstraints(min_length=1, max_length=200, pattern=words.NO_NUL, strict=True)
        ]
    ]
    scopes: Required[
        Annotated[
            list[Literal["admin", "submit", "read", "worker"]], Field(min_length=1, max_length=4)
        ]
    ]
    expires_in_seconds: words.Limit
