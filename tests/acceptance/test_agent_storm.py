"""kill -9 anywhere between a schedule that fires and a result that is delivered: each run is there
once, is paid once for what is recorded, and each of its deliveries is recorded once.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from tests.acceptance.conftest import MakeStage, on_every_store
from tests.acceptance.stage import Stage, until
from tests.acceptance.storm import ARGUMENTS, SETTINGS, Killer
from tests.kit.checker import Picture
from tests.kit.mail_server import MailServer, mail_server
from tests.kit.receivers import Receiver, running

from holdfast.core.delivery import NAME, delivery_id
from holdfast.core.task import State, TaskId
from holdfast.core.usage import Totals
from holdfast.schedules.series import Series

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

WHOLE = "HOLDFAST_TEST_AGENT_STORM" in os.environ
"""The long dose: a minute of kills, one every two seconds."""
SECONDS, EVERY = (60.0, 2.0) if WHOLE else (8.0, 1.0)
OWNERS = ("ann", "bob", "eve")
CHANNELS = ("inbox", "webhook", "email")
PRICE = Totals(runs=1, units=1, tokens_in=90, tokens_out=10, cost=0.25)


class Outside(NamedTuple):
    """What stands at the other end of deliveries."""

    mail: MailServer
    receiver: Receiver


@on_every_store
def test_a_kill_anywhere_runs_records_and_delivers_each_run_once(make_stage: MakeStage) -> None:
    with mail_server() as mail, running(Receiver()) as receiver:
        stage = make_stage(
            **SETTINGS, retention="1d", smtp_url=mail.url(), mail_from="robot@example.com",
            callback_hosts="127.0.0.1", callback_secret="a secret of some length",
        )  # fmt: skip
        made = [_subscribed(stage, owner, receiver.url) for owner in OWNERS]
        killer = Killer(stage, stage.fleet(2, *ARGUMENTS), seed=16)

        killer.storm(SECONDS, every=EVERY)
        until(lambda: all(_runs(stage, series) >= 3 for series in made), within=120)
        paused = [stage.app.schedules.pause(series.id) for series in made]
        until(lambda: not stage.unfinished(), within=240)

        assert len(killer.killed) >= 2
        pictures = stage.pictures()
        runs = [each for each in pictures if each.task.name == "reporter"]
        assert stage.broken(pictures=runs, crash_limit=1000) == []
        for before, after in zip(made, paused, strict=True):
            _check_owner(stage, before, after, runs)
        _check_payments(stage, runs)
        _check_deliveries(runs, pictures, Outside(mail, receiver))


def _subscribed(stage: Stage, owner: str, webhook_url: str) -> Series:
    """Somebody who has news each second, by every channel, within a budget."""
    stage.app.recipients.put(owner, email=f"{owner}@example.com", webhook_url=webhook_url)
    stage.app.budgets.set(f"owner:{owner}", day={"runs": 100_000}, zone=_zone_with_noon())
    return stage.app.schedules.create(
        stage.shop.reporter.call(purpose="the news"), f"every {4 if stage.is_slow else 1}s",
        name=owner, owner=owner, channels=CHANNELS, overlap="allow", catch_up="all",
        catch_up_most=1000, catch_up_window="1h",
    )  # fmt: skip


def _runs(stage: Stage, series: Series) -> int:
    found = stage.app.schedules.get(series.id)
    return 0 if found is None else found.runs


def _zone_with_noon() -> str:
    """A zone whose day does not end meanwhile."""
    return f"Etc/GMT{datetime.now(UTC).hour - 12:+d}"


def _check_owner(stage: Stage, before: Series, after: Series, runs: Sequence[Picture]) -> None:
    """Each instant was fired once and counts once, and the inbox has each result once."""
    mine = [each.task for each in runs if each.task.owner == before.id]
    assert before.next_at is not None
    assert after.last_at is not None
    wanted = before.rule.between(before.next_at, after.last_at + timedelta(seconds=1))
    fired = Counter(task.schedule.scheduled_for for task in mine if task.schedule is not None)
    assert fired == Counter(wanted)
    assert len(mine) == after.runs >= 3
    assert {task.state for task in mine} == {State.COMPLETED}

    items = stage.app.inbox.list(before.id, limit=1000).items
    assert Counter(item.execution for item in items) == Counter(task.id for task in mine)
    assert sorted(item.number for item in items) == list(range(1, len(mine) + 1))

    budget = stage.app.budgets.get(f"owner:{before.id}")
    assert budget is not None
    used = budget.day.used
    assert (used.runs, used.cost) == (len(mine), PRICE.cost * len(mine))
    assert stage.app.usage(owner=before.id).totals.tokens_in == PRICE.tokens_in * len(mine)


def _check_payments(stage: Stage, runs: Sequence[Picture]) -> None:
    """Nobody paid again for an answer that was kept."""
    lines: dict[str, list[str]] = defaultdict(list)
    for line in (stage.folder / "effects").read_text().splitlines():
        what, task_id, _ = line.split()
        lines[task_id].append(what)
    assert set(lines) == {each.task.id for each in runs}
    for said in lines.values():
        assert "did" not in said[said.index("kept") :]


def _check_deliveries(
    runs: Sequence[Picture], pictures: Sequence[Picture], outside: Outside
) -> None:
    """One end of each, by every channel; who got it twice can tell by its id."""
    deliveries = {each.task.id: each for each in pictures if each.task.name == NAME}
    wanted = {(each.task.id, by): delivery_id(each.task.id, by) for each in runs for by in CHANNELS}
    assert set(deliveries) == set(wanted.values())
    for each in deliveries.values():
        assert each.task.state is State.COMPLETED, each.task.error
        ends = [attempt.ended.value for attempt in each.history.attempts if attempt.ended]
        assert ends.count("completed") == 1
        assert set(ends) <= {"completed", "worker_lost", "error", "released"}

    bodies: dict[str, set[bytes]] = defaultdict(set)
    for request in outside.receiver.got:
        bodies[request.headers["Holdfast-Delivery"]].add(request.body)
    assert set(bodies) == {id_ for (_, by), id_ in wanted.items() if by == "webhook"}
    assert all(len(versions) == 1 for versions in bodies.values())
    told = {TaskId(json.loads(body)["execution"]) for (body,) in bodies.values()}
    assert told == {each.task.id for each in runs}
    mails = {str(mail["Message-ID"]) for mail in outside.mail.got}
    assert len(mails) == len(runs)
