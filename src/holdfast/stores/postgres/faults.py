"""Says what a driver error means. None of them leaves the store as it is."""

from __future__ import annotations

import random
from typing import Final

import asyncpg

from holdfast.errors import (
    HoldfastError,
    IdempotencyConflict,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    WorkerGone,
)

WORKER_GONE: Final = "HF001"
IDEMPOTENCY_CONFLICT: Final = "HF002"
_AGAIN: Final = frozenset({"40001", "40P01", "55P03"})
"""Serialization failure, deadlock, lock not available: nothing was written, and it may go now."""
_AWAY: Final = frozenset({
    "08000", "08001", "08003", "08004", "08006", "08007", "08P01",
    "53000", "53100", "53200", "53300", "57000", "57P01", "57P02", "57P03", "57P05", "58000",
    "58030", "25006", "57014", "25P03", "25P04",
})  # fmt: skip
_TRIES: Final = 6
LOST: Final = (
    OSError, EOFError, TimeoutError, asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # used between the server's farewell and the end of the connection
)  # fmt: skip


def may_go_now(error: BaseException) -> bool:
    """Whether the same call may well succeed if it is repeated at once."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in _AGAIN


def is_lost(error: BaseException) -> bool:
    """Whether the connection it happened on is of no more use."""
    if isinstance(error, asyncpg.PostgresError):
        return error.sqlstate in _AWAY
    return not isinstance(error, HoldfastError)


class Patience:
    """Whether a call that failed is made again at once.

    If others were in the way, a few times. If a connection broke that there was, once, and only
    calls that are safe to repeat: it may have rested while the server was restarted, and whoever
    submits next must not suffer for it. Not if there was no connection to be had, nor after a wait.
    """

    def __init__(self, *, repeats: bool) -> None:
        self.connected = False
        self._repeats = repeats
        self._failures = 0

    def allows(self, error: BaseException) -> bool:
        self._failures += 1
        if may_go_now(error):
            return self._failures < _TRIES
        again = self.connected and self._repeats and is_lost(error)
        self._repeats = self.connected = False
        return again and not isinstance(error, TimeoutError)

    def pause(self) -> float:
        """Seconds, random, so that those who were in each other's way part."""
        return random.uniform(0.0, 0.02 * self._failures)  # noqa: S311 - no secret


def explain(error: BaseException, where: str, worker: str = "") -> BaseException:
    """The error to raise instead; the same one if it is a mistake of ours."""
    if isinstance(error, asyncpg.PostgresError):
        return _explain(error, where, worker)
    if isinstance(error, asyncpg.ClientConfigurationError):
        return StoreError(f"{where}: {_what(error)}. Check the URL.")
    if isinstance(error, LOST):
        return StoreUnavailable(
            f"{where} does not answer ({_what(error)}). What was under way may or may not have been"
            " written. Nothing needs restarting: it is tried again when the server is back."
        )
    return error


def _explain(error: asyncpg.PostgresError, where: str, worker: str) -> BaseException:
    state = error.sqlstate
    if state == WORKER_GONE:
        return WorkerGone(worker)
    if state == IDEMPOTENCY_CONFLICT:
        return IdempotencyConflict(error.detail or "", error.hint or "")
    if state in _AGAIN:
        return StoreUnavailable(
            f"{where}: others were in the way ({_what(error)}). Nothing was written; try again."
        )
    if state in _AWAY:
        return StoreUnavailable(
            f"{where} cannot work now ({_what(error)}). What was under way may or may not have been"
            " written. Nothing needs restarting."
        )
    if state in ("3D000", "28000", "28P01", "42501", "3F000"):
        return StoreRefused(f"{where}: {_what(error)}. Check the URL, the account and its rights.")
    return error


def _what(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
