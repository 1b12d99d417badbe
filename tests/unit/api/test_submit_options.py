"""One submit's options: what reaches the store, and what is refused before it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from holdfast import InvalidOption, PayloadRefused, exponential
from holdfast.core.keys import shown_key
from holdfast.core.priority import CENTURY
from holdfast.core.task import NewTask, Priority, TaskId
from holdfast.definitions.options import Options, SubmitKeywords
from holdfast.testing import MemoryApp

Submit = Callable[..., NewTask]


@pytest.fixture
def submitted(app: MemoryApp) -> Submit:
    """What the store would be given for a task submitted with these options."""

    @app.task(queue="mail", tags=["defined"], requires={"disk"})
    def work(n: int) -> None: ...

    head_starts = {p: app.settings.aging.head_start(p) for p in Priority}

    def submit(**options: Any) -> NewTask:
        call = work.options(**options).call(1)
        return call.new_task(TaskId("t"), app.settings, head_starts)

    return submit


def test_without_options_the_definition_holds(submitted: Submit) -> None:
    task = submitted()

    assert (task.queue, task.priority, task.tags) == ("mail", Priority.NORMAL, ("defined",))
    assert task.requires == frozenset({"disk"})
    assert (task.max_retries, task.timeout) == (3, 600.0)
    assert (task.delay, task.run_at, task.expires_in, task.expires_at) == (None,) * 4
    assert (task.unique_key, task.idempotency_key, task.fingerprint, task.lock) == (None,) * 4


def test_every_option_reaches_the_store(submitted: Submit) -> None:
    policy = exponential(1, 3, cap="1m", jitter=False)
    task = submitted(
        queue="fast", priority="high", max_retries=0, timeout="5s", retry=policy, delay="5m",
        expires="1h", unique_key="u", idempotency_key="i", lock="{not a template}",
        tags=["now", "defined"], requires=[], owner="ann",
    )  # fmt: skip

    assert (task.queue, task.priority, task.max_retries, task.timeout) == (
        "fast", Priority.HIGH, 0, 5.0,
    )  # fmt: skip
    assert orjson.loads(task.retry or "") == {
        "base": 1.0, "multiplier": 3.0, "cap": 60.0, "jitter": False,
    }  # fmt: skip
    assert (task.delay, task.expires_in) == (300.0, 3600.0)
    assert (shown_key(task.unique_key), shown_key(task.idempotency_key)) == ("u", "i")
    assert task.lock == "{not a template}"
    assert task.fingerprint is not None
    assert (task.tags, task.requires, task.owner) == (("defined", "now"), frozenset(), "ann")


def test_tags_by_name_are_tags_with_their_values(app: MemoryApp) -> None:
    @app.task(tags={"team": "mail"})
    def work(n: int) -> None: ...

    task = work.options(tags={"batch": "daily", "part": 2}).submit(1).task()

    assert task.tags == ("team=mail", "batch=daily", "part=2")
    assert [found.id for found in app.list(tag="batch=daily").tasks] == [task.id]


def test_options_add_up_and_leave_the_definition_alone(app: MemoryApp) -> None:
    @app.task
    def work(n: int) -> None: ...

    urgent = work.options(priority="high", queue="a")
    later = urgent.options(delay=5, queue="b")

    assert (urgent.submit(1).task().queue, later.submit(2).task().queue) == ("a", "b")
    assert later.submit(3).task().priority is Priority.HIGH
    assert work.submit(4).task().priority is Priority.NORMAL


@pytest.mark.parametrize(
    ("priority", "retries", "timeout", "head_start"),
    [
        ("critical", 5, 300.0, CENTURY),
        ("high", 5, 300.0, 1_800_000_000),
        ("normal", 3, 600.0, 600_000_000),
        ("MEDIUM", 3, 600.0, 600_000_000),
        ("low", 2, 900.0, 0),
    ],
)
def test_retries_timeout_and_head_start_go_by_the_submitted_priority(
    submitted: Submit, priority: str, retries: int, timeout: float, head_start: int
) -> None:
    task = submitted(priority=priority)

    assert (task.max_retries, task.timeout, task.head_start) == (retries, timeout, head_start)


def test_the_settings_win_over_the_priority_and_the_definition_over_the_settings() -> None:
    app = MemoryApp(max_retries=9, timeout="9s")

    @app.task
    def bare() -> None: ...

    @app.task(max_retries=1, timeout=1)
    def strict() -> None: ...

    kept = bare.options(priority="low").submit().task(), strict.submit().task()

    assert [(task.max_retries, task.timeout) for task in kept] == [(9, 9.0), (1, 1.0)]


def test_an_infinite_timeout_means_no_limit(submitted: Submit) -> None:
    assert submitted(timeout=math.inf).timeout is None
    assert submitted(timeout="inf").timeout is None


class TestInstants:
    @pytest.mark.parametrize(
        ("run_at", "zone"),
        [
            (datetime(2030, 6, 1, 10, tzinfo=UTC), None),
            (datetime(2030, 6, 1, 12, tzinfo=timezone(timedelta(hours=2))), None),
            (datetime(2030, 6, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")), None),
            ("2030-06-01T10:00:00Z", None),
            ("2030-06-01 12:00+02:00", None),
            (datetime(2030, 6, 1, 12), "Europe/Berlin"),  # noqa: DTZ001 - naive on purpose
            ("2030-06-01T12:00", "Europe/Berlin"),
        ],
    )
    def test_run_at_is_read_as_utc(
        self, submitted: Submit, run_at: object, zone: str | None
    ) -> None:
        moment = submitted(run_at=run_at, timezone=zone).run_at

        assert moment == datetime(2030, 6, 1, 10, tzinfo=UTC)
        assert moment is not None
        assert moment.tzinfo is UTC

    def test_a_time_skipped_by_the_clock_change_moves_forward(self, submitted: Submit) -> None:
        task = submitted(run_at="2030-03-31T02:30", timezone="Europe/Berlin")

        assert task.run_at == datetime(2030, 3, 31, 1, 30, tzinfo=UTC)  # 03:30 there

    def test_a_time_that_comes_twice_means_the_first(self, submitted: Submit) -> None:
        task = submitted(run_at="2030-10-27T02:30", timezone="Europe/Berlin")

        assert task.run_at == datetime(2030, 10, 27, 0, 30, tzinfo=UTC)

    @pytest.mark.parametrize(
        "naive",
        [datetime(2030, 1, 1), "2030-01-01T10:00:00"],  # noqa: DTZ001 - naive on purpose
    )
    def test_a_naive_time_is_refused_with_the_fix(self, submitted: Submit, naive: object) -> None:
        with pytest.raises(InvalidOption, match=r"^run_at: expected a time with an offset.*tzinfo"):
            submitted(run_at=naive)

    @pytest.mark.parametrize("bad", ["tomorrow", "", 5, object(), "2030-13-01T00:00Z"])
    def test_what_is_no_time_is_refused(self, submitted: Submit, bad: object) -> None:
        with pytest.raises(InvalidOption, match=r"^run_at: expected a datetime"):
            submitted(run_at=bad)

    @pytest.mark.parametrize(
        "bad", ["Europe/Berlinn", "Mars/Olympus", "../etc/passwd", "", "a\x00"]
    )
    def test_an_unknown_zone_is_refused(self, submitted: Submit, bad: str) -> None:
        with pytest.raises(InvalidOption, match=r"^timezone: expected an IANA zone"):
            submitted(run_at="2030-01-01T00:00", timezone=bad)

    def test_an_unknown_zone_gets_a_hint(self, submitted: Submit) -> None:
        with pytest.raises(InvalidOption, match="Did you mean 'Europe/Berlin'"):
            submitted(run_at="2030-01-01T00:00", timezone="Europe/Berln")

    def test_an_instant_outside_of_the_calendar_is_refused(self, submitted: Submit) -> None:
        far = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))

        with pytest.raises(InvalidOption, match="out of range"):
            submitted(run_at=far)

    def test_expiry_is_a_duration_or_an_instant(self, submitted: Submit) -> None:
        at = datetime(2030, 1, 1, tzinfo=UTC)

        assert submitted(expires="10m").expires_in == 600.0
        assert submitted(expires=at).expires_at == at
        assert submitted(expires="2030-01-01T01:00+01:00").expires_at == at


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"queue": ""}, "queue"), ({"queue": "a b"}, "queue"), ({"queue": "x" * 201}, "queue"),
        ({"priority": "highest"}, "priority"), ({"max_retries": -1}, "max_retries"),
        ({"max_retries": 1.0}, "max_retries"), ({"timeout": "x"}, "timeout"),
        ({"timeout": -1}, "timeout"), ({"timeout": 0}, "timeout"), ({"delay": "x"}, "delay"),
        ({"delay": -1}, "delay"), ({"delay": math.nan}, "delay"), ({"delay": math.inf}, "delay"),
        ({"delay": True}, "delay"), ({"delay": 1, "run_at": "2030-01-01T00:00Z"}, "delay"),
        ({"timezone": "Europe/Berlin"}, "timezone"),
        ({"timezone": "UTC", "run_at": "2030-01-01T00:00Z"}, "timezone"),
        ({"expires": "x"}, "expires"), ({"expires": 0}, "expires"),
        ({"expires": "5m", "delay": "5m"}, "expires"), ({"expires": "2030-01-01"}, "expires"),
        ({"expires": datetime(2030, 1, 1)}, "expires"),  # noqa: DTZ001
        ({"expires": "2030-01-01T00:00Z", "run_at": "2030-01-01T00:00Z"}, "expires"),
        ({"unique_key": ""}, "unique_key"), ({"unique_key": "x" * 501}, "unique_key"),
        ({"unique_key": 5}, "unique_key"), ({"idempotency_key": ""}, "idempotency_key"),
        ({"lock": ""}, "lock"), ({"lock": 5}, "lock"), ({"tags": [""]}, "tags[0]"),
        ({"tags": {1: 2}}, "tags[0]"), ({"tags": {"a": 1, "b": None}}, "tags[1]"),
        ({"tags": {"a": True}}, "tags[0]"), ({"tags": 3}, "tags"),
        ({"requires": {"gpu": "2"}}, "requires"),
        ({"requires": ["a b"]}, "requires[0]"),
        ({"owner": ""}, "owner"), ({"retry": lambda n: n}, "retry"), ({"retry": 5}, "retry"),
        ({"piority": "high"}, "piority"),
    ],
)  # fmt: skip
def test_a_bad_option_is_refused_by_name_and_nothing_is_written(
    app: MemoryApp, options: Any, option: str
) -> None:
    @app.task
    def work(n: int) -> None: ...

    with pytest.raises(InvalidOption) as refused:
        work.options(**options).submit(1)

    assert refused.value.option == option
    assert app.count() == 0


@pytest.mark.parametrize(
    ("option", "value", "path"),
    [
        ("unique_key", "a\x00", "unique_key"),
        ("idempotency_key", "\ud800", "idempotency_key"),
        ("lock", "\x00", "lock"),
        ("owner", "\x00", "owner"),
        ("queue", "\x00", "queue"),
        ("tags", ["ok", "\udfff"], "tags[1]"),
        ("requires", ["\x00"], "requires[0]"),
    ],
)
def test_text_that_no_store_may_hold_is_refused_in_options_too(
    app: MemoryApp, option: str, value: object, path: str
) -> None:
    @app.task
    def work(n: int) -> None: ...

    with pytest.raises(PayloadRefused) as refused:
        work.options(**{option: value}).submit(1)  # type: ignore[arg-type] # any of the names

    assert refused.value.path == path
    assert app.count() == 0


def test_a_function_as_retry_of_one_submit_names_the_way_out(submitted: Submit) -> None:
    with pytest.raises(InvalidOption, match="give it to the decorator"):
        submitted(retry=lambda n: n)


def test_a_misspelt_option_gets_a_hint(submitted: Submit) -> None:
    with pytest.raises(InvalidOption, match="Did you mean 'idempotency_key'"):
        submitted(idempotence_key="x")


def test_the_keywords_and_the_reader_know_the_same_options() -> None:
    read = {each.name for each in fields(Options) if each.metadata}

    by_hand = {"run_at", "timezone", "expires"}
    assert set(SubmitKeywords.__annotations__) == read | by_hand
