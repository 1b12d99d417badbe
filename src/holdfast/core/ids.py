"""Task ids: UUIDv7, made from a time and random bits that the caller brings.

Ids made by one process never go backwards, so lists sorted by id are sorted by submission.
"""

from __future__ import annotations

import re
from hashlib import blake2b
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
    return _written(value)


def marked(task_id: TaskId, key: bytes) -> TaskId:
    """The same id with its last 24 bits made from the others by a secret key: whoever has the key
    can tell later that it made the id (`marked(task_id, key) == task_id`), and nobody else can.
    """
    head = task_id[:-6]
    return TaskId(head + blake2b(head.encode(), key=key, digest_size=3).hexdigest())


def is_task_id(text: str) -> bool:
    """Whether the text has the shape of a task id."""
    return _SHAPE(text) is not None


def just_before(beginning: str) -> TaskId:
    """The last id below all that begin with these digits (no dashes): a list after it begins with
    them.
    """
    return _written(max(0, int(beginning.ljust(32, "0"), 16) - 1))


def _written(value: int) -> TaskId:
    text = f"{value:032x}"
    return TaskId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")
