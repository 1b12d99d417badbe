"""Conversations with a server, without the wire.

A verb is a generator: it yields a `Request` and is sent the `Reply`, or `Lost` if none came; it
yields a `Pause` and is resumed after it. Whoever drives it decides how bytes travel and how time
passes, so the sync and the async client share every verb, the retries included.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from typing import Any, TypeVar

import orjson

from holdfast.core.task import Json
from holdfast.errors import StoreUnavailable
from holdfast.http.problems import error_of

MOST_TRIES = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two tries: doubled each time, jittered. `Retry-After` wins."""

_TRY_AGAIN = {
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request to be made."""

    method: str
    path: str
    query: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """No answer came. `sent` False: the request certainly did not arrive."""

    why: str
    sent: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """Time to let pass, in seconds."""

    seconds: float


Talk = Generator[Request | Pause, Any, T]
"""A conversation that ends in a `T`."""


def ask(
    method: str,
    path: str,
    *,
    query: Mapping[str, str | Sequence[str]] | None = None,
    body: Json = None,
    repeatable: bool | None = None,
) -> Talk[Json]:
    """Ask one thing, again if need be and if that is safe: what only reads is, and whatever
    certainly did not arrive. Other requests are only repeated if `repeatable`.
    """
    answered = yield from ask_raw(method, path, query=query, body=body, repeatable=repeatable)
    return orjson.loads(answered) if answered else None


def ask_raw(
    method: str,
    path: str,
    *,
    query: Mapping[str, str | Sequence[str]] | None = None,
    body: Json = None,
    repeatable: bool | None = None,
) -> Talk[bytes]:
    """The same for answers that are no JSON."""
    safe = method == "GET" if repeatable is None else repeatable
    request = Request(
        method=method,
        path=path,
        query=query or {},
        body=None if body is None else orjson.dumps(body, option=orjson.OPT_UTC_Z),
    )
    for tries in count(1):
        reply = yield request
        if isinstance(reply, Reply) and reply.status < HTTPStatus.MULTIPLE_CHOICES:
            break
        if tries == MOST_TRIES or not _may_repeat(reply, safe=safe):
            raise _failure(reply)
        yield Pause(_rest(reply, tries))
    answered: bytes = reply.body
    return answered


def _may_repeat(reply: Reply | Lost, *, safe: bool) -> bool:
    if isinstance(reply, Lost):
        return safe or not reply.sent
    # Too many requests: this one was not looked at.
    return reply.status == HTTPStatus.TOO_MANY_REQUESTS or (safe and reply.status in _TRY_AGAIN)


def _rest(reply: Reply | Lost, tries: int) -> float:
    told = reply.headers.get("retry-after", "") if isinstance(reply, Reply) else ""
    if told.isdecimal():
        return min(float(told), LONGEST_PAUSE)
    longest: float = min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret


def _failure(reply: Reply | Lost) -> Exception:
    if isinstance(reply, Reply):
        return error_of(reply.status, reply.body)
    known = "It did not arrive." if not reply.sent else "Whether it arrived is not known."
    return StoreUnavailable(f"the server did not answer: {reply.why}. {known} Try again later.")
