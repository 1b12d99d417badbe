"""Queues without a resident worker: timers call, and the server works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.timers.app import Probe, free_port, target_at, timer_settings
from tests.kit.servers.cloud_tasks import QUEUE, CloudTasks
from tests.kit.servers.gcloud_emulator import GcloudEmulator

from holdfast import Context, Holdfast, Retry, group
from holdfast.definitions.handle import Handle
from holdfast.errors import InvalidOption
from holdfast.timers.arming import TIMER
from holdfast.timers.pushing import push_queues

PATIENCE = 30.0


class Shop(NamedTuple):
    """An app that nobody works for, but those whom timers call."""

    app: Holdfast
    server: LiveServer
    runs: list[str]

    def submit(self, name: str, /, *, delay: float | None = None, **arguments: object) -> Handle:  # type: ignore[type-arg] # of any result
        if delay is None:
            return self.app.submit_by_name(name, arguments)
        return self.app.submit_by_name(name, arguments, delay=delay)


@contextmanager
def open_shop(
    at: Path | str, timer_url: Callable[[str], str], *, at_most: str = "20s", **more: str
) -> Iterator[Shop]:
    """With its store in a folder, or at a URL."""
    port = free_port()
    store = f"sqlite:///{at}/tasks.db" if isinstance(at, Path) else at
    app = Holdfast(**timer_settings(timer_url(target_at(port)), url=store, retry_delay="1s"))
    runs: list[str] = []

    @app.task(name="mail", queue="mail")
    def mail(to: str) -> str:
        runs.append(to)
        return to

    @app.task(name="flaky", queue="mail")
    def flaky(to: str) -> str:
        runs.append(to)
        if len(runs) < 2:
            raise Retry("not now", after=1.0)
        return to

    @app.task(name="first", queue="mail")
    def first(ctx: Context) -> None:
        runs.append("first")
        ctx.submit(mail.options(delay=1.5), "second")

    @app.task(name="slow", queue="slow")
    async def slow() -> None:
        import asyncio

        runs.append("slow")
        await asyncio.sleep(3 if len(runs) < 2 else 0)

    @app.task(name="resident", queue="default")
    def resident() -> None:
        runs.append("resident")

    push_queues(app, "mail", "slow", at_most=at_most, **more)
    with serve(app, port=port) as server:
        yield Shop(app, server, runs)


@pytest.fixture
def shop(live_cloud: CloudTasks, tmp_path: Path) -> Iterator[Shop]:
    with open_shop(tmp_path, live_cloud.timer_url) as shop:
        yield shop


def test_a_task_of_a_pushed_queue_runs_though_there_is_no_worker(shop: Shop) -> None:
    handle = shop.submit("mail", to="ann")

    assert handle.result(timeout=PATIENCE) == "ann"


def test_a_task_over_rest_does_too(shop: Shop) -> None:
    body = {"task_type": "mail", "parameters": {"to": "ann"}}
    task_id = shop.server.admin.post("/api/v1/tasks", json=body).json()["task_id"]

    assert shop.app.handle(task_id).result(timeout=PATIENCE) == "ann"


def test_a_delayed_task_runs_at_its_time(shop: Shop, live_cloud: CloudTasks) -> None:
    began = time.monotonic()

    handle = shop.submit("mail", to="ann", delay=1.5)
    handle.result(timeout=PATIENCE)

    assert time.monotonic() - began >= 1.5


def test_a_retry_and_a_follow_up_get_timers_of_their_own(shop: Shop) -> None:
    assert shop.submit("flaky", to="ann").result(timeout=PATIENCE) == "ann"
    shop.submit("first").result(timeout=PATIENCE)

    assert shop.server.until(lambda: shop.runs == ["ann", "ann", "first", "second"])


def test_what_waits_for_others_is_called_for_when_they_have_ended(shop: Shop) -> None:
    mail, slow = (shop.app.registry[name] for name in ("mail", "slow"))

    first = group(mail.s(f"n{n}") for n in range(3)).submit()
    second = slow.options(after=first).submit()
    last = mail.options(after=second).submit("last")
    last.result(timeout=PATIENCE)

    assert sorted(shop.runs[:3]) == ["n0", "n1", "n2"]
    assert shop.runs[3:] == ["slow", "last"]


def test_a_schedule_fires_and_runs_though_there_is_no_worker(
    shop: Shop, live_cloud: CloudTasks
) -> None:
    call = shop.app.registry["mail"].options().call_json({"to": "ann"})
    shop.app.schedules.create(call, "every 1s", name="often")

    assert shop.server.until(lambda: len(shop.runs) >= 3)
    shop.app.schedules.delete("often")
    assert shop.server.until(lambda: all("schedule" not in key for key in armed(shop)))
    told = shop.app.schedules.runs("often").runs
    assert len({one.at for one in told}) == len(told) >= 3
    assert {call.status for call in live_cloud.state.calls} == {200}


def armed(shop: Shop) -> list[str]:
    """The keys that a timer will call with."""
    store = shop.app.client.store
    return [record.key for record in shop.app.wait_for(store.records(TIMER, limit=100))]


def test_a_hundred_tasks_are_run_once_each(shop: Shop, live_cloud: CloudTasks) -> None:
    mail = shop.app.registry["mail"].options()

    handles = shop.app.submit_many([mail.call_json({"to": f"n{n}"}) for n in range(100)])
    for handle in handles:
        handle.result(timeout=PATIENCE)

    assert sorted(shop.runs) == sorted(f"n{n}" for n in range(100))
    assert shop.server.until(lambda: len(live_cloud.names()) == 1)  # the next sweep
    assert {call.status for call in live_cloud.state.calls} == {200}


@pytest.mark.parametrize("place", ["fresh_schema", "fresh_mongo"])
def test_pushed_queues_work_on_servers_too(
    live_cloud: CloudTasks, request: pytest.FixtureRequest, place: str
) -> None:
    url: str = request.getfixturevalue(place)
    Holdfast(url=url).migrate()
    with open_shop(url, live_cloud.timer_url) as shop:
        handles = [shop.submit("mail", to=f"n{n}", delay=n / 5) for n in range(5)]
        results = [handle.result(timeout=PATIENCE) for handle in handles]

        assert results == [f"n{n}" for n in range(5)]
        assert sorted(shop.runs) == results


def test_a_queue_that_is_not_pushed_arms_nothing(shop: Shop, live_cloud: CloudTasks) -> None:
    shop.submit("resident")

    assert live_cloud.names() == []


def test_work_that_takes_too_long_is_handed_back_and_done_by_the_next_call(
    live_cloud: CloudTasks, tmp_path: Path
) -> None:
    with open_shop(tmp_path, live_cloud.timer_url, at_most="1s") as shop:
        shop.submit("slow").result(timeout=PATIENCE)

        assert shop.runs == ["slow", "slow"]


def test_a_submit_is_durable_though_the_service_is_away_and_the_next_burst_runs_it(
    shop: Shop, live_cloud: CloudTasks
) -> None:
    live_cloud.is_away = True
    handle = shop.submit("mail", to="ann")
    live_cloud.is_away = False
    shop.submit("mail", to="ben")

    assert handle.result(timeout=PATIENCE) == "ann"


def test_tasks_without_a_timer_are_found_by_the_sweep_which_is_a_timer_itself(
    live_cloud: CloudTasks, tmp_path: Path
) -> None:
    with open_shop(tmp_path, live_cloud.timer_url, sweep="1s") as shop:
        told, shop.app.registry.middleware.stored = shop.app.registry.middleware.stored, []
        handle = shop.submit("mail", to="ann")  # as if its submitter had died just then
        shop.app.registry.middleware.stored = told
        shop.submit("slow", delay=3600)

        assert handle.result(timeout=PATIENCE) == "ann"


def test_queues_are_pushed_by_one_call(tmp_path: Path, live_cloud: CloudTasks) -> None:
    with (
        open_shop(tmp_path, live_cloud.timer_url) as shop,
        pytest.raises(InvalidOption, match="once"),
    ):
        push_queues(shop.app, "other")


def test_without_a_timer_url_nothing_is_armed_and_nothing_fails(tmp_path: Path) -> None:
    app = Holdfast(url=f"sqlite:///{tmp_path}/tasks.db")

    @app.task(queue="mail")
    def mail() -> None: ...

    push_queues(app, "mail")
    with app:
        assert mail.submit().status() == "queued"


def on(emulator: GcloudEmulator) -> Callable[[str], str]:
    _, project, _, location, _, queue = QUEUE.split("/")
    place = f"gcloud://{project}/{location}/{queue}"
    return lambda target: f"{place}?target={target}&endpoint={emulator.endpoint}&insecure=true"


def test_the_emulator_of_the_package_index_calls_at_the_instant(
    gcloud_emulator: GcloudEmulator, tmp_path: Path
) -> None:
    with open_shop(tmp_path, on(gcloud_emulator)) as shop:
        probe = Probe(shop.app)
        at = shop.app.wait_for(shop.app.client.store.now()) + timedelta(seconds=1)

        probe.arm("probe:1", at)
        shop.server.until(lambda: bool(probe.fired))

        ((key, fired),) = probe.fired
        assert key == "probe:1"
        assert timedelta(0) <= fired - at < timedelta(seconds=5)


def test_the_emulator_of_the_package_index_retries_what_fails(
    gcloud_emulator: GcloudEmulator, tmp_path: Path
) -> None:
    with open_shop(tmp_path, on(gcloud_emulator)) as shop:
        probe = Probe(shop.app)
        probe.fails = 2

        probe.arm("probe:1", shop.app.wait_for(shop.app.client.store.now()))

        assert shop.server.until(lambda: len(probe.fired) == 1)


def test_a_pushed_queue_works_with_the_emulator_of_the_package_index(
    gcloud_emulator: GcloudEmulator, tmp_path: Path
) -> None:
    with open_shop(tmp_path, on(gcloud_emulator)) as shop:
        handles = [shop.submit("mail", to=f"n{n}", delay=n / 5) for n in range(5)]

        assert [handle.result(timeout=PATIENCE) for handle in handles] == [
            f"n{n}" for n in range(5)
        ]
