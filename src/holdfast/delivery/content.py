"""What is said of a run that ended: the content of its result, or that it failed, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson

from holdfast.core.task import State, Task
from holdfast.delivery.phrases import phrase
from holdfast.delivery.templates import one_line

LONGEST: Final = 256 * 1024
"""Characters. What is longer ends with an ellipsis: mail servers refuse what is large."""
LONGEST_REASON: Final = 300


def content_of(task: Task, language: str | None) -> str:
    """The text for people. Of a failed run no traceback and nothing of its arguments, only the kind
    of error and its own first words.
    """
    if task.state is not State.COMPLETED:
        return _failure(task, language)
    return shortened(_text(orjson.loads(task.result or b"null")), LONGEST)


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _text(result: object) -> str:
    if isinstance(result, Mapping) and isinstance(result.get("content"), str):
        result = result["content"]
    if isinstance(result, str):
        return result
    return "" if result is None else orjson.dumps(result, option=orjson.OPT_INDENT_2).decode()


def _failure(task: Task, language: str | None) -> str:
    said = phrase("failed", language)
    if task.error is None:
        return said
    first = task.error.message.strip().partition("\n")[0]
    return f"{said}\n{one_line(f'{task.error.type}: {first}', LONGEST_REASON)}"
