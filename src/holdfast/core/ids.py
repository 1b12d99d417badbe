"""Task ids: UUIDv7, made from a time and random bits that the caller brings.

Ids made by one process never go backwards, so lists sorted by id are sorted by submission.
"""

from __future__ import annotations

import re
from typing import Final

from holdfast.core.task import TaskId

_SHAPE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def uuid7(milliseconds: int, random_bits: int) -> TaskId:
    """Compose a UUIDv7 from a Unix time in ms and 74 random bits."""
    value = (
        (milliseconds & (1 << 48) - 1) << 80
        | 0x7 << 76
        | (random_bits >> 62 & 0xFFF) << 64
        | 0b10 << 62
        | random_bits & (1 << 62) - 1
    )
    text = f"{value:032x}"
    return TaskId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


def is_task_id(text: str) -> bool:
    """Whether the text has the shape of a task id."""
    return _SHAPE(text) is not None
