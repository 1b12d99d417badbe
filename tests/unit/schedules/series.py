"""A series for tests of pure rules: made long ago, due when they say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from holdfast.core.task import NewTask, TaskId
from holdfast.schedules.reading import read_rule
from holdfast.schedules.series import Series

MADE = datetime(2026, 1, 1, tzinfo=UTC)


def utc(text: str) -> datetime:
    """`2026-03-02 09:00` in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def series_of(rule: object, next_at: str, *, tz: str | None = None, **changes: Any) -> Series:
    """A series whose next run is this one."""
    made = Series(
        id="daily",
        rule=read_rule(rule, tz),
        template=NewTask(TaskId(""), "shop.report", b"{}"),
        created_at=MADE,
        updated_at=MADE,
    )
    return replace(made.going_on(utc(next_at)), **changes)
