"""The kinds of text and numbers that requests are made of, each with its bounds.

What a pattern here lets through must be accepted by the options' own readers, and what it stops
must be refused by them or not matter: the API's description is only true if both hold.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from holdfast.core.duration import LONGEST
from holdfast.core.lifecycle import OTHER_WORDS
from holdfast.core.limits import MOST_RETRIES
from holdfast.core.payload import MAX_INT, MIN_INT
from holdfast.core.priority import parse_priority
from holdfast.core.task import State
from holdfast.core.trace import EXAMPLE, parse_traceparent
from holdfast.definitions.readers import LONGEST_KEY, LONGEST_NAME, MOST_TAGS, tags_of

LETTERS: Final = (
    "!-)+.-~\u00a1-\u00ac\u00ae-\u0377\u0391-\u03a1\u03a3-\u052f\u05d0-\u05ea\u0620-\u064a"
    "\u0904-\u0939\u0e01-\u0e30\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3-"
)
"""Printable ASCII but `,` and `*`, and the letters of most scripts. A name may hold any printable
character (`read_name`); a regular expression cannot say that, and this is close to it."""
NAME: Final = f"^[{LETTERS}]+$"
NO_NUL: Final = r"^[^\x00]*$"
INSTANT: Final = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]"
    r"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)

PORT: Final = (
    r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
)
URL: Final = rf"^https?://[A-Za-z0-9][A-Za-z0-9.-]*(:({PORT}))?(/[!-~]*)?$"

Name = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=NAME, strict=True)
]
Key = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST_KEY, pattern=NO_NUL, strict=True)
]
Tag = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=NO_NUL, strict=True)
]


def _tags(value: object) -> object:
    return tags_of("tags", value) if isinstance(value, dict) else value


Tags = Annotated[
    list[Tag],
    Field(max_length=MOST_TAGS),
    BeforeValidator(_tags),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "array",
                    "items": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": LONGEST_NAME,
                        "pattern": NO_NUL,
                    },
                    "maxItems": MOST_TAGS,
                },
                {
                    "type": "object",
                    "description": '`{"batch": "daily"}` is the tag `batch=daily`.',
                    "propertyNames": {"maxLength": 99, "pattern": NO_NUL},
                    "additionalProperties": {
                        "anyOf": [
                            {"type": "string", "maxLength": 100, "pattern": NO_NUL},
                            {"type": "integer", "minimum": MIN_INT, "maximum": MAX_INT},
                        ]
                    },
                    "maxProperties": MOST_TAGS,
                },
            ]
        }
    ),
]
Names = Annotated[list[Name], Field(max_length=MOST_TAGS)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST, allow_inf_nan=False)]
Limit = Annotated[float, Field(ge=0.001, le=LONGEST, allow_inf_nan=False)]
TimeLimit = Limit | Literal["none"]
Retries = Annotated[int, Field(ge=0, le=MOST_RETRIES)] | Literal["unlimited"]
Pace = Annotated[float, Field(ge=0.01, le=1e6, allow_inf_nan=False)]
PRIORITY_WORDS: Final = ("critical", "high", "normal", "low", "medium")


def _priority_word(value: object) -> object:
    """A priority in our word for it."""
    priority = parse_priority(value)
    if priority is None:
        words = ", ".join(PRIORITY_WORDS)
        raise PydanticCustomError(
            "priority", f"expected {words}, or a number from 0 to 9; larger is more urgent"
        )
    return priority.value


PriorityWord = Annotated[
    Literal["critical", "high", "normal", "low", "medium"],
    BeforeValidator(_priority_word),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": list(PRIORITY_WORDS)},
                {"type": "integer", "minimum": 0, "maximum": 9},
            ]
        }
    ),
]
YesNo = Literal["true", "false"]
Instant = Annotated[
    str,
    StringConstraints(pattern=INSTANT, max_length=64, strict=True),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "examples": ["2030-01-01T10:00:00+02:00"]}
    ),
]
Uuid = Annotated[
    str,
    StringConstraints(pattern="^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$", strict=True),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]
STATUS_WORDS: Final = (*(state.value for state in State), *OTHER_WORDS)
Status = Annotated[
    str,
    StringConstraints(pattern=f"^({'|'.join(STATUS_WORDS)})$"),
    WithJsonSchema({"type": "string", "enum": list(STATUS_WORDS)}),
]
Statuses = Annotated[
    list[Status],
    Field(min_length=1),
    WithJsonSchema(
        {
            "type": "array",
            "minItems": 1,
            "anyOf": [
                {"items": {"type": "string", "enum": [w for w in STATUS_WORDS if w != "timeout"]}},
                {"items": {"type": "string", "enum": ["timeout"]}},
            ],
        }
    ),
]
"""`timeout` stands alone: it is no state here, but how some dead letters came to be."""
Url = Annotated[str, StringConstraints(pattern=URL, max_length=2000)]
Traceparent = Annotated[
    str,
    AfterValidator(parse_traceparent),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": "^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$",
            "examples": [EXAMPLE],
        }
    ),
]
Cursor = Annotated[
    str,
    StringConstraints(
        pattern=r"^(oldest-|(first-)?ended-[0-9]{8}T[0-9]{6}\.[0-9]{6}\+0000-)?"
        r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$",
        max_length=100,
    ),
]
"""As the stores make them; one that belongs to another sort order is a conflict, not a mistake in
its form."""
