"""Every knob, three ways; what is misspelt is refused."""

from __future__ import annotations

import math
import os
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.core.limits import UNLIMITED
from holdfast.core.priority import Aging
from holdfast.core.retry import RetryPolicy, exponential, fixed
from holdfast.core.task import Priority
from holdfast.errors import ConfigError
from holdfast.settings import OTHER_NAMES, Settings

SECRET = "0123456789abcdef"
KNOBS: dict[str, tuple[object, str, str, object]] = {
    # name: as keyword, in the environment, in pyproject.toml, as it is read
    "url": ("sqlite:///a.db", "sqlite:///a.db", '"sqlite:///a.db"', "sqlite:///a.db"),
    "redis_url": ("redis://h", "redis://h", '"redis://h"', "redis://h"),
    "lease": ("1m", "PT1M", "60", 60.0),
    "heartbeat": (timedelta(seconds=4), "4s", '"4s"', 4.0),
    "sweep": (2.5, "2.5", "2.5", 2.5),
    "poll": ("500ms", "0.5", '"500ms"', 0.5),
    "retry_base": ("7s", "7", '"7s"', 7.0),
    "retry_multiplier": (3, "3", "3.0", 3.0),
    "retry_cap": ("2h", "2h", '"PT2H"', 7200.0),
    "retry_delay": ("10m", "PT10M", '"PT10M"', 600.0),
    "retry_jitter": (False, "no", "false", False),
    "retry": ("fixed(5s)", "fixed(5s)", '{delay = "5s"}', fixed(5)),
    "aging_low": ("1m", "60", '"1m"', 60.0),
    "aging_normal": ("1h30m", "1h30m", "5400", 5400.0),
    "max_retries": (0, "0", "0", 0),
    "timeout": ("20m", "1200", '"20m"', 1200.0),
    "crash_limit": (5, "5", "5", 5),
    "unknown_task_grace": ("2m", "2m", '"2m"', 120.0),
    "drain": (0, "0", "0", 0.0),
    "stop_grace": ("2s", "2s", '"2s"', 2.0),
    "max_payload": ("2MiB", "2097152", '"2MiB"', 2 * 1024 * 1024),
    "max_result": (1000, "1kB", "1000", 1000),
    "retention": ("1d", "86400", '"P1D"', 86_400.0),
    "dead_letter_retention": ("60d", "60d", '"60d"', 60 * 86_400.0),
    "idempotency_window": ("1h", "1h", '"1h"', 3600.0),
    "worker_name": ("mail-1", "mail-1", '"mail-1"', "mail-1"),
    "queues": (["mail", "default"], "mail, default", '["mail", "default"]', ("mail", "default")),
    "concurrency": (16, "16", "16", 16),
    "processes": (2, "2", "2", 2),
    "capabilities": ({"gpu", "big"}, "gpu,big", '"big,gpu"', frozenset({"gpu", "big"})),
    "open_queues": (["js", "go"], "js,go", '["go", "js"]', frozenset({"js", "go"})),
    "schedule_floor": ("1m", "60", "60", 60.0),
    "agent": ("shop.answer", "shop.answer", '"shop.answer"', "shop.answer"),
    "max_body": ("1MiB", "1048576", '"1MiB"', 1024 * 1024),
    "max_connections": (50, "50", "50", 50),
    "rate_limit": (50, "50", "50.0", 50.0),
    "request_timeout": ("10s", "10", '"10s"', 10.0),
    "callback_hosts": ({"hooks.example"}, "hooks.example", '"hooks.example"', {"hooks.example"}),
    "include": (["a.b", "c"], "a.b, c", '["a.b", "c"]', ("a.b", "c")),
    "log_level": ("DEBUG", "debug", '"debug"', "debug"),
    "log_format": ("json", "json", '"json"', "json"),
    "callback_secret": (SECRET, SECRET, f'"{SECRET}"', SECRET),
    "callback_previous_secret": (SECRET, SECRET, f'"{SECRET}"', SECRET),
    "timer_url": ("gcloud://a/b/c", "gcloud://a/b/c", '"gcloud://a/b/c"', "gcloud://a/b/c"),
    "timer_secret": (SECRET, SECRET, f'"{SECRET}"', SECRET),
    "timer_previous_secret": (SECRET, SECRET, f'"{SECRET}"', SECRET),
    "llm_url": ("https://h/v1/", "https://h/v1", '"https://h/v1"', "https://h/v1"),
    "llm_key": ("sk-1", " sk-1", '"sk-1"', "sk-1"),
    "llm_model": ("small", "small", '"small"', "small"),
    "llm_timeout": ("5s", "5", '"PT5S"', 5.0),
    "smtp_url": (
        "smtp://mail.example",
        "smtp://mail.example",
        '"smtp://mail.example"',
        "smtp://mail.example",
    ),
    "mail_from": ("a@b.example", "a@b.example", '"a@b.example"', "a@b.example"),
    "public_url": (
        "https://a.example/",
        "https://a.example",
        '"https://a.example"',
        "https://a.example",
    ),
    "delivery_secret": (SECRET, SECRET, f'"{SECRET}"', SECRET),
    "delivery_templates": ("mails", "mails", '"mails"', "mails"),
    "fcm_credentials": ("key.json", "key.json", '"key.json"', "key.json"),
    "fcm_url": (
        "http://localhost:1",
        "http://localhost:1",
        '"http://localhost:1"',
        "http://localhost:1",
    ),
    "vapid_private_key": ("A" * 43, "A" * 43, f'"{"A" * 43}"', "A" * 43),
    "vapid_subject": ("mailto:a@b.c", "mailto:a@b.c", '"mailto:a@b.c"', "mailto:a@b.c"),
    "inbox_retention": ("30d", "30d", '"30d"', 30 * 86_400.0),
    "firestore_url": ("firestore://a", "firestore://a", '"firestore://a"', "firestore://a"),
    "otel": (True, "true", "true", True),
}


FROM_ELSEWHERE: dict[str, tuple[object, str, str, object]] = {
    "processor_interval": ("PT5S", "PT5S", '"PT5S"', 5.0),
    "batch_size": (50, "50", "50", 50),
    "stale_claim_timeout": ("PT5M", "PT5M", '"PT5M"', 300.0),
    "worker_id": ("mail-1", "mail-1", '"mail-1"', "mail-1"),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, without anybody's variables."""
    monkeypatch.chdir(tmp_path)
    for name in KNOBS:
        monkeypatch.delenv(f"HOLDFAST_{name.upper()}", raising=False)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def write_table(folder: Path, *lines: str) -> None:
    (folder / "pyproject.toml").write_text("\n".join(["[tool.holdfast]", *lines]))


def test_this_test_knows_every_knob() -> None:
    assert set(KNOBS) == {field.name for field in fields(Settings)}


def test_without_a_word_the_defaults_hold() -> None:
    assert Settings.load() == Settings()


@pytest.mark.parametrize("name", KNOBS)
def test_every_knob_is_read_as_a_keyword(name: str) -> None:
    keyword, _, _, value = KNOBS[name]

    settings = Settings.load(**{name: keyword})  # type: ignore[arg-type] # any of the names

    assert getattr(settings, name) == value


@pytest.mark.parametrize("name", KNOBS)
def test_every_knob_is_read_from_the_environment(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, variable, _, value = KNOBS[name]
    monkeypatch.setenv(f"HOLDFAST_{name.upper()}", variable)

    assert getattr(Settings.load(), name) == value


@pytest.mark.parametrize("name", KNOBS)
def test_every_knob_is_read_from_pyproject(name: str, elsewhere: Path) -> None:
    _, _, toml, value = KNOBS[name]
    write_table(elsewhere, f"{name} = {toml}")

    assert getattr(Settings.load(), name) == value


@pytest.mark.parametrize("source", ["keyword", "environment", "pyproject"])
def test_retries_and_timeouts_may_be_given_by_priority(
    source: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "environment":
        monkeypatch.setenv("HOLDFAST_MAX_RETRIES", "High = 8, low=unlimited")
        monkeypatch.setenv("HOLDFAST_TIMEOUT", "low=none,9=5s")
    elif source == "pyproject":
        write_table(elsewhere, 'max_retries = {high = 8, low = "unlimited"}')
        monkeypatch.setenv("HOLDFAST_TIMEOUT", "low=none,critical=5s")
    given = source == "keyword"
    settings = (
        Settings.load(
            max_retries={"high": 8, "low": "unlimited"}, timeout={"low": "none", "critical": 5}
        )
        if given
        else Settings.load()
    )

    assert [settings.retries_for(p) for p in Priority] == [5, 8, 3, UNLIMITED]
    assert [settings.timeout_for(p) for p in Priority] == [5.0, 300.0, 600.0, math.inf]


def test_a_priority_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_MAX_RETRIES", "urgent=8")

    with pytest.raises(ConfigError, match=r"HOLDFAST_MAX_RETRIES: expected critical, high"):
        Settings.load()


def test_jitter_can_be_switched_off_and_on() -> None:
    assert Settings.load(retry_jitter=False).retry_policy == exponential(jitter=False)
    assert Settings.load(retry_delay=5, retry_jitter=True).retry_policy == fixed(5, jitter=True)
    assert Settings.load(retry_delay=5).retry_policy == fixed(5)


def test_a_whole_backoff_replaces_its_parts() -> None:
    settings = Settings.load(retry="exponential(1s, 5)", retry_delay="10m", retry_jitter=False)

    assert settings.retry_policy == exponential(1, 5)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("postgresql+psycopg://u:p@h/db", "postgresql://u:p@h/db"),
        ("postgresql+asyncpg://h/db?schema=a", "postgresql://h/db?schema=a"),
        ("postgres+psycopg2://h/db", "postgres://h/db"),
        ("sqlite+aiosqlite:///a+b.db", "sqlite:///a+b.db"),
        ("sqlite:///c+x://b.db", "sqlite:///c+x://b.db"),
        ("mongodb+srv://h/db", "mongodb+srv://h/db"),
    ],
)
def test_a_url_of_sqlalchemy_is_taken_without_its_driver(given: str, read: str) -> None:
    assert Settings.load(url=given).url == read


@pytest.mark.parametrize("name", ["", "a b", "a,b", "x" * 101, "a\nb", 5])
def test_a_worker_name_that_would_break_a_table_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^worker_name: expected"):
        Settings.load(worker_name=name)


def test_a_keyword_wins_over_the_environment_and_that_over_pyproject(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(elsewhere, "sweep = 1", "poll = 1", "drain = 1")
    monkeypatch.setenv("HOLDFAST_POLL", "2")
    monkeypatch.setenv("HOLDFAST_DRAIN", "2")

    settings = Settings.load(drain=3)

    assert (settings.sweep, settings.poll, settings.drain) == (1.0, 2.0, 3.0)


def test_none_means_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DRAIN", "7")

    assert Settings.load(drain=None, url=None) == Settings(drain=7.0)


def test_the_nearest_pyproject_upward_is_read(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(elsewhere, "concurrency = 3")
    (elsewhere / "src" / "shop").mkdir(parents=True)
    monkeypatch.chdir(elsewhere / "src" / "shop")

    assert Settings.load().concurrency == 3


@pytest.mark.parametrize("stops", ["a root", "a home", "a folder for everybody"])
def test_a_pyproject_beyond_the_project_is_not_read(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, stops: str
) -> None:
    write_table(elsewhere, "concurrency = 3")
    project = elsewhere / "project"
    (project / "src").mkdir(parents=True)
    monkeypatch.chdir(project / "src")
    match stops:
        case "a root":
            (project / ".git").mkdir()
        case "a home":
            monkeypatch.setenv("HOME", str(project))
        case _:
            elsewhere.chmod(0o777)

    assert Settings.load().concurrency == 10


def test_a_pyproject_in_a_folder_for_everybody_is_read_only_there_and_only_if_it_is_ours(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(elsewhere, "concurrency = 3")
    elsewhere.chmod(0o777)

    assert Settings.load().concurrency == 3
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    if (elsewhere / "pyproject.toml").stat().st_uid != 0:
        assert Settings.load().concurrency == 10


@pytest.mark.parametrize("name", ["leese", "max_retry", "LEASE", "queue", "xyz"])
def test_an_unknown_keyword_is_refused_with_the_closest_name(name: str) -> None:
    with pytest.raises(ConfigError, match=r"no such setting\..*Expected one of: url, ") as refused:
        Settings.load(**{name: 1})  # type: ignore[arg-type] # a wrong name is the point

    assert refused.value.setting == name


def test_a_variable_of_the_testing_kit_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TEST_PG_BIN", "/usr/lib/postgresql/15/bin")

    assert Settings.load() == Settings()


def test_an_unknown_variable_is_refused_by_its_full_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_CONCURENCY", "3")

    with pytest.raises(ConfigError, match=r"HOLDFAST_CONCURENCY.* Did you mean 'concurrency'"):
        Settings.load()


def test_an_unknown_name_in_pyproject_is_refused_with_the_file(elsewhere: Path) -> None:
    write_table(elsewhere, "drian = 3")

    with pytest.raises(ConfigError, match=r"drian in \[tool.holdfast\] of .*Did you mean 'drain'"):
        Settings.load()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "holdfast.db"), ("url", 3), ("lease", "x"), ("lease", 0), ("lease", -1),
        ("lease", True),
        ("poll", "1 lightyear"), ("retry_multiplier", 0.5), ("retry_multiplier", "x"),
        ("retry_multiplier", float("nan")), ("max_retries", -1), ("max_retries", 1.5),
        ("max_retries", "three"), ("timeout", 0), ("crash_limit", 0), ("max_payload", 0),
        ("max_payload", "big"), ("queues", []), ("queues", ""), ("queues", ["a", ""]),
        ("queues", 3),
        ("queues", ["a\x00"]), ("concurrency", 0), ("processes", "0"), ("capabilities", [1]),
        ("open_queues", "*"), ("open_queues", [""]), ("max_body", 0), ("rate_limit", -1),
        ("rate_limit", "many"), ("rate_limit", True), ("request_timeout", 0),
        ("callback_hosts", 7),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_with_what_was_expected_and_found(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}: expected .*got ") as refused:
        Settings.load(**{name: value})  # type: ignore[arg-type] # a wrong type is the point

    assert refused.value.setting == name


def test_a_secret_that_is_too_short_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigError, match="expected a secret text of 16 characters") as refused:
        Settings.load(callback_secret="hunter2")

    assert "hunter2" not in str(refused.value)
    assert SECRET not in repr(Settings(callback_secret=SECRET))


def test_passwords_in_urls_are_not_shown() -> None:
    url, redis_url = f"postgresql://me:{SECRET}@db/shop", f"redis://:{SECRET}@cache"

    assert SECRET not in repr(Settings(url=url, redis_url=redis_url))


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel", 7])
def test_a_key_of_a_model_that_no_header_can_carry_is_refused_without_being_shown(
    key: str,
) -> None:
    with pytest.raises(ConfigError, match=r"^llm_key: expected the key .*without blanks$"):
        Settings.load(llm_key=key)

    assert SECRET not in repr(Settings(llm_key=SECRET, llm_url=f"https://me:{SECRET}@h/v1"))


@pytest.mark.parametrize(
    "url",
    ["api.openai.com/v1", "ftp://h", "https://h/v1?key=1", "https://", "https://me:pass@h/v1"],
)
def test_an_endpoint_that_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^llm_url: expected the base URL"):
        Settings.load(llm_url=url)


def test_an_empty_redis_url_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_REDIS_URL", "")

    with pytest.raises(ConfigError, match=r"HOLDFAST_REDIS_URL: .*redis://.*leave it out"):
        Settings.load()


def test_a_bad_value_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_LEASE", "soon")

    with pytest.raises(ConfigError, match=r"^HOLDFAST_LEASE: expected a duration .*got 'soon'"):
        Settings.load()


def test_a_broken_pyproject_is_named(elsewhere: Path) -> None:
    (elsewhere / "pyproject.toml").write_text("[tool.holdfast\n")

    with pytest.raises(ConfigError, match=r"pyproject\.toml cannot be read"):
        Settings.load()


def test_a_heartbeat_as_long_as_the_lease_is_refused() -> None:
    with pytest.raises(ConfigError, match="heartbeat: expected less than lease"):
        Settings.load(lease=10, heartbeat=10)


def test_a_short_lease_takes_the_heartbeat_along() -> None:
    assert Settings.load(lease="3s").heartbeat == 1.0


def test_a_long_lease_leaves_the_heartbeat() -> None:
    assert Settings.load(lease="5m").heartbeat == 10.0


def test_a_star_among_the_queues_means_all_of_them() -> None:
    assert Settings.load(queues="*").served_queues is None
    assert Settings.load(queues="a,b,a").served_queues == ("a", "b")


@pytest.mark.parametrize(
    ("priority", "retries", "timeout"),
    [
        (Priority.CRITICAL, 5, 300.0),
        (Priority.HIGH, 5, 300.0),
        (Priority.NORMAL, 3, 600.0),
        (Priority.LOW, 2, 900.0),
    ],
)
def test_retries_and_timeout_go_by_priority(
    priority: Priority, retries: int, timeout: float
) -> None:
    settings = Settings()

    assert settings.retries_for(priority) == retries
    assert settings.timeout_for(priority) == timeout


def test_set_retries_and_timeout_hold_for_every_priority() -> None:
    settings = Settings.load(max_retries=1, timeout="5s")

    assert {settings.retries_for(p) for p in Priority} == {1}
    assert {settings.timeout_for(p) for p in Priority} == {5.0}


def test_backoff_and_aging_come_from_the_settings() -> None:
    settings = Settings.load(retry_base=1, retry_multiplier=3, retry_cap="1m", aging_low=5)

    assert settings.retry_policy == RetryPolicy(base=1.0, multiplier=3.0, cap=60.0)
    assert settings.aging == Aging(low=5.0, normal=1200.0)


def test_overriding_changes_only_what_is_given() -> None:
    settings = Settings.load(drain=5).override(concurrency=3, queues="mail")

    assert settings == Settings(drain=5.0, concurrency=3, queues=("mail",))


def test_overriding_refuses_what_loading_refuses() -> None:
    with pytest.raises(ConfigError, match=r"^lease: expected"):
        Settings().override(lease="never")


@pytest.mark.parametrize("name", FROM_ELSEWHERE)
def test_the_names_of_other_processors_are_understood_in_all_three_places(
    name: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyword, variable, in_toml, read = FROM_ELSEWHERE[name]

    by_keyword = Settings.load(**{name: keyword})  # type: ignore[arg-type] # any name, any value
    (elsewhere / "pyproject.toml").write_text(f"[tool.holdfast]\n{name} = {in_toml}\n")
    by_file = Settings.load()
    (elsewhere / "pyproject.toml").write_text("")
    monkeypatch.setenv(f"HOLDFAST_{name.upper()}", variable)
    by_variable = Settings.load()

    for settings in (by_keyword, by_file, by_variable):
        assert getattr(settings, OTHER_NAMES[name]) == read


def test_this_test_knows_every_other_name() -> None:
    assert set(FROM_ELSEWHERE) == set(OTHER_NAMES)


def test_a_stronger_place_wins_whatever_name_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_POLL", "2s")

    assert Settings.load(processor_interval="3s").poll == 3.0


def test_two_names_for_one_setting_in_one_place_are_refused() -> None:
    with pytest.raises(ConfigError, match="stale_claim_timeout: is another word for lease; give"):
        Settings.load(lease="30s", stale_claim_timeout="5m")


def test_a_bad_value_is_blamed_on_the_name_that_was_used() -> None:
    with pytest.raises(ConfigError, match="batch_size: expected a whole number, 1 or more, got 0"):
        Settings.load(batch_size=0)


def test_a_retry_delay_is_waited_exactly_every_time() -> None:
    policy = Settings.load(retry_delay="PT10M").retry_policy

    assert [policy.delay(n, draw=0.1) for n in (1, 2, 9)] == [600.0, 600.0, 600.0]
