"""Order in line that ages by itself.

A task's `rank` is fixed once, when it first becomes eligible:

    rank = eligible instant (µs) - head start of its priority (µs)

Claims take the smallest rank first. A low task submitted `aging_low` before a normal one has the
same rank, so it has become as urgent by waiting; nothing is rewritten, whatever the length of the
backlog.

**The bound (P9).** With the default settings a low task is overtaken only by normal tasks that
became eligible less than 10 min after it, by high tasks less than 30 min after it, and by critical
tasks. So under any steady load that leaves some capacity for the tasks ahead of it at that moment,
it starts. Critical tasks are the exception that a person chose: their head start is a century.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.task import Priority

CENTURY = 100 * 365 * 86_400 * 1_000_000
MICROSECONDS = 1_000_000

_WORDS = {"medium": Priority.NORMAL, "default": Priority.NORMAL} | {p.value: p for p in Priority}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aging:
    """How long waiting work needs to be as urgent as the next priority (seconds)."""

    low: float = 600.0
    normal: float = 1200.0

    def head_start(self, priority: Priority) -> int:
        """The microseconds a priority is worth in line."""
        match priority:
            case Priority.LOW:
                return 0
            case Priority.NORMAL:
                return int(self.low * MICROSECONDS)
            case Priority.HIGH:
                return int((self.low + self.normal) * MICROSECONDS)
            case Priority.CRITICAL:
                return CENTURY

    def effective(self, rank: int, now_us: int) -> Priority:
        """The priority that a task submitted right now would need to stand at this rank."""
        lead = now_us - rank
        for priority in (Priority.CRITICAL, Priority.HIGH, Priority.NORMAL):
            if lead >= self.head_start(priority):
                return priority
        return Priority.LOW


def parse_priority(value: str | Priority) -> Priority | None:
    """Read a priority word; `medium` is accepted for `normal`. None if it is no such word."""
    return _WORDS.get(str(value).strip().lower())
