"""`POST /v1/tasks/execute`: who may call, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.server.live import LiveServer, serve
from tests.integration.timers.app import (
    ROUTE,
    SECRET,
    Probe,
    free_port,
    target_at,
    timer_settings,
)
from tests.kit.servers.cloud_tasks import CloudTasks

from holdfast.testing.app import MemoryApp
from holdfast.testing.clock import FakeClock
from holdfast.timers.signing import sign

ACCOUNT = "caller@shop.example"
AUDIENCE = "https://shop.example"
OLD = "the secret of last year, long"


class World(NamedTuple):
    """A service, a server, and what is fired there."""

    cloud: CloudTasks
    server: LiveServer
    probe: Probe

    def post(self, token: str, **headers: str) -> httpx.Response:
        return self.server.client().post(ROUTE, json={"token": token}, headers=headers)

    def after(self, seconds: float) -> datetime:
        return self.cloud.now + timedelta(seconds=seconds)


@pytest.fixture
def world(cloud: CloudTasks, clock: FakeClock, request: pytest.FixtureRequest) -> Iterator[World]:
    """With the words of `timer_url` that the test gives as its parameter."""
    with make_world(cloud, clock, **getattr(request, "param", {})) as made:
        yield made


@contextmanager
def make_world(cloud: CloudTasks, clock: FakeClock, **words: str) -> Iterator[World]:
    """A server whose timers are those of this service; `words` are of its `timer_url`."""
    port = free_port()
    if "oidc" in words:
        words["certs"] = cloud.identity.certs_url
    url = cloud.timer_url(target_at(port), **words)
    app = MemoryApp(clock=clock, **timer_settings(url, timer_previous_secret=OLD))
    probe = Probe(app)
    with serve(app, port=port) as server:
        yield World(cloud, server, probe)


def test_a_timer_is_called_at_its_instant(world: World) -> None:
    at = world.after(90)

    world.probe.arm("probe:1", at)
    world.cloud.advance(3600)

    assert world.probe.fired == [("probe:1", at)]
    assert [call.status for call in world.cloud.state.calls] == [200]
    assert world.cloud.names() == []


def test_a_hundred_days_are_crossed_in_hops(world: World) -> None:
    at = world.after(100 * 86_400)

    world.probe.arm("probe:1", at)
    world.cloud.advance(timedelta(days=101))

    assert world.probe.fired == [("probe:1", at)]
    assert len(world.cloud.state.calls) == 4


def test_what_fails_is_503_and_is_called_again_with_backoff(world: World) -> None:
    world.probe.fails = 3
    at = world.after(90)

    world.probe.arm("probe:1", at)
    world.cloud.advance(3600)

    assert [call.status for call in world.cloud.state.calls] == [503, 503, 503, 200]
    assert world.probe.fired == [("probe:1", at + timedelta(seconds=0.7))]


def test_a_lost_timer_costs_one_sweep(world: World) -> None:
    world.probe.arm("probe:1", world.after(90))
    world.cloud.lose_everything()
    world.cloud.advance(151)

    world.server.app.wait_for(world.server.app.wake_ups.sweep())
    world.cloud.advance(1)

    assert [key for key, _ in world.probe.fired] == ["probe:1"]


def test_a_cancelled_timer_is_deleted_and_can_be_armed_again_for_the_same_instant(
    world: World,
) -> None:
    at, wake_ups = world.after(90), world.server.app.wake_ups
    world.probe.arm("probe:1", at)

    world.server.app.wait_for(wake_ups.cancel("probe:1"))
    assert world.cloud.names() == []
    world.probe.arm("probe:1", at)
    world.cloud.advance(100)

    assert world.probe.fired == [("probe:1", at)]


def test_stale_repeated_and_unknown_keys_are_200_and_do_nothing(world: World) -> None:
    at = world.after(3600)
    world.probe.arm("probe:1", at)

    answers = [world.post(sign([SECRET], key, at)) for key in ("probe:1", "probe:2", "other:1", "")]
    world.cloud.advance(3601)
    answers.append(world.post(sign([SECRET], "probe:1", at)))

    assert [answer.status_code for answer in answers] == [200] * 5
    assert [answer.json() for answer in answers] == [{"status": "ok"}] * 5
    assert world.probe.fired == [("probe:1", at)]


def test_a_call_signed_by_the_secret_before_holds_too(world: World) -> None:
    assert world.post(sign([OLD], "probe:1", world.after(0))).status_code == 200


def test_calls_of_others_are_401_with_a_reason(world: World) -> None:
    forged = sign(["another secret of somebody"], "probe:1", world.after(0))
    expired = sign([SECRET], "probe:1", world.after(-2 * 86_400))
    unsigned = sign([], "probe:1", world.after(0))
    world.probe.arm("probe:1", world.after(0))

    answers = [world.post(token) for token in (forged, expired, unsigned, "nonsense")]

    assert [answer.status_code for answer in answers] == [401] * 4
    assert [answer.json()["code"] for answer in answers] == [
        "invalid_timer_signature",
        "expired_timer",
        "unsigned_timer",
        "invalid_timer_token",
    ]
    assert all(answer.json()["field"] == "token" for answer in answers)
    assert world.probe.fired == []


def test_a_token_of_ours_is_no_substitute_for_a_signature(world: World) -> None:
    answer = world.server.admin.post(ROUTE, json={"token": sign([], "probe:1", world.after(0))})

    assert answer.status_code == 401


def test_bodies_of_another_form_are_refused(world: World) -> None:
    client = world.server.client()

    answers = [
        client.post(ROUTE, json={"key": "probe:1"}),
        client.post(ROUTE, json={"token": 1}),
        client.post(ROUTE, content=b"{"),
        client.post(ROUTE, json={"token": "x" * 100_000}),
        client.get(ROUTE),
    ]

    assert [answer.status_code for answer in answers] == [422, 422, 415, 413, 405]


OIDC = pytest.mark.parametrize(
    "world", [{"oidc": ACCOUNT, "audience": AUDIENCE}], indirect=True, ids=["oidc"]
)


@OIDC
def test_with_oidc_the_account_is_known_by_its_bearer_token(world: World) -> None:
    at = world.after(90)

    world.probe.arm("probe:1", at)
    world.cloud.advance(3600)

    assert world.probe.fired == [("probe:1", at)]
    assert world.cloud.state.calls[0].headers["Authorization"].startswith("Bearer ey")
    assert world.cloud.identity.fetched == 1


@OIDC
@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"email": "mallory@shop.example"}, "of the account 'mallory@shop.example'"),
        ({"email_verified": False}, "of the account"),
        ({"aud": "https://elsewhere.example"}, "audience"),
        ({"iss": "https://elsewhere.example"}, "issued by"),
        ({"exp": 1_000_000_000, "iat": 999_999_000}, "expired"),
    ],
)
def test_with_oidc_any_other_bearer_token_is_401(
    world: World, claims: dict[str, object], reason: str
) -> None:
    bearer = world.cloud.identity.token(ACCOUNT, AUDIENCE, **claims)

    answer = world.post(sign([], "probe:1", world.after(0)), Authorization=f"Bearer {bearer}")

    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_timer_identity")
    assert reason in answer.json()["detail"]


@OIDC
def test_with_oidc_a_call_needs_a_bearer_token_or_a_signature(world: World) -> None:
    unsigned = sign([], "probe:1", world.after(0))

    bare, nonsense = world.post(unsigned), world.post(unsigned, Authorization="Bearer nonsense")
    signed = world.post(sign([SECRET], "probe:1", world.after(0)))

    assert (bare.status_code, bare.json()["code"]) == (401, "unsigned_timer")
    assert (nonsense.status_code, nonsense.json()["code"]) == (401, "invalid_timer_identity")
    assert signed.status_code == 200  # armed before OIDC was set up, it may wait for weeks


@settings(max_examples=8)
@given(
    ahead=st.lists(st.integers(0, 3600 * 24), min_size=1, max_size=3, unique=True),
    shortest=st.sampled_from([60, 600, 3600]),
    chance=st.data(),
)
def test_the_fire_times_are_the_same_for_every_horizon(
    ahead: list[int], shortest: int, chance: st.DataObject
) -> None:
    scale = shortest / 600  # so that no way has more than some 150 hops
    horizons = [shortest, chance.draw(st.integers(shortest, 30 * 86_400)), 30 * 86_400]

    fired = [fire_times([n * scale for n in ahead], f"{each}s") for each in horizons]

    assert fired == [fired[0]] * 3
    assert len(fired[0]) == len(ahead)


def fire_times(ahead: list[float], horizon: str) -> list[tuple[str, datetime]]:
    clock = FakeClock()
    with CloudTasks(clock) as cloud, make_world(cloud, clock, horizon=horizon) as world:
        for n, seconds in enumerate(ahead):
            world.probe.arm(f"probe:{n}", world.after(seconds))
        cloud.advance(timedelta(days=7))
        return sorted(world.probe.fired)
