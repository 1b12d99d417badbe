"""The conformance suites: every promise of `ports/store.py`, tried on a store of yours.

    class TestMyStore(StoreConformance):
        @pytest.fixture
        async def store(self, clock: FakeClock) -> AsyncIterator[Store]:
            async with MyStore(clock=clock) as store:
                yield store

One file per promise; a store under construction may start with one suite and add the rest. Needs
pytest and pytest-asyncio in auto mode.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            "base",
            "cancelling",
            "capabilities",
            "claiming",
            "deferring",
            "delaying",
            "draining",
            "edges",
            "expiring",
            "fencing",
            "idempotency",
            "listing",
            "locking",
            "many_processes",
            "numbers",
            "opening",
            "ordering",
            "pausing",
            "pruning",
            "recording",
            "recounting",
            "reporting",
            "requeueing",
            "rescuing",
            "settling",
            "standing",
            "submitting",
            "gating",
            "latching",
            "succeeding",
            "transacting",
            "unfit",
            "unique",
            "unlocking",
        )
    )
)

from holdfast.testing.suites.base import StoreSuite  # noqa: E402 - after the line above
from holdfast.testing.suites.cancelling import CancelSuite  # noqa: E402
from holdfast.testing.suites.capabilities import CapabilitySuite  # noqa: E402
from holdfast.testing.suites.claiming import ClaimSuite  # noqa: E402
from holdfast.testing.suites.deferring import DeferSuite  # noqa: E402
from holdfast.testing.suites.delaying import DelaySuite  # noqa: E402
from holdfast.testing.suites.draining import DrainSuite  # noqa: E402
from holdfast.testing.suites.edges import EdgeSuite  # noqa: E402
from holdfast.testing.suites.events import EventSuite  # noqa: E402
from holdfast.testing.suites.expiring import ExpirySuite  # noqa: E402
from holdfast.testing.suites.fencing import FenceSuite  # noqa: E402
from holdfast.testing.suites.gating import GateSuite  # noqa: E402
from holdfast.testing.suites.idempotency import IdempotencySuite  # noqa: E402
from holdfast.testing.suites.latching import LatchSuite  # noqa: E402
from holdfast.testing.suites.listing import FilterSuite, PageSuite  # noqa: E402
from holdfast.testing.suites.locking import LockSuite  # noqa: E402
from holdfast.testing.suites.many_processes import ManyProcessesSuite  # noqa: E402
from holdfast.testing.suites.numbers import StatsSuite  # noqa: E402
from holdfast.testing.suites.opening import OpenSuite  # noqa: E402
from holdfast.testing.suites.ordering import OrderSuite, StarvationSuite  # noqa: E402
from holdfast.testing.suites.pausing import PauseSuite  # noqa: E402
from holdfast.testing.suites.pruning import PruneSuite  # noqa: E402
from holdfast.testing.suites.recording import CommitSuite, JournalSuite, RecordSuite  # noqa: E402
from holdfast.testing.suites.recounting import HistorySuite  # noqa: E402
from holdfast.testing.suites.reporting import ReportSuite  # noqa: E402
from holdfast.testing.suites.requeueing import DiscardSuite, RequeueSuite  # noqa: E402
from holdfast.testing.suites.rescuing import RescueSuite, WorkerSuite  # noqa: E402
from holdfast.testing.suites.settling import SettleSuite  # noqa: E402
from holdfast.testing.suites.sharing import ShareSuite  # noqa: E402
from holdfast.testing.suites.standing import StandingSuite  # noqa: E402
from holdfast.testing.suites.submitting import SubmitSuite  # noqa: E402
from holdfast.testing.suites.succeeding import SuccessionSuite  # noqa: E402
from holdfast.testing.suites.transacting import TransactionSuite  # noqa: E402
from holdfast.testing.suites.unfit import UnfitSuite  # noqa: E402
from holdfast.testing.suites.unique import UniqueKeySuite  # noqa: E402
from holdfast.testing.suites.unlocking import UnlockSuite  # noqa: E402


class StoreConformance(
    OpenSuite,
    SubmitSuite,
    UniqueKeySuite,
    IdempotencySuite,
    ClaimSuite,
    OrderSuite,
    StarvationSuite,
    DelaySuite,
    ExpirySuite,
    CapabilitySuite,
    PauseSuite,
    LockSuite,
    UnlockSuite,
    GateSuite,
    ShareSuite,
    LatchSuite,
    DeferSuite,
    SuccessionSuite,
    SettleSuite,
    UnfitSuite,
    FenceSuite,
    ReportSuite,
    HistorySuite,
    CancelSuite,
    RequeueSuite,
    DiscardSuite,
    PruneSuite,
    WorkerSuite,
    RescueSuite,
    DrainSuite,
    PageSuite,
    FilterSuite,
    StandingSuite,
    StatsSuite,
    RecordSuite,
    CommitSuite,
    JournalSuite,
    EventSuite,
    EdgeSuite,
    TransactionSuite,
    ManyProcessesSuite,
):
    """Everything a store promises."""


__all__ = [
    "CancelSuite",
    "CapabilitySuite",
    "ClaimSuite",
    "CommitSuite",
    "DeferSuite",
    "DelaySuite",
    "DiscardSuite",
    "DrainSuite",
    "EdgeSuite",
    "EventSuite",
    "ExpirySuite",
    "FenceSuite",
    "FilterSuite",
    "GateSuite",
    "HistorySuite",
    "IdempotencySuite",
    "JournalSuite",
    "LatchSuite",
    "LockSuite",
    "ManyProcessesSuite",
    "OpenSuite",
    "OrderSuite",
    "PageSuite",
    "PauseSuite",
    "PruneSuite",
    "RecordSuite",
    "ReportSuite",
    "RequeueSuite",
    "RescueSuite",
    "SettleSuite",
    "ShareSuite",
    "StandingSuite",
    "StarvationSuite",
    "StatsSuite",
    "StoreConformance",
    "StoreSuite",
    "SubmitSuite",
    "SuccessionSuite",
    "TransactionSuite",
    "UnfitSuite",
    "UniqueKeySuite",
    "UnlockSuite",
    "WorkerSuite",
]
