"""Says what a driver error means. None of them leaves the store as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    ExecutionTimeout,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)

from holdfast.errors import StoreError, StoreRefused, StoreUnavailable

_AWAY: Final = frozenset({
    6, 7, 24, 43, 46, 50, 64, 89, 91, 100, 112, 117, 133, 134, 175, 189, 202, 216, 217, 225, 237,
    239, 246, 251, 261, 262, 263, 264, 267, 279, 290, 317, 355, 358, 365, 371, 402, 407, 433, 449,
    9001, 10107, 11600, 11601, 11602, 13388, 13435, 13436, 14031, 20250,
})  # fmt: skip
"""Codes that say: not now. Network, time limits, elections, conflicts of writers, cursors that an
election or a restart took along, a full disk or cache. What is missing here costs more than a wait:
a worker that is told of a mistake gives up the result it wanted to save.
"""
_REFUSED: Final = frozenset({8000, 11, 13, 18, 31, 33, 334})
"""Codes about who we are and what we may do."""
_TOO_LARGE: Final = frozenset({10334, 17419})
_APPENDICES: Final = (", full error:", ", Timeout:", " (configured timeouts:")
_LABELS: Final = (
    "TransientTransactionError", "RetryableWriteError", "RetryableError", "SystemOverloadedError",
)  # fmt: skip


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Raise our errors instead of the driver's."""
    try:
        yield
    except PyMongoError as error:
        ours = explain(error, where)
        if ours is error:
            raise
        raise ours from error


def explain(error: PyMongoError, where: str) -> Exception:
    """The error to raise instead; the same one if it is a mistake of ours."""
    if is_away(error):
        return StoreUnavailable(
            f"{where} cannot work now ({what(error)}). What was under way may or may not have been"
            " written. Nothing needs restarting: it is tried again when the server is back."
        )
    if isinstance(error, ConfigurationError):
        return StoreError(f"{where}: {what(error)}. Check the URL.")
    if isinstance(error, OperationFailure) and error.code in _REFUSED:
        return StoreRefused(f"{where}: {what(error)}. Check the URL, the account and its rights.")
    if isinstance(error, DocumentTooLarge):
        return StoreError(f"{where}: {what(error)}. Nothing was written.")
    if isinstance(error, BulkWriteError) and _codes(error) & _TOO_LARGE:
        return StoreError(
            f"{where}: a task's document would be larger than the 16 MiB that MongoDB allows. It "
            "was not written. Lower `max_payload` or `max_result`: they share one document."
        )
    if isinstance(error, InvalidOperation) and "after close" in str(error):
        return StoreError(f"the store {where} was closed meanwhile")
    return error


def is_away(error: PyMongoError) -> bool:
    """Whether the same call may well succeed later."""
    if isinstance(error, ConnectionFailure | ExecutionTimeout | WTimeoutError):
        return True
    if any(error.has_error_label(label) for label in _LABELS):
        return True
    if isinstance(error, BulkWriteError):
        return bool(_codes(error) & _AWAY) or bool(error.details.get("writeConcernErrors"))
    return isinstance(error, OperationFailure) and error.code in _AWAY


def _codes(error: BulkWriteError) -> set[int]:
    return {problem.get("code", 0) for problem in error.details.get("writeErrors", ())}


def what(error: BaseException) -> str:
    """Its first words: the driver appends whole topologies and documents."""
    text = str(error).strip()
    for appendix in _APPENDICES:
        text = text.partition(appendix)[0]
    return text.splitlines()[0] if text else type(error).__name__
