"""Tokens: kept without their secret, with the store's times, and revoked once and for ever."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace
from datetime import timedelta

from holdfast.core.task import Priority
from holdfast.core.token import Bounds, RateLimit, Scope, Token, as_document
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.suites.base import OpenAnother, StoreSuite
from holdfast.testing.suites.races import at_once

DIGEST = hashlib.sha256(b"a secret").digest()
BOUNDS = Bounds(
    owner="Ännchen 🚀",
    queues=frozenset({"a", "b"}),
    names=frozenset({"shop.mail"}),
    max_priority=Priority.NORMAL,
    rate=RateLimit(5, 90),
)


async def _add(
    store: Store, name: str = "ci", *scopes: Scope, expires_in: float | None = None
) -> Token:
    return await store.add_token(
        id=secrets.token_hex(8),
        name=name,
        scopes=frozenset(scopes or {Scope.SUBMIT}),
        digest=DIGEST,
        expires_in=expires_in,
    )


class TokenSuite(StoreSuite):
    """`TokenStore`."""

    async def test_the_time_is_the_stores(self, store: Store, clock: FakeClock) -> None:
        assert await store.now() == clock.now

    async def test_a_token_comes_back_as_it_was_made(self, store: Store, clock: FakeClock) -> None:
        made = await store.add_token(
            id="00ff00ff00ff00ff",
            name="Grüße 🚀",
            scopes=frozenset(Scope),
            digest=bytes(range(32)),
            expires_in=90.5,
            document=as_document(BOUNDS, "cli"),
        )

        assert made == Token(
            id="00ff00ff00ff00ff",
            name="Grüße 🚀",
            scopes=frozenset(Scope),
            digest=bytes(range(32)),
            created_at=clock.now,
            expires_at=clock.now + timedelta(seconds=90.5),
            revoked_at=None,
            bounds=BOUNDS,
            created_by="cli",
        )
        assert await store.token(made.id) == made

    async def test_a_token_without_a_document_is_bound_to_nothing(self, store: Store) -> None:
        made = await _add(store)

        assert (made.bounds, made.created_by, made.last_used_at) == (Bounds(), None, None)

    async def test_another_document_changes_nothing_else(
        self, store: Store, clock: FakeClock
    ) -> None:
        made, other = await _add(store), await _add(store)
        used = clock.now

        await store.rewrite_token(made.id, as_document(BOUNDS, None, used))
        await store.rewrite_token("0" * 16, as_document(BOUNDS, None, used))

        changed = replace(made, bounds=BOUNDS, last_used_at=used)
        assert list(await store.tokens()) == [other, changed]

    async def test_a_token_without_an_end_never_expires(
        self, store: Store, clock: FakeClock
    ) -> None:
        made = await _add(store)

        assert made.expires_at is None
        assert made.is_valid(clock.now + timedelta(days=40_000))

    async def test_a_token_is_good_until_the_instant_of_its_end(
        self, store: Store, clock: FakeClock
    ) -> None:
        made = await _add(store, expires_in=10.0)

        clock.advance(9.999_999)
        assert made.is_valid(await store.now())
        clock.advance(0.000_001)
        assert not made.is_valid(await store.now())

    async def test_making_a_token_again_changes_nothing(
        self, store: Store, clock: FakeClock
    ) -> None:
        made = await _add(store, "first", expires_in=10.0)
        clock.advance(5)

        again = await store.add_token(
            id=made.id, name="first", scopes=made.scopes, digest=DIGEST, expires_in=10.0
        )

        assert again == made
        assert list(await store.tokens()) == [made]

    async def test_tokens_are_listed_newest_first_whatever_their_state(
        self, store: Store, clock: FakeClock
    ) -> None:
        old, revoked, new = [await _add(store, name) for name in ("old", "revoked", "new")]
        await store.revoke_token(revoked.id)
        clock.advance(60)

        assert [token.id for token in await store.tokens()] == [new.id, revoked.id, old.id]

    async def test_a_revoked_token_says_since_when(self, store: Store, clock: FakeClock) -> None:
        made = await _add(store)
        clock.advance(7)

        assert await store.revoke_token(made.id) is True

        found = await store.token(made.id)
        assert found is not None
        assert found.revoked_at == clock.now
        assert not found.is_valid(clock.now)

    async def test_a_token_is_revoked_once(self, store: Store, clock: FakeClock) -> None:
        made = await _add(store)
        await store.revoke_token(made.id)
        clock.advance(1)

        assert await store.revoke_token(made.id) is False

        found = await store.token(made.id)
        assert found is not None
        assert found.revoked_at == clock.now - timedelta(seconds=1)

    async def test_of_many_that_revoke_a_token_one_did_it(self, store: Store) -> None:
        made = await _add(store)

        assert sorted(await at_once(8, lambda _: store.revoke_token(made.id))) == [
            *[False] * 7,
            True,
        ]

    async def test_an_unknown_token_is_none(self, store: Store) -> None:
        await _add(store)

        for text in ("", "00ff00ff00ff00ff", "'; --", "\0", "\ud800", "x" * 5000):
            assert await store.token(text) is None
            assert await store.revoke_token(text) is False

    async def test_another_handle_knows_the_token_and_its_end(
        self, store: Store, open_another: OpenAnother
    ) -> None:
        made = await _add(store, "ci", Scope.READ, Scope.WORKER)
        other = await open_another()

        assert await other.token(made.id) == made
        await other.revoke_token(made.id)
        assert await store.revoke_token(made.id) is False
