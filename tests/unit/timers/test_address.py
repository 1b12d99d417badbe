"""`timer_url` is read, or refused with what was expected."""

from __future__ import annotations

import sys

import pytest

from holdfast.errors import ConfigError
from holdfast.settings import Settings
from holdfast.timers.address import parse_timer_url
from holdfast.wiring import open_timer

TARGET = "https://shop.example/v1/tasks/execute"


def test_a_queue_and_its_target_are_read() -> None:
    address = parse_timer_url(
        f"gcloud://shop/europe-west1/wake?target={TARGET}&oidc=a@shop.example&deadline=5m"
    )

    assert address.queue == "projects/shop/locations/europe-west1/queues/wake"
    assert (address.target, address.audience, address.oidc) == (TARGET, TARGET, "a@shop.example")
    assert (address.deadline, address.horizon) == (300, 30 * 86_400)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqs://shop/eu/wake", "expected gcloud://project"),
        (f"gcloud://shop/wake?target={TARGET}", "expected gcloud://project"),
        ("gcloud://shop/eu/wake", "target: expected the https://"),
        ("gcloud://shop/eu/wake?target=http://shop.example/", "target: expected the https://"),
        (f"gcloud://shop/eu/wake?target={TARGET}&deadline=2h", "deadline: expected from 15 s"),
        (f"gcloud://shop/eu/wake?target={TARGET}&horizon=31d", "horizon: expected from 60 s"),
        (f"gcloud://shop/eu/wake?target={TARGET}&dedline=5m", "no such word: 'dedline'"),
    ],
)
def test_a_wrong_url_is_refused_with_what_was_expected(url: str, expected: str) -> None:
    with pytest.raises(ConfigError, match="timer_url") as caught:
        parse_timer_url(url)

    assert expected in str(caught.value)


def test_timers_that_nobody_could_know_are_refused() -> None:
    settings = Settings(timer_url=f"gcloud://shop/eu/wake?target={TARGET}")

    with pytest.raises(ConfigError, match="timer_secret"):
        open_timer(settings)


def test_without_the_client_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "holdfast.timers.cloud_tasks", raising=False)
    monkeypatch.setitem(sys.modules, "google.cloud.tasks_v2", None)
    settings = Settings(timer_url=f"gcloud://a/b/c?target={TARGET}", timer_secret="x" * 16)

    with pytest.raises(
        ConfigError, match=r"timer_url: gcloud://.*pip install 'holdfast\[gcloud\]'"
    ):
        open_timer(settings)


def test_secrets_are_not_shown() -> None:
    settings = Settings.load(timer_secret="a secret of ours, long", timer_url="gcloud://a/b/c")

    assert "a secret of ours" not in repr(settings)
