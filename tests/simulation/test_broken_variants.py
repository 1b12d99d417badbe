"""The simulation can fail: each way to break the engine is found, and for the right reason."""

from __future__ import annotations

import pytest
from tests.kit.simulation import Setup, run_history
from tests.kit.simulation.actors import Rescuer, Worker
from tests.simulation import gate_variants, variants

from holdfast.stores.memory import MemoryStore

SEEDS = 2000

STORES: list[tuple[type[MemoryStore], set[str]]] = [
    (variants.NoFence, {"stale_write", "recorded_twice"}),
    (variants.NoFenceOnReports, {"stale_report"}),
    (variants.NoUniqueIndex, {"unique_key"}),
    (variants.NoIdempotencyIndex, {"idempotency_key", "commit"}),
    (variants.IdempotencyWithoutFingerprint, {"idempotency_key", "commit"}),
    (variants.NoLockExclusivity, {"lock"}),
    (variants.LocksLostOnRetry, {"lock", "fence", "standing"}),
    (variants.FencesStartOver, {"fence"}),
    (variants.ForgetfulAdd, {"lost"}),
    (variants.SettlesTwice, {"recorded_twice", "charge"}),
    (variants.SilentRefusals, {"refusal_recorded"}),
    (variants.ForgetsReleasedAttempts, {"attempt_numbers"}),
    (variants.NoAging, {"rank"}),
    (variants.QueueByQueue, {"order", "next_due"}),
    (variants.ClaimsFromPausedQueues, {"paused_started"}),
    (variants.IgnoresCapabilities, {"capability"}),
    (variants.NeverExpires, {"expired_started", "stuck", "gate"}),
    (variants.StartsTooEarly, {"started_early", "next_due"}),
    (variants.CancelLeavesItInLine, {"cancelled_started"}),
    (variants.RetryWinsOverCancel, {"settle"}),
    (variants.BuriesWithoutLooking, {"live_worker_buried"}),
    (variants.OrphansOfTheLiving, {"orphans"}),
    (variants.BuriedMayClaim, {"beat", "dead_worker_claimed", "orphans"}),
    (variants.EndlessRetries, {"retry_limit"}),
    (variants.PromisesWorkTooLate, {"next_due"}),
    (variants.IgnoresVersions, {"commit", "record"}),
    (variants.WritesHalfACommit, {"commit"}),
    (variants.ForgetsItsCommits, {"commit", "record"}),
    (variants.FollowUpsOfTheLate, {"commit", "record"}),
    (gate_variants.OneMorePasses, {"limit"}),
    (gate_variants.CancelledHoldersStay, {"stays", "gates"}),
    (gate_variants.KeepsWhatItPassed, {"stays", "gates"}),
    (gate_variants.LetsGoTwice, {"limit", "share", "breaker", "rate", "gates"}),
    (gate_variants.ForgetsStarts, {"rate"}),
    (gate_variants.CountsStartsAtTheEnd, {"rate"}),
    (gate_variants.OpensTooEarly, {"latch"}),
    (gate_variants.CancelsOpenNothing, {"stays", "latch"}),
    (gate_variants.CountsARequeuedTaskOnce, {"latch", "gates"}),
    (gate_variants.StandsBehindNothing, {"latch", "untold"}),
    (gate_variants.OpenForGood, {"latch"}),
    (gate_variants.HurriesOnlyRetries, {"requeue"}),
    (gate_variants.ByArrival, {"gate_order"}),
    (gate_variants.ByAgeBehindShares, {"rank"}),
    (gate_variants.RaisedForNobody, {"stays"}),
    (gate_variants.DeafToNewSubmits, {"stays", "limit", "share", "breaker"}),
    (gate_variants.HoldsWhileItWaits, {"stays", "latch"}),
    (gate_variants.OvertakesTheRunning, {"lock"}),
    (gate_variants.OvertakesNobody, {"gate_order"}),
    (gate_variants.NeverLooksAgain, {"stays", "gates"}),
    (gate_variants.PromisesRatesTooLate, {"next_due"}),
    (gate_variants.CancelsTellNobody, {"untold"}),
]
RESCUERS: list[tuple[type[Rescuer], set[str]]] = [
    (variants.RescuesByTime, {"live_worker_rescued"}),
    (variants.MeasuresSilenceTooEarly, {"live_worker_buried"}),
    (variants.ForgivesEveryCrash, {"crash_limit"}),
    (variants.NeverRescues, {"stuck"}),
]
WORKERS: list[tuple[type[Worker], set[str]]] = [
    (variants.ForgetsUnknownClaims, {"stuck"}),
    (variants.SavesOnlyOnce, {"stuck"}),
]


def first_rule_broken(setup: Setup) -> str | None:
    for seed in range(SEEDS):
        verdict = run_history(seed, setup)
        if verdict.broken:
            return verdict.broken[0].rule
    return None


@pytest.mark.parametrize(
    ("store", "rules"), STORES, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_broken_store_turns_the_simulation_red(store: type[MemoryStore], rules: set[str]) -> None:
    found = first_rule_broken(Setup(store=lambda clock: store(clock=clock)))

    assert found in rules


@pytest.mark.parametrize(
    ("rescuer", "rules"), RESCUERS, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_broken_rescuer_turns_the_simulation_red(rescuer: type[Rescuer], rules: set[str]) -> None:
    found = first_rule_broken(Setup(rescuer=rescuer))

    assert found in rules


@pytest.mark.parametrize(
    ("worker", "rules"), WORKERS, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_broken_worker_turns_the_simulation_red(worker: type[Worker], rules: set[str]) -> None:
    found = first_rule_broken(Setup(worker=worker))

    assert found in rules


def test_what_the_broken_rescuers_are_made_from_stays_green() -> None:
    setup = Setup(rescuer=variants.PlainRescuer)

    assert all(not run_history(seed, setup).broken for seed in range(200))
