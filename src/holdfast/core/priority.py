"""Order in line that ages by itself.

A task's `rank` is fixed once, when it first becomes eligible:

    rank = eligible instant (µs) - head start of its priority (µs)

Claims take the smallest rank first. A low task submitted `aging_low` before a normal one has the
same rank, so it has become as urgent by waiting; nothing is rewritten, whatever the length of the
backlog.

**The bound (P9).** Call e the instant at which a task became eligible.

- *Order.* A task of another priority starts before it, while both may start, only if it became
  eligible no later than e plus the difference of their head starts. With the default settings a low
  task is overtaken by normal tasks of the next 10 min, by high tasks of the next 30 min, by nothing
  that becomes eligible later. 30 min after e its place in line can only improve.
- *Time.* So it starts once those before it have started: at most

      (B + H + N) / s    seconds after e

  where B is what stood before it at e, H the high tasks of the next 30 min, N the normal tasks of
  the next 10 min, and s the tasks per second that its workers start. Under high tasks that come as
  fast as they can be started for ever, that is 30 min + B / s, and until then high has every slot.
- *What the bound does not cover.* Critical tasks: their head start is a century, because a person
  chose them to go first. Further attempts, which keep the rank of the first, and work submitted
  with a `run_at` in the past, which is ranked as if it had waited since: count them in B, H and N
  by their eligible instant. Tasks that nobody may take: a paused queue, a missing capability, a
  taken lock.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.task import Priority

CENTURY = 100 * 365 * 86_400 * 1_000_000
MICROSECONDS = 1_000_000

NUMBERS = {
    **dict.fromkeys((0, 1, 2), Priority.LOW),
    **dict.fromkeys((3, 4, 5), Priority.NORMAL),
    **dict.fromkeys((6, 7, 8), Priority.HIGH),
    9: Priority.CRITICAL,
}
"""Priorities as queues with numbers have them: from 0 to 9, larger is more urgent."""

_WORDS = (
    {"medium": Priority.NORMAL, "default": Priority.NORMAL}
    | {p.value: p for p in Priority}
    | {str(number): priority for number, priority in NUMBERS.items()}
)


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

    def steps(self, priority: Priority) -> list[tuple[Priority, float]]:
        """What waiting makes of a priority, and after how many seconds; most urgent first."""
        return [
            (other, (self.head_start(other) - self.head_start(priority)) / MICROSECONDS)
            for other in (Priority.HIGH, Priority.NORMAL)
            if priority is not Priority.CRITICAL
            and self.head_start(other) > self.head_start(priority)
        ]

    def effective(self, rank: int, now_us: int) -> Priority:
        """The priority that a task submitted right now would need to stand at this rank."""
        lead = now_us - rank
        for priority in (Priority.CRITICAL, Priority.HIGH, Priority.NORMAL):
            if lead >= self.head_start(priority):
                return priority
        return Priority.LOW


def parse_priority(value: object) -> Priority | None:
    """Read a priority: a word in any case, `medium` for `normal`, or a number from 0 to 9 (see
    `NUMBERS`). None if it is nothing of that.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return _WORDS.get(str(value).strip().lower())
