"""For stores without the ability `transactions`: they say so, in words that help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from holdfast.core.attempt import Claim
from holdfast.core.task import NewTask
from holdfast.errors import Unsupported


class NoTransactions:
    """`ports.store.TransactionStore`, refused."""

    def transaction(self, claim: Claim, *, blocking: bool = False) -> NoReturn:
        raise _unsupported("ctx.transaction()")

    def add_within(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> NoReturn:
        raise _unsupported("options(connection=…)")

    async def add_within_async(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> NoReturn:
        raise _unsupported("options(connection=…)")


def _unsupported(what: str) -> Unsupported:
    return Unsupported(
        f"{what} needs a store that shares a database with your data: sqlite:///, postgresql:// or "
        "mongodb://. This one has no transactions; nothing was done."
    )
