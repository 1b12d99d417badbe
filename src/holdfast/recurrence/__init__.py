"""Schedules in people's own time: recurrence rules, cron lines, intervals and single runs.

Pure: no clock, no I/O beside the tz database. Start at `schedule.py`; how the search works is told
in `wall_rule.py` (days and longer) and `elapsed_rule.py` (hours and shorter).
"""

from __future__ import annotations

from holdfast.recurrence.compiling import forget_zones
from holdfast.recurrence.preview import PreviewRow
from holdfast.recurrence.schedule import Kind, Schedule, every, rrule
from holdfast.recurrence.zones import tz_version

__all__ = ["Kind", "PreviewRow", "Schedule", "every", "forget_zones", "rrule", "tz_version"]
