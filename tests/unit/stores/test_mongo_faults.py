"""What a driver's error means to those who call the store."""

from __future__ import annotations

import pytest
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ConfigurationError,
    DuplicateKeyError,
    ExecutionTimeout,
    InvalidOperation,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WTimeoutError,
)

from holdfast.errors import StoreError, StoreRefused, StoreUnavailable
from holdfast.stores.mongo.faults import explained
from holdfast.stores.mongo.within import as_conflict

WHERE = "mongodb://host/db"


def labelled(label: str) -> PyMongoError:
    error = OperationFailure("x", code=1)
    error._add_error_label(label)
    return error


AWAY = [
    AutoReconnect("reset"),
    ServerSelectionTimeoutError("no server, Timeout: 5s, Topology Description: <…>"),
    NotPrimaryError("stepped down"),
    ExecutionTimeout("too slow", code=50),
    WTimeoutError("no majority", code=64),
    OperationFailure("write conflict", code=112),
    OperationFailure("out of disk space", code=14031),
    labelled("TransientTransactionError"),
    labelled("RetryableWriteError"),
    BulkWriteError({"writeErrors": [{"code": 11600}], "writeConcernErrors": []}),
    BulkWriteError({"writeErrors": [], "writeConcernErrors": [{"code": 64}]}),
]


@pytest.mark.parametrize("error", AWAY, ids=lambda error: f"{type(error).__name__}-{error}"[:40])
def test_what_may_pass_is_unavailable(error: PyMongoError) -> None:
    with (
        pytest.raises(StoreUnavailable, match=r"mongodb://host/db cannot work now"),
        explained(WHERE),
    ):
        raise error


@pytest.mark.parametrize("code", [18, 13])
def test_an_account_that_may_not_is_refused_and_told_what_to_check(code: int) -> None:
    with pytest.raises(StoreRefused, match="Check the URL, the account"), explained(WHERE):
        raise OperationFailure("not authorized", code=code)


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("unknown option"),
        InvalidOperation("Cannot use MongoClient after close"),
    ],
    ids=str,
)
def test_what_will_not_pass_is_a_store_error_that_says_what_to_do(error: PyMongoError) -> None:
    with pytest.raises(StoreError) as raised, explained(WHERE):
        raise error

    assert not isinstance(raised.value, StoreUnavailable)
    assert WHERE in str(raised.value)


@pytest.mark.parametrize(
    "error",
    [
        OperationFailure("unknown operator", code=2),
        BulkWriteError({"writeErrors": [{"code": 11000}], "writeConcernErrors": []}),
    ],
    ids=str,
)
def test_a_mistake_of_ours_stays_what_it_is(error: PyMongoError) -> None:
    with pytest.raises(PyMongoError) as raised, explained(WHERE):
        raise error

    assert raised.value is error


def test_the_drivers_appendices_are_left_out() -> None:
    with pytest.raises(StoreUnavailable) as raised, explained(WHERE):
        raise AWAY[1]

    assert "(no server)" in str(raised.value)


def test_a_key_taken_inside_somebodys_transaction_may_be_tried_again() -> None:
    details = {"writeErrors": [{"index": 0, "code": 11000}], "writeConcernErrors": []}

    for error in (DuplicateKeyError("E11000"), BulkWriteError(details)):
        assert as_conflict(error).has_error_label("TransientTransactionError")
