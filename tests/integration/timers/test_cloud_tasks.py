"""The adapter keeps the promises of `ports.timer` against an API that keeps the real rules."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
from google.api_core.exceptions import GoogleAPICallError
from tests.kit.servers.cloud_tasks import QUEUE, CloudTasks

from holdfast.errors import TimerUnavailable
from holdfast.timers.address import parse_timer_url
from holdfast.timers.cloud_tasks import CloudTasksTimer
from holdfast.timers.signing import read

SECRET = "a secret that is long enough"
TARGET = "http://127.0.0.1:9/v1/tasks/execute"


@pytest.fixture
async def timer(cloud: CloudTasks) -> AsyncIterator[CloudTasksTimer]:
    timer = CloudTasksTimer(parse_timer_url(cloud.timer_url(TARGET)), [SECRET])
    yield timer
    await timer.close()


@pytest.fixture
def at(cloud: CloudTasks) -> datetime:
    return cloud.now + timedelta(minutes=5)


async def test_armed_twice_it_is_armed_once(
    timer: CloudTasksTimer, cloud: CloudTasks, at: datetime
) -> None:
    first = await timer.arm("task:1", at)
    second = await timer.arm("task:1", at)

    assert first == second
    assert cloud.names() == [first]
    assert first.startswith(f"{QUEUE}/tasks/")


async def test_two_instants_and_two_keys_are_different_timers(
    timer: CloudTasksTimer, cloud: CloudTasks, at: datetime
) -> None:
    await timer.arm("task:1", at)
    await timer.arm("task:1", at + timedelta(microseconds=1))
    await timer.arm("task:2", at)

    assert len(cloud.names()) == 3


async def test_the_task_carries_a_signed_token_and_nothing_else(
    timer: CloudTasksTimer, cloud: CloudTasks, at: datetime
) -> None:
    name = await timer.arm("task:1", at)

    waiting = cloud.state.tasks[name]
    request = waiting.task.http_request
    body = json.loads(request.body)
    assert waiting.at == at
    assert (request.url, dict(request.headers)) == (TARGET, {"Content-Type": "application/json"})
    assert list(body) == ["token"]
    assert read([SECRET], body["token"]).key == "task:1"
    assert waiting.task.dispatch_deadline == timedelta(minutes=10)


async def test_armed_again_after_a_cancel_it_takes_another_name(
    timer: CloudTasksTimer, cloud: CloudTasks, at: datetime
) -> None:
    names = []
    for _ in range(3):
        names.append(await timer.arm("task:1", at))
        await timer.cancel("task:1", names[-1])
    last = await timer.arm("task:1", at)

    assert cloud.names() == [last]
    assert [name.removeprefix(names[0]) for name in [*names, last]] == ["", "-1", "-2", "-3"]


async def test_an_hour_after_a_cancel_the_first_name_is_free_again(
    timer: CloudTasksTimer, cloud: CloudTasks
) -> None:
    at = cloud.now + timedelta(hours=5)
    first = await timer.arm("task:1", at)
    await timer.cancel("task:1", first)
    cloud.advance(3600)

    assert await timer.arm("task:1", at) == first


async def test_a_key_can_be_cancelled_by_whoever_has_forgotten_the_names(
    timer: CloudTasksTimer, cloud: CloudTasks, at: datetime
) -> None:
    for n in range(3):
        await timer.arm("task:1", at + timedelta(seconds=n))
    other = await timer.arm("task:12", at)

    await timer.cancel("task:1")
    await timer.cancel("task:1")

    assert cloud.names() == [other]


async def test_what_is_30_days_away_is_refused_and_a_hop_below_it_is_not(
    timer: CloudTasksTimer, cloud: CloudTasks
) -> None:
    await timer.arm("task:1", cloud.now + timedelta(days=29, hours=23))
    with pytest.raises(TimerUnavailable, match="720h"):
        await timer.arm("task:2", cloud.now + timedelta(days=30, seconds=1))


async def test_what_has_passed_is_called_at_once(timer: CloudTasksTimer, cloud: CloudTasks) -> None:
    name = await timer.arm("task:1", cloud.now - timedelta(days=3))

    assert cloud.state.tasks[name].at == cloud.now


async def test_a_service_that_is_away_is_told_as_an_error_of_ours(
    timer: CloudTasksTimer, cloud: CloudTasks, at: datetime
) -> None:
    cloud.is_away = True

    with pytest.raises(TimerUnavailable, match="away") as caught:
        await timer.arm("task:1", at)

    assert isinstance(caught.value.__cause__, GoogleAPICallError)


async def test_a_queue_that_is_not_there_is_named(cloud: CloudTasks, at: datetime) -> None:
    url = cloud.timer_url(TARGET).replace("wake-ups", "other")
    timer = CloudTasksTimer(parse_timer_url(url), [SECRET])

    with pytest.raises(TimerUnavailable, match="queues/other' does not exist"):
        await timer.arm("task:1", at)
    await timer.close()


async def test_with_oidc_the_token_is_not_signed_and_the_account_is_named(
    cloud: CloudTasks, at: datetime
) -> None:
    url = cloud.timer_url(TARGET, oidc="caller@shop.example", audience="https://shop.example")
    timer = CloudTasksTimer(parse_timer_url(url), [SECRET])

    request = cloud.state.tasks[await timer.arm("task:1", at)].task.http_request
    await timer.close()

    token = read([SECRET], json.loads(request.body)["token"])
    assert (token.key, token.is_signed) == ("task:1", False)
    assert request.oidc_token.service_account_email == "caller@shop.example"
    assert request.oidc_token.audience == "https://shop.example"
