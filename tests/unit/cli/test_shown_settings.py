"""What doctor shows of settings is pasted into bug reports: no secret is in it."""

from __future__ import annotations

import json

import pytest

from holdfast.setting_sources import settings_in_force
from holdfast.settings import Settings


def shown(settings: Settings, name: str) -> object:
    return next(each.value for each in settings_in_force(settings, {}, {}) if each.name == name)


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("postgresql://me:word@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:w@rd:x@host/db", "postgresql://me:***@host/db"),
        ("mongodb://me:word@h1:1,h2:2/db?w=1", "mongodb://me:***@h1:1,h2:2/db?w=1"),
        ("postgresql:///db?user=me&password=word&x=1", "postgresql:///db?user=me&password=***&x=1"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_the_password_of_a_url_is_stars(url: str, safe: str) -> None:
    assert shown(Settings(url=url), "url") == safe


def test_a_password_of_redis_without_a_user_is_stars() -> None:
    assert shown(Settings(redis_url="redis://:word@host"), "redis_url") == "redis://:***@host"


def test_values_that_json_has_no_word_for_are_words() -> None:
    settings = Settings.load(timeout={"low": "none"}, max_retries="unlimited", retry="fixed(5s)")

    assert shown(settings, "timeout") == {"low": "none"}
    assert shown(settings, "max_retries") == "unlimited"
    assert json.dumps(shown(settings, "retry")).startswith('{"base": 5.0')


def test_a_secret_is_stars_if_there_is_one() -> None:
    assert shown(Settings(callback_secret="x" * 40), "callback_secret") == "***"
    assert shown(Settings(), "callback_secret") is None
