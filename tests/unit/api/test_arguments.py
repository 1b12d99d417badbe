"""Arguments: what goes in comes out, and what cannot is refused with its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from holdfast.errors import InvalidArguments, PayloadRefused
from holdfast.testing import MemoryApp


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: float
    raw: bytes = b""
    tags: set[str] = field(default_factory=set)


@dataclass
class Loose:
    it: str | bytes


@dataclass(eq=False)
class LooseWithoutEq:
    it: str | bytes


class Item(BaseModel):
    name: str
    price: Decimal
    at: datetime | None = None


class Node(BaseModel):
    children: list[Node] = []


class Size(NamedTuple):
    width: int
    height: int


class Sent(TypedDict, total=False):
    subject: str


ROUND_TRIPS: list[tuple[Any, Any]] = [
    (int, 2**63 - 1),
    (int, -(2**63)),
    (bool, True),
    (float, 0.1),
    (str, "naïve – 日本 🚀"),
    (bytes, b"\x00\xff"),
    (bytes | None, b"\xff"),
    (list[bytes], [b"\xff", b""]),
    (datetime, datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    (date, date(2030, 1, 2)),
    (time, time(3, 4)),
    (timedelta, timedelta(days=1, microseconds=1)),
    (UUID, UUID("01a1e11b-abb1-7333-9c1e-c570d72d4363")),
    (Decimal, Decimal("1.10")),
    (Path, Path("a/b")),
    (Colour, Colour.RED),
    (Level, Level.LOW),
    (Literal["a", 1], 1),
    (set[int], {1, 2}),
    (frozenset[str], frozenset({"a"})),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2, 3)),
    (dict[int, Decimal], {1: Decimal("2.5")}),
    (dict[UUID, date], {UUID(int=1): date(2030, 1, 1)}),
    (Point, Point(1.5, b"\xff", {"a"})),
    (list[Point], [Point(1.0)]),
    (Item, Item(name="a", price=Decimal("1.10"), at=datetime(2030, 1, 1, tzinfo=UTC))),
    (Node, Node(children=[Node()])),
    (Size, Size(1, 2)),
    (Sent, {"subject": "hi"}),
    (int | str | None, "1"),
    (Any, {"a": [1, None, True, 1.5, "x"]}),
]


@pytest.mark.parametrize(("hint", "value"), ROUND_TRIPS, ids=lambda x: str(x)[:40])
def test_an_argument_arrives_as_it_was_sent(app: MemoryApp, hint: Any, value: Any) -> None:
    def handler(it: Any) -> None: ...

    handler.__annotations__["it"] = hint
    task = app.task(handler)

    args, kwargs = task.load(task.call(value).payload)

    assert (args, kwargs) == ((), {"it": value})
    assert type(kwargs["it"]) is type(value)


@pytest.mark.parametrize(("hint", "value"), ROUND_TRIPS, ids=lambda x: str(x)[:40])
def test_a_result_arrives_as_it_was_returned(app: MemoryApp, hint: Any, value: Any) -> None:
    def handler() -> Any:
        return value

    handler.__annotations__["return"] = hint
    task = app.task(handler)

    back = task.load_result(task.dump_result(value))

    assert back == value
    assert type(back) is type(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), inner
    ),
    max_leaves=20,
)  # fmt: skip


@given(JSON)
def test_any_json_arrives_as_it_was_sent(value: Any) -> None:
    app = MemoryApp()

    @app.task
    def keep(it: Any) -> Any:
        return it

    assert keep.load(keep.call(value).payload) == ((), {"it": value})
    assert keep.load_result(keep.dump_result(value)) == value


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str | bytes, b"\xff"),
        (bytes | str, "text"),
        (str | datetime, datetime(2030, 1, 1, tzinfo=UTC)),
        (datetime | str, "2030-01-01T00:00:00Z"),
        (Decimal | str, "1.5"),
        (set[int] | list[int], {1}),
        (dict[str, Any], {"at": datetime(2030, 1, 1, tzinfo=UTC)}),
        (list[Any], [{1, 2}]),
        (Loose, Loose(b"x")),
        (LooseWithoutEq, LooseWithoutEq(b"x")),
    ],
    ids=str,
)
def test_a_value_that_would_arrive_as_something_else_is_refused(
    app: MemoryApp, hint: Any, value: Any
) -> None:
    def handler(it: Any) -> None: ...

    handler.__annotations__["it"] = hint
    task = app.task(handler)

    with pytest.raises(InvalidArguments, match=r"it: would arrive as .*annotate it with one type"):
        task.call(value)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str | bytes, "text"),
        (datetime | str, datetime(2030, 1, 1, tzinfo=UTC)),
        (datetime | str, "text"),
        (datetime | int, datetime(2030, 1, 1, tzinfo=UTC)),
        (int | float, 1.0),
        (bool | int, 1),
        (Colour | int, Colour.RED),
        (dict[str, Any], {"a": [1, (2, None)]}),
        (Loose, Loose("x")),
        (LooseWithoutEq, LooseWithoutEq("x")),
        (Item | Node, Node()),
        (Item | Point, Point(1.0)),
    ],
    ids=str,
)
def test_a_union_passes_as_long_as_json_can_tell(app: MemoryApp, hint: Any, value: Any) -> None:
    def handler(it: Any) -> None: ...

    handler.__annotations__["it"] = hint
    task = app.task(handler)

    arrived = task.load(task.call(value).payload)[1]["it"]

    assert type(arrived) is type(value)


def test_a_payload_says_what_was_given_in_the_order_of_the_signature(app: MemoryApp) -> None:
    @app.task
    def mail(
        to: str, copies: int = 1, *, urgent: bool = False, note: str | None = None
    ) -> None: ...

    payload = mail.call(urgent=True, to="ann").payload

    assert payload == b'{"to":"ann","urgent":true}'


def test_a_default_of_none_needs_no_optional_annotation(app: MemoryApp) -> None:
    @app.task
    def mail(to: str = None) -> None: ...  # type: ignore[assignment] # noqa: RUF013

    assert mail.load(mail.call().payload) == ((), {})
    assert mail.load(mail.call(to="ann").payload) == ((), {"to": "ann"})


def test_a_default_without_a_json_form_is_left_to_the_function(app: MemoryApp) -> None:
    missing = object()

    @app.task
    def mail(to: str = missing) -> bool:  # type: ignore[assignment] # a sentinel, as people do
        return to is missing

    assert mail.call().payload == b"{}"
    args, kwargs = mail.load(b"{}")
    assert mail.handler(*args, **kwargs) is True


def test_every_kind_of_parameter_is_called_back_as_it_was_called(app: MemoryApp) -> None:
    @app.task
    def odd(a: int, /, b: int, *rest: float, c: int = 3, **extra: str) -> None: ...

    assert odd.load(odd.call(1, 2, c=4).payload) == ((1,), {"b": 2, "c": 4})
    assert odd.load(odd.call(1, b=2).payload) == ((1,), {"b": 2})
    call = odd.call(1, 2, 3.5, 4, c=5, a="x", z="y")
    assert call.payload == b'{"a":1,"b":2,"rest":[3.5,4.0],"c":5,"extra":{"a":"x","z":"y"}}'
    assert odd.load(call.payload) == ((1, 2, 3.5, 4.0), {"c": 5, "a": "x", "z": "y"})


def test_typed_keywords_are_checked_one_by_one(app: MemoryApp) -> None:
    @app.task
    def send(**what: Unpack[Sent]) -> None: ...

    assert send.load(send.call(subject="hi").payload) == ((), {"subject": "hi"})
    with pytest.raises(InvalidArguments, match=r"what\.subject: input should be a valid string"):
        send.call(subject=3)  # type: ignore[arg-type] # the point


def test_json_by_name_is_read_as_json(app: MemoryApp) -> None:
    @app.task
    def odd(raw: bytes, /, at: datetime, *rest: int, **extra: int) -> None: ...

    arguments = {"raw": "_w==", "at": "2030-01-01T00:00:00Z", "rest": [1], "more": 2}
    call = odd.options().call_json(arguments)

    at = datetime(2030, 1, 1, tzinfo=UTC)
    assert odd.load(call.payload) == ((b"\xff", at, 1), {"more": 2})


class TestWhatDoesNotFit:
    @pytest.fixture
    def order(self, app: MemoryApp) -> Any:
        @app.task(name="shop.order")
        def order(customer: int, items: list[Item], note: str = "") -> None: ...

        return order

    @pytest.mark.parametrize(
        ("args", "kwargs", "path", "text"),
        [
            ((), {"items": []}, "customer", "field required"),
            (("x", []), {}, "customer", "valid integer"),
            ((1, "x"), {}, "items", "valid list"),
            ((1, [{"name": "a", "price": "x"}]), {}, "items[0].price", "valid decimal"),
            ((1, [{"name": "a", "price": 1}, {}]), {}, "items[1].name", "field required"),
            ((1, [], "", 4), {}, "arguments", "3 at most can be given by position, got 4"),
            ((1, []), {"customer": 2}, "customer", "given twice"),
            ((1, []), {"notes": 2}, "notes", "did you mean 'note'?"),
            ((1, []), {"note": None}, "note", "valid string"),
        ],
    )
    def test_is_refused_with_its_place_the_task_and_the_reason(
        self, order: Any, args: Any, kwargs: Any, path: str, text: str
    ) -> None:
        with pytest.raises(InvalidArguments) as refused:
            order.call(*args, **kwargs)

        assert refused.value.problems[0][0] == path
        assert text in refused.value.problems[0][1]
        assert "task 'shop.order'" in str(refused.value)
        assert "Nothing was submitted." in str(refused.value)

    def test_all_problems_are_listed_at_once(self, order: Any) -> None:
        with pytest.raises(InvalidArguments) as refused:
            order.call("x", "y", 3)

        assert [path for path, _ in refused.value.problems] == ["customer", "items", "note"]

    @pytest.mark.parametrize(
        ("payload", "path"),
        [
            (b'{"customer":1}', "items"),
            (b'{"customer":1,"items":[],"gone":2}', "gone"),
            (b"[]", "arguments"),
            (b'{"customer":', "arguments"),
        ],
    )
    def test_a_stored_payload_is_checked_again_before_the_run(
        self, order: Any, payload: bytes, path: str
    ) -> None:
        with pytest.raises(InvalidArguments, match="another version of the function") as refused:
            order.load(payload)

        assert refused.value.problems[0][0] == path
        assert order.is_retriable(refused.value) is False

    def test_a_stored_payload_may_lack_what_has_a_default_now(self, order: Any) -> None:
        assert order.load(b'{"customer":1,"items":[]}') == ((), {"customer": 1, "items": []})


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


class TestWhatNoStoreMayHold:
    @pytest.mark.parametrize(
        ("value", "path", "text"),
        [
            ("a\x00b", "it", "NUL"),
            ({"k": ["", "\x00"]}, "it.k[1]", "NUL"),
            ({"\x00": 1}, "it key", "NUL"),
            ("\ud800", "it", "lone surrogate"),
            (float("nan"), "it", "no JSON number"),
            ([1.0, float("inf")], "it[1]", "no JSON number"),
            (2**63, "it", "beyond 64 bits"),
            ({"n": -(2**63) - 1}, "it.n", "beyond 64 bits"),
            pytest.param(10**5000, "it", "beyond 64 bits", id="huge"),
            ({1: 2}, "it", "JSON keys are text"),
            ({1, 2}, "it", "annotate the parameter"),
            (datetime(2030, 1, 1, tzinfo=UTC), "it", "annotate the parameter"),
            (object(), "it", "annotate the parameter"),
        ],
    )
    @pytest.mark.parametrize("annotation", [Any, None], ids=["Any", "unannotated"])
    def test_is_refused_with_its_path(
        self, app: MemoryApp, value: Any, path: str, text: str, annotation: Any
    ) -> None:
        def anything(it): ...  # type: ignore[no-untyped-def] # the point

        if annotation is not None:
            anything.__annotations__["it"] = annotation
        task = app.task(anything)

        with pytest.raises(PayloadRefused) as refused:
            task.call(value)

        assert (refused.value.path, text in str(refused.value)) == (path, True)

    @pytest.mark.parametrize(
        ("hint", "value", "path"),
        [
            (str, "\x00", "it"),
            (str, "\udfff", "it"),
            (dict[str, str], {"a": "\x00"}, "it.a"),
            (float, float("nan"), "it"),
            (list[float], [float("-inf")], "it[0]"),
            (Point, Point(float("nan")), "it.x"),
            (list[int], [2**63], "it[0]"),
            (Node, Node(children=[Node()] * 2), None),
        ],
    )
    def test_holds_for_annotated_parameters_too(
        self, app: MemoryApp, hint: Any, value: Any, path: str | None
    ) -> None:
        def anything(it: Any) -> None: ...

        anything.__annotations__["it"] = hint
        task = app.task(anything)
        if path is None:
            assert task.call(value)
            return

        with pytest.raises(PayloadRefused) as refused:
            task.call(value)

        assert refused.value.path == path

    def test_depth_64_passes_and_depth_65_does_not(self, app: MemoryApp) -> None:
        @app.task
        def deep(it: Any) -> None: ...

        assert deep.load(deep.call(nested(63)).payload) == ((), {"it": nested(63)})
        with pytest.raises(PayloadRefused, match="nested deeper than 64 levels"):
            deep.call(nested(64))

    def test_a_cycle_and_an_abyss_are_refused(self, app: MemoryApp) -> None:
        @app.task
        def deep(it: list[Any]) -> None: ...

        cycle: list[Any] = []
        cycle.append(cycle)

        for bad in (cycle, nested(5000)):
            with pytest.raises(InvalidArguments):
                deep.call(bad)

    def test_too_much_is_refused_at_submit_with_the_way_out(self) -> None:
        app = MemoryApp(max_payload="1kB")

        @app.task
        def write(text: str) -> None: ...

        write.submit("x" * 900)
        with pytest.raises(PayloadRefused, match=r"the limit is 1,000 \(`max_payload`\)"):
            write.submit("x" * 1000)
        assert app.count() == 1

    def test_bytes_that_are_no_text_in_a_model_name_the_fix(self, app: MemoryApp) -> None:
        class Plain(BaseModel):
            raw: bytes

        class Wise(BaseModel):
            model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
            raw: bytes

        @app.task
        def keep(plain: Plain | None = None, wise: Wise | None = None) -> None: ...

        wise = Wise(raw=b"\xff")
        assert keep.load(keep.call(wise=wise).payload)[1]["wise"] == wise
        with pytest.raises(InvalidArguments, match="ser_json_bytes"):
            keep.call(Plain(raw=b"\xff"))


class TestResults:
    def test_what_the_annotation_does_not_describe_is_kept_as_it_is(self, app: MemoryApp) -> None:
        @app.task
        def count() -> int: ...  # type: ignore[empty-body]

        stored = count.dump_result({"not": ["an", "int"]})

        assert orjson.loads(stored) == {"not": ["an", "int"]}
        with pytest.raises(InvalidArguments, match="does not fit its return annotation"):
            count.load_result(stored)

    @pytest.mark.parametrize("value", [None, 0, -5, 2**63 - 1, True, "", "a\n"])
    def test_plain_results_take_the_short_way_to_the_same_bytes(
        self, app: MemoryApp, value: Any
    ) -> None:
        @app.task
        def anything(): ...  # type: ignore[no-untyped-def] # the point

        assert anything.dump_result(value) == orjson.dumps(value)

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("\x00", "NUL"),
            ("\ud800", "surrogate"),
            (2**63, "64 bits"),
            (float("nan"), "no JSON number"),
            (object(), "no JSON form"),
            (nested(65), "64 levels"),
            ("x" * 2_000_000, "max_result"),
            (["x" * 2_000_000], "max_result"),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_what_cannot_be_kept_is_refused(self, app: MemoryApp, value: Any, text: str) -> None:
        @app.task
        def anything(): ...  # type: ignore[no-untyped-def] # the point

        with pytest.raises(PayloadRefused, match=text) as refused:
            anything.dump_result(value)

        assert anything.is_retriable(refused.value) is False
