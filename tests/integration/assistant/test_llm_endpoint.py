"""The endpoint is down, slow, busy or lying: it is a reason, in time, without the key."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.kit.servers import model
from tests.kit.servers.model import ModelServer

from holdfast.assistant.llm.endpoint import LONGEST_ANSWER, Completion, Endpoint, NoAnswer, Style
from holdfast.errors import ConfigError
from holdfast.settings import Settings

KEY = "sk-never-to-be-seen-0123456789"
ANSWER = {"kind": "refuse"}
SCHEMA = {"type": "object", "properties": {"title": {"type": "string", "maxLength": 80}}}


async def ask(url: str, *, within: float = 5.0, style: Style = "compact") -> Completion:
    settings = Settings.load(llm_url=url, llm_key=KEY, llm_model="scripted")
    deadline = asyncio.get_running_loop().time() + within
    async with Endpoint.of(settings).connect() as connection:
        return await connection.complete(
            [{"role": "user", "content": "hello"}],
            schema=SCHEMA,
            style=style,
            deadline=deadline,
        )


async def test_the_request_is_what_openai_documents() -> None:
    with ModelServer(model.says(ANSWER)) as server:
        done = await ask(server.url)

    (asked,) = server.asked
    assert done == Completion(text='{"kind": "refuse"}', flaw=None, tokens_in=100, tokens_out=20)
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "scripted",
        "messages": [{"role": "user", "content": "hello"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reading", "strict": True, "schema": SCHEMA},
        },
        "temperature": 0,
        "max_tokens": 1_500,
    }


async def test_models_that_reason_are_asked_without_what_they_refuse() -> None:
    with ModelServer(model.says(ANSWER)) as server:
        await ask(server.url, style="complete")

    assert "temperature" not in server.asked[0].body
    assert "max_tokens" not in server.asked[0].body
    assert server.asked[0].body["max_completion_tokens"] == 4_000


@pytest.mark.parametrize(
    ("answer", "flaw"),
    [
        (model.truncated(ANSWER), "truncated"),
        (model.refuses(), "declined"),
        (model.filtered(), "declined"),
        (model.says(None), "declined"),
    ],
    ids=["truncated", "refusing", "filtered", "empty"],
)
async def test_an_answer_that_is_none_is_still_paid_for(answer: model.Answer, flaw: str) -> None:
    with ModelServer(answer) as server:
        done = await ask(server.url)

    assert (done.flaw, done.tokens_in, done.tokens_out) == (flaw, 100, 20)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (model.status(500), "http_error"),
        (model.status(401), "http_error"),
        (model.status(302, location="http://127.0.0.1:1/"), "http_error"),
        (model.raw(b"<html>", content_type="text/html"), "not_json"),
        (model.raw(b"not json"), "not_json"),
        (model.raw(b"[" * 100_000), "not_json"),
        (model.raw(b"{}"), "not_json"),
        (model.raw(b'{"choices": []}'), "not_json"),
        (model.raw(b'{"choices": [{"message": "hi"}]}'), "not_json"),
        (model.raw(b"\x1f\x8b\x08", content_encoding="gzip"), "not_json"),
        (model.huge(LONGEST_ANSWER * 20), "too_large"),
        (model.drops(), "unreachable"),
        (model.status(429, retry_after="3600"), "rate_limited"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_goes_wrong_is_a_reason_and_nothing_of_the_answer(
    answer: model.Answer, reason: str
) -> None:
    with ModelServer(answer) as server, pytest.raises(NoAnswer) as failed:
        await ask(server.url)

    assert failed.value.reason == reason
    assert KEY not in repr(failed.value)
    assert failed.value.__cause__ is None
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [model.late(30, model.says(ANSWER)), model.drips(0.01), model.status(429, retry_after="0.05")],
    ids=["late", "dripping", "busy"],
)
async def test_the_deadline_holds_for_everything_together(answer: model.Answer) -> None:
    started = time.monotonic()

    with ModelServer(answer) as server, pytest.raises(NoAnswer) as failed:
        await ask(server.url, within=0.3)

    assert failed.value.reason in {"deadline", "rate_limited"}
    assert time.monotonic() - started < 3


async def test_nobody_listens_there() -> None:
    with ModelServer(model.drops()) as server:
        gone = server.url

    with pytest.raises(NoAnswer, match="unreachable"):
        await ask(gone)


@pytest.mark.parametrize("how", ["seconds", "a date", "nonsense"])
async def test_a_busy_endpoint_is_asked_again_when_it_says_so(how: str) -> None:
    at = datetime.now(UTC) + timedelta(seconds=1)
    header = {"seconds": "0.2", "a date": format_datetime(at, usegmt=True), "nonsense": "soon"}[how]
    with ModelServer(model.status(429, retry_after=header), model.says(ANSWER)) as server:
        done = await ask(server.url)

    assert done.flaw is None
    assert len(server.asked) == 2


async def test_usage_that_cannot_be_is_not_counted() -> None:
    usage = {"prompt_tokens": -5, "completion_tokens": True}
    with ModelServer(model.says(ANSWER, usage=usage)) as server:
        done = await ask(server.url)

    assert (done.tokens_in, done.tokens_out) == (0, 0)


def test_an_endpoint_does_not_show_its_key() -> None:
    settings = Settings.load(llm_url="https://h/v1", llm_key=KEY, llm_model="m")

    assert repr(Endpoint.of(settings)) == "Endpoint(model='m')"


@pytest.mark.parametrize(
    ("given", "missing"), [({"llm_url": "http://h"}, "llm_model"), ({"llm_model": "m"}, "llm_url")]
)
def test_half_of_the_settings_is_not_enough(given: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigError, match=f"^{missing}: expected"):
        Endpoint.of(Settings.load(**given))  # type: ignore[arg-type] # one of two names
