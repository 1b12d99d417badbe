"""A schedule as code declares it; `schedules.declared` brings it into a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from holdfast.core.duration import Duration
from holdfast.core.task import Json


class ScheduleKeywords(TypedDict, total=False):
    """How a schedule behaves, and what is to be known of it."""

    overlap: str
    catch_up: str
    catch_up_most: int
    catch_up_window: Duration | None
    jitter: Duration
    pause_after_failures: int | None
    owner: str | None
    title: str | None
    description: str | None
    purpose: str | None
    category: str | None
    delivery_title: str | None
    channels: list[str] | tuple[str, ...]
    estimated_units: float | None
    chat_id: str | None
    message_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A schedule as code declares it, for the task of this name."""

    name: str
    task: str
    rule: object
    arguments: Mapping[str, Json] = field(default_factory=dict)
    words: Mapping[str, Any] = field(default_factory=dict)
    module: str = ""
