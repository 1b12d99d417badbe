"""What people coming from other queues type: taken where it means the same, else told how."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import InvalidOption, Retry, exponential, fixed
from holdfast.core.attempt import Claim
from holdfast.core.limits import UNLIMITED
from holdfast.core.other_words import ADVICE, SAME
from holdfast.core.task import Cause, Priority, TaskId, WorkerId
from holdfast.definitions.options import SubmitKeywords, TaskKeywords, read_options
from holdfast.testing import MemoryApp

OURS = {**TaskKeywords.__annotations__, **SubmitKeywords.__annotations__}


def test_no_word_is_ours_and_each_means_an_option_of_ours() -> None:
    assert not (SAME.keys() | ADVICE.keys()) & OURS.keys()
    assert not SAME.keys() & ADVICE.keys()
    assert set(SAME.values()) <= OURS.keys()


def test_another_queues_word_for_the_same_is_taken_at_a_submit() -> None:
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)

    read = read_options({"timeout_seconds": 5, "countdown": 3, "queue_name": "mail", "retries": 2})

    assert (read.timeout, read.delay, read.queue, read.max_retries) == (5.0, 3.0, "mail", 2)
    assert read_options({"eta": noon}).run_at == noon


def test_another_queues_word_for_the_same_is_taken_at_the_decorator(app: MemoryApp) -> None:
    options: dict[str, Any] = {"actor_name": "a.b", "job_timeout": 60, "autoretry_for": [KeyError]}
    task = app.task(**options)(lambda: None)

    assert (task.name, task.timeout, task.retry_for) == ("a.b", 60.0, (KeyError,))


def test_both_words_for_one_option_are_refused() -> None:
    with pytest.raises(InvalidOption, match=r"^countdown: is another word for delay; give one"):
        read_options({"delay": 5, "countdown": 5})


def test_a_later_word_wins_over_an_earlier_one_of_another_name(app: MemoryApp) -> None:
    @app.task
    def work() -> None: ...

    later: dict[str, Any] = {"timeout_seconds": 6}
    assert work.options(timeout=5).options(**later).submit().task().timeout == 6.0
    assert work.options(timeout=5).options(timeout=None).submit().task().timeout == 600.0


@pytest.mark.parametrize("word", ADVICE)
def test_a_word_that_means_something_else_is_refused_with_how_to_write_it(
    word: str, app: MemoryApp
) -> None:
    other: dict[str, Any] = {word: 5}
    for refuse in (lambda: read_options(other), lambda: app.task(**other)(lambda: None)):
        with pytest.raises(InvalidOption) as refused:
            refuse()
        assert str(refused.value) == f"{word}: {ADVICE[word]}."


def test_an_option_of_the_other_place_is_sent_there(app: MemoryApp) -> None:
    elsewhere: dict[str, Any] = {"countdown": 5}
    with pytest.raises(InvalidOption, match=r"countdown: is an option of one submit.*options\(del"):
        app.task(**elsewhere)(lambda: None)
    with pytest.raises(InvalidOption, match=r"is an option of the task.*@app\.task\(retry_for=…\)"):
        read_options({"autoretry_for": KeyError})


def test_no_option_at_all_is_as_good_as_none() -> None:
    nothing = dict.fromkeys(SubmitKeywords.__annotations__)

    assert read_options(nothing) == read_options({})


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (0, "low"), (2, "low"), (3, "normal"), (5, "normal"), (6, "high"), (8, "high"),
        (9, "critical"), ("9", "critical"), ("HIGH", "high"), ("Medium", "normal"),
    ],
)  # fmt: skip
def test_a_priority_may_be_a_number_or_a_word_in_any_case(given: object, read: str) -> None:
    assert read_options({"priority": given}).priority is Priority(read)


@pytest.mark.parametrize("given", [10, -1, True, 5.0, "urgent", "", None.__class__])
def test_a_priority_that_is_none_is_refused_with_the_words_and_the_numbers(given: object) -> None:
    with pytest.raises(InvalidOption, match=r"critical, high, normal, low, or a number from 0 .*9"):
        read_options({"priority": given})


def test_a_number_for_the_backoff_is_answered_with_max_retries() -> None:
    with pytest.raises(InvalidOption, match=r"how often to try again is `max_retries`"):
        read_options({"retry": 5})


@pytest.mark.parametrize(
    ("words", "policy"),
    [
        ("exponential", exponential()),
        ("exponential(1s, 5, cap=10m)", exponential(1, 5, cap=600)),
        ("exponential(base=1s, multiplier=3, jitter=false)", exponential(1, 3, jitter=False)),
        ("fixed(10m)", fixed(600)),
        ("fixed(delay=5s, jitter=true)", fixed(5, jitter=True)),
        ({"base": "1s", "multiplier": 3}, exponential(1, 3)),
        ({"delay": 60}, fixed(60)),
    ],
)
def test_a_backoff_may_be_written_in_words(words: object, policy: object) -> None:
    assert read_options({"retry": words}).retry == policy


@pytest.mark.parametrize(
    "words",
    ["sometimes", "fixed(soon)", "exponential(1s, x)", "fixed(1s, 2)", "fixed(a=1)", {"bas": 1},
     {"base": "1s", "jitter": "no"}, {"delay": 1, "base": 2}, [], "exponential(1s, 2, 3, 4, 5)"],
)  # fmt: skip
def test_words_that_are_no_backoff_are_refused(words: object) -> None:
    with pytest.raises(InvalidOption, match=r"^retry: expected a backoff such as"):
        read_options({"retry": words})


def test_only_what_retry_for_names_is_retriable(app: MemoryApp) -> None:
    @app.task(retry_for=(ConnectionError, LookupError), no_retry_for=KeyError)
    def fetch() -> None: ...

    errors = (ConnectionResetError(), IndexError(), Retry(), ValueError(), KeyError())
    assert [fetch.is_retriable(error) for error in errors] == [True, True, True, False, False]


@pytest.mark.parametrize("word", ["none", "None", "inf", math.inf])
def test_a_timeout_of_none_is_no_limit(app: MemoryApp, word: Any) -> None:
    @app.task(timeout=word)
    def work() -> None: ...

    assert work.submit().task().timeout is None
    assert work.options(timeout="5s").submit().task().timeout == 5.0


def test_unlimited_retries_are_never_used_up_and_their_waits_stay_capped(app: MemoryApp) -> None:
    @app.task(max_retries="unlimited", timeout=10, timeout_growth=1.5, timeout_cap="1m")
    def work() -> None: ...

    task = work.submit().task()
    claim = Claim(
        TaskId(task.id), 10_001, WorkerId("w"), task.name, task.queue, task.priority, task.payload,
        10_000, task.max_retries, 0, task.timeout, None, None, None, Cause.RETRY, None, None, False,
    )  # fmt: skip

    assert claim.max_retries == UNLIMITED
    assert work.backoff(claim, lambda: 1.0, app.settings.retry_policy)(10_001) == 3600.0
    assert work.timeout_of(claim) == 60.0
