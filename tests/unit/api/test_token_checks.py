"""Tokens: shown once, kept as a hash, good until they are not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.record import Record
from holdfast.core.task import Priority
from holdfast.core.token import TOKEN, Bounds, RateLimit, Scope
from holdfast.errors import InvalidOption
from holdfast.stores.memory.store import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.tokens import TRUSTED_FOR, Tokens


class Counting(MemoryStore):
    """A store in memory that counts the looks at its tokens."""

    looks = 0

    async def records(self, kind: str, **given: Any) -> Sequence[Record]:
        self.looks += kind == TOKEN
        return await super().records(kind, **given)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock) -> AsyncIterator[Counting]:
    async with Counting(clock=clock) as store:
        yield store


@pytest.fixture
def tokens(store: Counting) -> Tokens:
    return Tokens(store)


async def test_a_tokens_text_is_its_id_and_256_random_bits(tokens: Tokens) -> None:
    token, text = await tokens.create("ci", ["submit"])

    match = re.fullmatch(r"hf_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", text)
    assert match is not None
    assert match[1] == token.id
    assert token.digest == hashlib.sha256(match[2].encode()).digest()
    assert match[2] not in repr(token)


async def test_a_good_token_is_known_by_its_text(tokens: Tokens) -> None:
    token, text = await tokens.create("ci", ["submit", Scope.READ], "90d")

    assert await tokens.check(text) == token
    assert token.scopes == {Scope.SUBMIT, Scope.READ}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text + "\n",
        lambda text: f" {text}",
        lambda text: text.upper(),
        lambda text: text.replace("hf_", "xx_"),
        lambda text: text[:20] + ("A" if text[20] != "A" else "B") + text[21:],
        lambda text: text[:3] + "0" * 16 + text[19:],
        lambda text: text[:20] + "é" * 43,
    ],
)
async def test_anything_but_the_very_text_is_nobody(
    tokens: Tokens, spoil: Callable[[str], str]
) -> None:
    _, text = await tokens.create("ci", "read")
    await tokens.check(text)

    assert await tokens.check(spoil(text)) is None


async def test_a_token_expires_by_the_stores_clock(tokens: Tokens, clock: FakeClock) -> None:
    _, text = await tokens.create("ci", "read", "0.5s")
    assert await tokens.check(text) is not None

    clock.advance(0.5)

    fresh = Tokens(tokens._store)
    assert await fresh.check(text) is None
    assert not await fresh.any_valid()


async def test_a_revoked_token_is_refused_at_once_where_it_was_revoked(tokens: Tokens) -> None:
    token, text = await tokens.create("ci", "read")
    assert await tokens.check(text) is not None

    assert await tokens.revoke(token.id)

    assert await tokens.check(text) is None
    assert not await tokens.good([token.id])
    assert not await tokens.revoke(token.id)


async def test_a_token_in_use_is_looked_up_once_a_second_at_most(
    tokens: Tokens, store: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("holdfast.tokens.time.monotonic", lambda: now)
    _, text = await tokens.create("ci", "read")

    for _ in range(100):
        await tokens.check(text)
    once = store.looks
    now += TRUSTED_FOR
    await tokens.check(text)

    assert (once, store.looks) == (1, 2)


async def test_a_lookup_under_way_does_not_bring_a_revoked_token_back(store: Counting) -> None:
    tokens = Tokens(store)
    token, text = await tokens.create("ci", "read")
    look = store.records

    async def revoked_meanwhile(kind: str, **given: Any) -> Sequence[Record]:
        found = await look(kind, **given)
        store.records = look  # type: ignore[method-assign] # a race, made to happen
        await tokens.revoke(token.id)
        return found

    store.records = revoked_meanwhile  # type: ignore[method-assign] # see above
    await tokens.check(text)

    assert await tokens.check(text) is None


@pytest.mark.parametrize(
    ("name", "scopes", "expires", "sentence"),
    [
        ("ci", "amdin", None, "Did you mean 'admin'"),
        ("ci", [], None, "expected at least one"),
        ("ci", "read", "soon", "expires: expected a duration"),
        ("ci", "read", 0, "more than 0 seconds"),
        ("x" * 201, "read", None, "name: expected 200 characters"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    tokens: Tokens, name: str, scopes: str | list[str], expires: str | None, sentence: str
) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        await tokens.create(name, scopes, expires)

    assert not await tokens.list()


async def test_a_token_is_bound_in_the_words_of_people(tokens: Tokens) -> None:
    token, text = await tokens.create(
        "ci", "submit", owner="anna", queues="mail", names=["b", "a"], max_priority="low",
        rate="100/m", created_by="cli",
    )  # fmt: skip

    assert token.bounds == Bounds(
        owner="anna",
        queues=frozenset({"mail"}),
        names=frozenset({"a", "b"}),
        max_priority=Priority.LOW,
        rate=RateLimit(100, 60),
    )
    assert (str(token.bounds.rate), token.created_by) == ("100/1m", "cli")
    assert await tokens.check(text) == token


@pytest.mark.parametrize(
    ("scopes", "bounds", "option"),
    [
        ("submit", {"owner": ""}, "owner"),
        ("submit", {"queues": []}, "queues"),
        ("submit", {"names": ["a b"]}, "names[0]"),
        ("submit", {"max_priority": "urgent"}, "max_priority"),
        ("submit", {"rate": "100"}, "rate"),
        ("submit", {"rate": "0/1m"}, "rate"),
        ("submit", {"rate": "5/0.5s"}, "rate"),
        ("submit", {"rate": "100001/1m"}, "rate"),
        ("submit", {"queue": "mail"}, "queue"),
        ("admin", {"owner": "anna"}, "owner"),
        (["admin", "read"], {"queues": "mail"}, "queues"),
        ("worker", {"owner": "anna"}, "owner"),
        (["worker", "read"], {"names": "a"}, "names"),
    ],
)
async def test_a_bound_that_makes_no_sense_is_refused(
    tokens: Tokens, scopes: list[str], bounds: Any, option: str
) -> None:
    with pytest.raises(InvalidOption) as refused:
        await tokens.create("ci", scopes, **bounds)

    assert refused.value.option == option
    assert not await tokens.list()


async def test_a_tokens_use_is_noted_once_a_minute_and_keeps_its_bounds(
    tokens: Tokens, store: Counting, clock: FakeClock
) -> None:
    token, text = await tokens.create("ci", "read", owner="anna", created_by="cli")
    assert token.last_used_at is None
    clock.advance(10)
    first = clock.now

    assert await tokens.check(text)
    await tokens.noted()
    clock.advance(10)
    assert await tokens.check(text)
    await tokens.noted()

    (seen,) = await tokens.list()
    assert seen == replace(token, last_used_at=first)


async def test_a_wrong_secret_is_no_use_of_a_token(tokens: Tokens) -> None:
    _, text = await tokens.create("ci", "read")

    assert await tokens.check(text[:-43] + "A" * 43) is None
    await tokens.noted()

    (seen,) = await tokens.list()
    assert seen.last_used_at is None
