"""Requests about tokens."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Required

from pydantic import Field, StringConstraints, with_config
from typing_extensions import TypedDict

from holdfast.server.models import words
from holdfast.server.shape import CLOSED

Bound = Annotated[list[words.Name], Field(min_length=1, max_length=100)]
RATE: Final = "^[1-9][0-9]{0,4}/([1-9][0-9]{0,3})?[smh]$"


@with_config(CLOSED)
class NewToken(TypedDict, total=False):
    """A token to be. Without `expires_in_seconds` it holds until it is revoked. `owner`, `queues`,
    `task_types`, `max_priority` and `rate` (`"100/1m"`) bind it.
    """

    name: Required[
        Annotated[
            str, StringConstraints(min_length=1, max_length=200, pattern=words.NO_NUL, strict=True)
        ]
    ]
    scopes: Required[
        Annotated[
            list[Literal["admin", "submit", "read", "operate", "worker"]],
            Field(min_length=1, max_length=5),
        ]
    ]
    expires_in_seconds: words.Limit
    owner: words.Key
    queues: Bound
    task_types: Bound
    max_priority: words.PriorityWord
    rate: Annotated[str, StringConstraints(pattern=RATE, max_length=30, strict=True)]
