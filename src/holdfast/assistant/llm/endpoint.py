"""One OpenAI-compatible endpoint over HTTP: `POST {llm_url}/chat/completions`.

The endpoint is not trusted. Its answer is read up to a bound and by a deadline, redirects are not
followed, and none of its words reach a log, an error or a record: many endpoints repeat the key
they were given in their error messages. What went wrong is one of `Reason`, nothing more.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import orjson

from holdfast.errors import ConfigError
from holdfast.settings import Settings

if TYPE_CHECKING:
    import httpx

Reason = Literal[
    "deadline",
    "unreachable",
    "rate_limited",
    "http_error",
    "too_large",
    "not_json",
    "truncated",
    "declined",
]
Style = Literal["compact", "complete", "object"]
STYLES: tuple[Style, ...] = ("compact", "complete", "object")
"""How to ask, in the order to try: endpoints say 400 to what they do not know. Some services want
the complete schema, and their models that reason take neither a temperature nor `max_tokens`; older
servers take no schema at all.
"""

LONGEST_ANSWER = 256 * 1024
"""Bytes of one answer. A full set of slots has less than 2 kB."""
MOST_TOKENS = 1_500
"""Asked of the model as the longest answer; what runs into it is truncated, and not believed."""
MOST_TOKENS_WITH_REASONING = 4_000
MOST_TRIES = 4
"""Requests for one answer while the endpoint says 429."""
USUAL_PAUSE = 1.0
"""Seconds to wait after a 429 that does not say how long."""
_WAIT = frozenset({429, 503})
_CANNOT = frozenset({400, 415, 422})
"""How endpoints say that they do not know one of the members."""


class NoAnswer(Exception):
    """The endpoint gave no answer that can be used; `reason` says why."""

    def __init__(self, reason: Reason, *, unsupported: bool = False) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.unsupported = unsupported


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What the model said. `flaw` says that it is none to work with, which costs all the same."""

    text: str
    flaw: Reason | None
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the model is, as the settings say."""

    url: str
    key: str | None
    model: str
    timeout: float

    def __repr__(self) -> str:
        return f"Endpoint(model={self.model!r})"

    @classmethod
    def of(cls, settings: Settings) -> Endpoint:
        """The endpoint of these settings; `ConfigError` where one of the two is missing."""
        if settings.llm_url is None or settings.llm_model is None:
            missing = "llm_url" if settings.llm_url is None else "llm_model"
            raise ConfigError(
                missing, f"{missing}: expected, to ask a language model, got none. Set both."
            )
        _httpx()
        return cls(
            url=settings.llm_url,
            key=settings.llm_key,
            model=settings.llm_model,
            timeout=settings.llm_timeout,
        )

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """A connection for the calls of one request. Opened for each, so that a planner needs no
        closing and belongs to no event loop; beside the seconds of a model that is nothing.
        """
        httpx = _httpx()
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if self.key is not None:
            headers["authorization"] = f"Bearer {self.key}"
        async with httpx.AsyncClient(
            headers=headers, timeout=None, verify=_tls(), follow_redirects=False
        ) as client:
            yield Connection(self, client)


class Connection:
    """Asks, waits where the endpoint says so, and reads no more than it must."""

    def __init__(self, endpoint: Endpoint, client: httpx.AsyncClient) -> None:
        self._endpoint = endpoint
        self._client = client

    async def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any],
        style: Style,
        deadline: float,
    ) -> Completion:
        """One answer to these messages, before `deadline` (of the event loop's clock).

        Raises `NoAnswer`; never anything of the HTTP library.
        """
        body = orjson.dumps(self._request(messages, schema, style))
        try:
            async with asyncio.timeout_at(deadline):
                return _completion(await self._answer(body, deadline))
        except TimeoutError:
            raise NoAnswer("deadline") from None
        except (_httpx().HTTPError, _httpx().InvalidURL, OSError):
            raise NoAnswer("unreachable") from None

    def _request(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], style: Style
    ) -> dict[str, Any]:
        form: dict[str, Any] = {"type": "json_object"}
        if style != "object":
            strict = {"name": "reading", "strict": True, "schema": schema}
            form = {"type": "json_schema", "json_schema": strict}
        bounds = {"temperature": 0, "max_tokens": MOST_TOKENS}
        if style == "complete":
            bounds = {"max_completion_tokens": MOST_TOKENS_WITH_REASONING}
        return {
            "model": self._endpoint.model,
            "messages": [dict(message) for message in messages],
            "response_format": form,
            **bounds,
        }

    async def _answer(self, body: bytes, deadline: float) -> bytes:
        for _ in range(MOST_TRIES):
            async with self._client.stream(
                "POST",
                f"{self._endpoint.url}/chat/completions",
                content=body,
                headers={"content-type": "application/json"},
            ) as response:
                if response.status_code == 200:
                    return await _bounded(response)
                if response.status_code not in _WAIT:
                    raise NoAnswer("http_error", unsupported=response.status_code in _CANNOT)
                pause = _pause(response.headers.get("retry-after"))
            if pause >= deadline - asyncio.get_running_loop().time():
                break
            await asyncio.sleep(pause)
        raise NoAnswer("rate_limited")


async def _bounded(response: httpx.Response) -> bytes:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" or response.headers.get("content-encoding", "identity") != (
        "identity"
    ):
        raise NoAnswer("not_json")
    read = bytearray()
    async for block in response.aiter_raw():
        read += block
        if len(read) > LONGEST_ANSWER:
            raise NoAnswer("too_large")
    return bytes(read)


def _completion(body: bytes) -> Completion:
    """What the answer says; anything that is not shaped as one is `not_json`."""
    try:
        answer = orjson.loads(body)
        choice = answer["choices"][0]
        message = choice["message"]
        usage = answer.get("usage") or {}
        content, refusal = message.get("content"), message.get("refusal")
        finish = choice.get("finish_reason")
        tokens = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise NoAnswer("not_json") from None
    flaw: Reason | None = None
    if finish == "length":
        flaw = "truncated"
    elif refusal or finish == "content_filter" or not isinstance(content, str):
        flaw = "declined"
    text = content if isinstance(content, str) else ""
    return Completion(text=text, flaw=flaw, tokens_in=tokens[0], tokens_out=tokens[1])


def _count(value: object) -> int:
    """A number of tokens, if it can be one."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9:
        return value
    return 0


def _pause(header: str | None) -> float:
    """Seconds that `Retry-After` asks for: a number of them, or a date."""
    if header is None:
        return USUAL_PAUSE
    try:
        seconds = float(header)
    except ValueError:
        try:
            when = parsedate_to_datetime(header)
        except ValueError:
            return USUAL_PAUSE
        seconds = (when.astimezone(UTC) - datetime.now(UTC)).total_seconds()
    return seconds if 0 <= seconds < 1e6 else USUAL_PAUSE


def _httpx() -> Any:
    try:
        import httpx  # noqa: PLC0415 - an extra, needed by those alone who ask a model
    except ImportError:
        raise ConfigError(
            "llm_url",
            "llm_url: asking a language model needs httpx. Install it with "
            "pip install 'holdfast[llm]', or leave llm_url out.",
        ) from None
    return httpx


@cache
def _tls() -> ssl.SSLContext:
    """Certificates are read once: that takes longer than a whole request to a model nearby."""
    context: ssl.SSLContext = _httpx().create_ssl_context()
    return context
