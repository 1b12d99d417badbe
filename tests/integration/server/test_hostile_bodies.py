"""Bodies that nobody sends by accident. None is a task, and none is a 5xx."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

TASKS = "/api/v1/tasks"
DEEP: Final = 100_000


def task(**body: Any) -> bytes:
    return json.dumps({"task_type": "shop.add", "parameters": {"a": 1}} | body).encode()


def arguments(text: str) -> bytes:
    return b'{"task_type": "shop.anything", "parameters": {"value": ' + text.encode() + b"}}"


REFUSED: Final[dict[str, bytes]] = {
    # no JSON, or none that a reader may trust
    "nothing": b"",
    "blanks": b"   ",
    "half an object": b'{"task_type": "shop.add"',
    "a trailing comma": b'{"task_type": "shop.add",}',
    "two values": b"{} {}",
    "a comment": b'{"task_type": "shop.add" /* x */}',
    "single quotes": b"{'task_type': 'shop.add'}",
    "a byte order mark": b"\xef\xbb\xbf" + task(),
    "UTF-16": task().decode().encode("utf-16"),
    "latin-1": b'{"task_type": "caf\xe9"}',
    "an overlong encoding": b'{"task_type": "\xc0\x80"}',
    "a raw NUL": b'{"task_type": "\x00"}',
    "raw control characters": b'{"task_type": "a\x01b"}',
    "binary": bytes(range(256)),
    "a gzip header": b"\x1f\x8b\x08\x00" + b"\x00" * 20,
    "deep arrays": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep parameters": arguments("[" * 70 + "]" * 70),
    "unclosed arrays": b"[" * DEEP,
    "a duplicate key": b'{"task_type": "shop.add", "task_type": "shop.mail", "parameters": {}}',
    "a duplicate that hides an abyss": b'{"a": ' + b"[" * 1010 + b"]" * 1010 + b', "a": 1}',
    "a duplicate that hides a shallow": b'{"a": ' + b"[" * 900 + b"]" * 900 + b', "a": 1}',
    "a duplicate parameter": b'{"task_type": "shop.add", "parameters": {"a": 1, "a": 2}}',
    "a duplicate spelled differently": (
        b'{"task_type": "shop.add", "parameters": {"a":1,"\\u0061":2}}'
    ),
    "a duplicate after a colon": b'{"task_type": "shop.add:", "task_type" : "shop.add"}',
    "XML": b"<?xml version='1.0'?><task/>",
    "a form": b"task_type=shop.add&a=1",
    # JSON of another kind
    "null": b"null",
    "true": b"true",
    "a number": b"7",
    "a text": b'"shop.add"',
    "an array of numbers": b"[1, 2]",
    "an array of arrays": b"[[[]]]",
    "an array of nulls": b"[null, null]",
    "an empty object": b"{}",
    "a prototype": b'{"__proto__": {"admin": true}, "task_type": "shop.add"}',
    "a constructor": b'{"constructor": {"prototype": {}}, "task_type": "shop.add"}',
    # operators and templates
    "an operator for the type": b'{"task_type": {"$ne": null}}',
    "an operator for the queue": task(queue={"$gt": ""}),
    "an operator for the key": task(idempotency_key={"$ne": None}),
    "an operator beside": task(**{"$where": "sleep(1000)"}),
    "an operator for an argument": b'{"task_type": "shop.add", "parameters": {"a": {"$ne": 1}}}',
    "a list for the type": b'{"task_type": ["shop.add"]}',
    "a number for the type": b'{"task_type": 7}',
    "null for the type": b'{"task_type": null}',
    "an empty type": b'{"task_type": ""}',
    "a type with blanks": b'{"task_type": "shop add"}',
    "a type with a NUL": b'{"task_type": "shop.add\\u0000"}',
    "a long type": b'{"task_type": "' + b"x" * 100_000 + b'"}',
    "SQL as the type": b'{"task_type": "shop.add\'; DROP TABLE tasks; --"}',
    "a path as the type": b'{"task_type": "../../etc/passwd"}',
    "an attribute as the type": b'{"task_type": "shop.add.__globals__"}',
    # options out of bounds
    "a list for the parameters": task(parameters=[1]),
    "text for the parameters": task(parameters="a=1"),
    "null for the parameters": task(parameters=None),
    "an unknown option": task(colour="red"),
    "an unknown priority": task(priority="urgent"),
    "a number that is no priority": task(priority=99),
    "a negative delay": task(delay_seconds=-1),
    "an endless delay": task(delay_seconds=1e300),
    "text for the delay": task(delay_seconds="1"),
    "true for the delay": task(delay_seconds=True),
    "negative retries": task(max_retries=-1),
    "a fraction of a retry": task(max_retries=1.5),
    "too many retries": task(max_retries=10**12),
    "true for the retries": task(max_retries=True),
    "no time": task(timeout_seconds=0),
    "not a number": b'{"task_type": "shop.add", "parameters": {"a": 1}, "timeout_seconds": NaN}',
    "infinity": b'{"task_type": "shop.add", "parameters": {"a": 1}, "timeout_seconds": Infinity}',
    "an instant without an offset": task(run_at="2030-01-01T00:00:00"),
    "a day that does not exist": task(run_at="2030-02-30T00:00:00Z"),
    "a number for the instant": task(run_at=1_900_000_000),
    "words for the instant": task(run_at="tomorrow"),
    "a queue with a star": task(queue="*"),
    "a queue with a newline": task(queue="a\nb"),
    "a long key": task(unique_key="k" * 501),
    "a key with a NUL": task(lock="a\0b"),
    "too many tags": task(tags=[str(n) for n in range(51)]),
    "a tag that is no text": task(tags=[1]),
    "text for the tags": task(tags="a"),
    "a script for the callback": task(callback_url="javascript:alert(1)"),
    "a file for the callback": task(callback_url="file:///etc/passwd"),
    # arguments that no store may hold
    "an argument with a NUL": arguments('"a\\u0000b"'),
    "an argument's key with a NUL": arguments('{"a\\u0000b": 1}'),
    "a lone surrogate": arguments('"\\ud800"'),
    "an integer beyond 64 bits": arguments("9223372036854775809"),
    "an integer of 5000 digits": arguments("9" * 5000),
    "a negative integer beyond 64 bits": arguments("-9223372036854775809"),
    "a float beyond floats": arguments("1e999"),
    "an unknown argument": b'{"task_type": "shop.add", "parameters": {"a": 1, "c": 2}}',
    "a missing argument": b'{"task_type": "shop.add"}',
    "text for an integer": b'{"task_type": "shop.add", "parameters": {"a": "1"}}',
    "a float for an integer": b'{"task_type": "shop.add", "parameters": {"a": 1.5}}',
    "true for an integer": b'{"task_type": "shop.add", "parameters": {"a": true}}',
    "no object for the rest": (
        b'{"task_type": "shop.anything", "parameters": {"value": 1, "more": 5}}'
    ),
}  # fmt: skip

ACCEPTED: Final[dict[str, bytes]] = {
    "every plane of Unicode": arguments(json.dumps("é漢😀\U0010ffff\u202e", ensure_ascii=False)),
    "64 bits": arguments("[9223372036854775807, -9223372036854775808]"),
    "a colon in a key": arguments('{"a:b": ":", "c": "::"}'),
    "19 digits that are text": arguments('"1234567890123456789012"'),
    "an operator in free arguments": arguments('{"$ne": null}'),
    "an empty key": arguments('{"": {"": []}}'),
    "blanks around": b" \n\t" + task() + b"\r\n ",
    "the first instant": task(run_at="0001-01-01T00:00:00+23:59"),
    "the last instant": task(run_at="9999-12-31T23:59:60-23:59"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("hostile")
    with serve(make_app(f"sqlite:///{folder}/tasks.db", open_queues="js")) as live:
        yield live


def test_there_are_enough_of_them() -> None:
    assert len(REFUSED) >= 70


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_body_is_refused_and_stores_nothing(server: LiveServer, name: str) -> None:
    before = server.app.count()

    answer = server.admin.post(
        TASKS, content=REFUSED[name], headers={"Content-Type": "application/json"}
    )

    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "code", "id"} <= answer.json().keys()
    assert "Traceback" not in answer.text
    assert server.app.count() == before


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_looks_hostile_and_is_not_is_stored_and_shown_as_it_is(
    server: LiveServer, name: str
) -> None:
    body = ACCEPTED[name]

    answer = server.admin.post(TASKS, content=body, headers={"Content-Type": "application/json"})
    shown = server.admin.get(f"{TASKS}/{answer.json()['task_id']}")

    assert (answer.status_code, shown.status_code) == (201, 200), answer.text
    sent = json.loads(body)["parameters"]
    assert {name: shown.json()["parameters"][name] for name in sent} == sent


@pytest.mark.parametrize(
    "path",
    [
        f"{TASKS}/actions",
        "/api/v1/dead-letters/replay",
        "/api/v1/dead-letters/discard",
        "/api/v1/tokens",
        "/internal/workers/register",
        "/internal/workers/x/poll",
        "/internal/workers/x/result",
        "/internal/workers/x/heartbeat",
    ],
)
def test_no_other_endpoint_breaks_on_them_either(server: LiveServer, path: str) -> None:
    answers = {
        name: server.admin.post(path, content=body, headers={"Content-Type": "application/json"})
        for name, body in REFUSED.items()
    }

    assert {name: answer.text for name, answer in answers.items() if answer.is_server_error} == {}


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
     "application/json-patch+json", "application/xml", "json", "application/JSON ; charset=utf-8"],
)  # fmt: skip
def test_only_json_and_lines_are_read(server: LiveServer, kind: str) -> None:
    answer = server.admin.post(TASKS, content=task(), headers={"Content-Type": kind})

    assert answer.status_code == (201 if kind.startswith("application/JSON") else 415)


def test_no_line_of_a_stream_breaks_it(server: LiveServer) -> None:
    answers = {
        name: server.admin.post(
            TASKS, content=body, headers={"Content-Type": "application/x-ndjson"}
        )
        for name, body in REFUSED.items()
    }

    assert {name: answer.text for name, answer in answers.items() if answer.is_server_error} == {}


CROWDS: Final = {
    "/internal/workers/register": "{%s}",
    "/internal/workers/x/heartbeat": '{"reports": [{%s}]}',
    "/internal/workers/x/result": '{"error": {%s}}',
    "/api/v1/tokens": "{%s}",
    "/api/v1/tasks/actions": '{"filter": {%s}}',
    TASKS: '{"task_type": "shop.add", "tags": {%s}}',
}


@pytest.mark.parametrize("path", CROWDS)
def test_a_crowd_of_unknown_keys_does_not_block_the_server(server: LiveServer, path: str) -> None:
    crowd = ", ".join(f'"key{n}": {n}' for n in range(600_000))
    body = (CROWDS[path] % crowd).encode()
    before = time.process_time()

    answer = server.admin.post(path, content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code in {413, 422}
    assert len(answer.content) < 10_000
    assert time.process_time() - before < 1.5, "the server is a thread of this process"
