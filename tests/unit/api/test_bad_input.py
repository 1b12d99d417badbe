"""Bad input: a clear error that names the place, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.core.query import TaskFilter
from holdfast.errors import (
    IdempotencyConflict,
    InvalidArguments,
    InvalidOption,
    PayloadRefused,
    UnknownTask,
)

MIB = 1024 * 1024


class Shelf:
    """An app with one task that takes everything."""

    def __init__(self) -> None:
        self.app = Holdfast(url="memory://")

        @self.app.task(name="take")
        def take(
            text: str = "", number: float = 0.0, whole: int = 0, things: Any = None
        ) -> None: ...

        self.take = take


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    shelf = Shelf()
    shelf.take.submit(text="the one that is there before")
    yield shelf
    shelf.app.close()


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


Case = tuple[str, Callable[[Shelf], object], type[Exception], tuple[str, ...]]

CASES: list[Case] = [
    ("NUL", lambda s: s.take.submit(text="a\x00b"), PayloadRefused, ("text", "NUL")),
    (
        "NUL deep inside",
        lambda s: s.take.submit(things={"a": [1, {"b": "\x00"}]}),
        PayloadRefused,
        ("things.a[1].b", "NUL"),
    ),
    (
        "NUL in a key",
        lambda s: s.take.submit(things={"a\x00": 1}),
        PayloadRefused,
        ("things", "NUL"),
    ),
    ("lone surrogate", lambda s: s.take.submit(text="\ud800"), InvalidArguments, ("text",)),
    (
        "lone surrogate inside",
        lambda s: s.take.submit(things=["ok", "\udfff"]),
        PayloadRefused,
        ("things[1]", "surrogate"),
    ),
    ("NaN", lambda s: s.take.submit(number=float("nan")), InvalidArguments, ("number",)),
    (
        "infinity inside",
        lambda s: s.take.submit(things=[float("inf")]),
        PayloadRefused,
        ("things[0]", "inf"),
    ),
    ("depth 65", lambda s: s.take.submit(things=nested(65)), PayloadRefused, ("things", "64")),
    ("2^63", lambda s: s.take.submit(whole=2**63), InvalidArguments, ("whole", "64 bits")),
    (
        "-2^63 - 1 inside",
        lambda s: s.take.submit(things={"n": -(2**63) - 1}),
        PayloadRefused,
        ("things.n", "64 bits"),
    ),
    (
        "2 MiB",
        lambda s: s.take.submit(text="x" * 2 * MIB),
        PayloadRefused,
        ("2,097", "1,048,576", "max_payload"),
    ),
    ("wrong type", lambda s: s.take.submit(whole="many"), InvalidArguments, ("whole", "integer")),  # type: ignore[arg-type] # the point
    ("no JSON form", lambda s: s.take.submit(things=object()), InvalidArguments, ("things",)),
    ("unknown argument", lambda s: s.take.submit(colour=1), InvalidArguments, ("colour",)),  # type: ignore[call-arg] # the point
    (
        "unknown task",
        lambda s: s.app.submit_by_name("take2", {}),
        UnknownTask,
        ("'take2'", "Did you mean 'take'"),
    ),
    (
        "bad duration",
        lambda s: s.take.options(delay="5 parsecs").submit(),
        InvalidOption,
        ("delay", "5 parsecs"),
    ),
    ("negative delay", lambda s: s.take.options(delay=-1).submit(), InvalidOption, ("delay",)),
    ("NaN delay", lambda s: s.take.options(delay=float("nan")).submit(), InvalidOption, ("delay",)),
    ("bad timeout", lambda s: s.take.options(timeout="soon").submit(), InvalidOption, ("timeout",)),
    (
        "bad timezone",
        lambda s: s.take.options(run_at="2030-01-01T08:00", timezone="Mars/Olympus").submit(),
        InvalidOption,
        ("timezone", "Mars/Olympus"),
    ),
    (
        "no timezone",
        lambda s: s.take.options(run_at=datetime(2030, 1, 1)).submit(),  # noqa: DTZ001 - the point
        InvalidOption,
        ("run_at", "timezone"),
    ),
    (
        "bad instant",
        lambda s: s.take.options(run_at="tomorrow-ish").submit(),
        InvalidOption,
        ("run_at", "tomorrow-ish"),
    ),
    (
        "bad priority",
        lambda s: s.take.options(priority="urgent").submit(),
        InvalidOption,
        ("priority", "urgent"),
    ),
    (
        "NUL in a key option",
        lambda s: s.take.options(unique_key="a\x00").submit(),
        ValueError,
        ("unique_key",),
    ),
    ("NUL in a queue", lambda s: s.take.options(queue="a\x00").submit(), ValueError, ("queue",)),
    ("NUL in a tag", lambda s: s.take.options(tags=["a\x00"]).submit(), ValueError, ("tag",)),
    (
        "surrogate in a lock",
        lambda s: s.take.options(lock="\ud800").submit(),
        ValueError,
        ("lock",),
    ),
    (
        "negative retries",
        lambda s: s.take.options(max_retries=-1).submit(),
        InvalidOption,
        ("max_retries",),
    ),
    (
        "expired already",
        lambda s: s.take.options(expires="-1s").submit(),
        InvalidOption,
        ("expires",),
    ),
    ("unknown option", lambda s: s.take.options(colour=1), InvalidOption, ("colour",)),  # type: ignore[call-arg] # the point
    (
        "one bad call among good ones",
        lambda s: s.app.submit_many([s.take.call(), s.take.call(text="x" * 2 * MIB)]),
        PayloadRefused,
        ("max_payload",),
    ),
]


@pytest.mark.parametrize(
    ("submit", "error", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_bad_input_is_refused_with_its_place_and_writes_nothing(
    shelf: Shelf,
    submit: Callable[[Shelf], object],
    error: type[Exception],
    words: tuple[str, ...],
) -> None:
    with pytest.raises(error) as caught:
        submit(shelf)

    said = str(caught.value)
    assert [word for word in words if word not in said] == []
    assert shelf.app.count(TaskFilter()) == 1


def test_the_same_idempotency_key_with_another_body_is_refused(shelf: Shelf) -> None:
    first = shelf.take.options(idempotency_key="k").submit(text="one")

    with pytest.raises(IdempotencyConflict, match=first.id):
        shelf.take.options(idempotency_key="k").submit(text="other")

    assert shelf.app.count(TaskFilter()) == 2


def test_what_is_just_allowed_is_kept_exactly(shelf: Shelf) -> None:
    things = {"deep": nested(62), "low": -(2**63), "high": 2**63 - 1, "text": "\u0001 é \U0001f600"}

    handle = shelf.take.submit(things=things)

    _, arguments = shelf.take.load(handle.task().payload)
    assert arguments["things"] == things
