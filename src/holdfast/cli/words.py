"""Values as people read them: times, durations, progress. Pure text, no terminal."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.core.task import Progress

_STEPS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration(seconds: float) -> str:
    """A length of time in one unit, two above an hour: `4 ms`, `2.5 s`, `12 min`, `3 h 20 min`."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    for index, (size, unit) in enumerate(_STEPS):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            smaller, name = _STEPS[index + 1]
            part = int(rest // smaller)
            return f"{whole:.0f} {unit}" + (f" {part} {name}" if part and unit != "min" else "")
    return f"{seconds:.0f} s"


def ago(at: datetime, now: datetime | None = None) -> str:
    """An instant seen from now: `3 min ago`, `in 20 s`, `now`."""
    gap = ((now or datetime.now(UTC)) - at).total_seconds()
    if abs(gap) < 0.5:
        return "now"
    return f"{duration(gap)} ago" if gap > 0 else f"in {duration(-gap)}"


def instant(at: datetime | None, now: datetime | None = None) -> str:
    """An instant both ways, in the reader's zone: `2026-05-01 12:00:03 CEST (3 min ago)`."""
    if at is None:
        return "-"
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S %Z} ({ago(at, now)})"


def clock_time(at: datetime) -> str:
    """The time of day with milliseconds, for timelines."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S.%f}"[:-3]


def share(progress: Progress | None) -> float | None:
    """How much of it is done, from 0 to 1, where the handler said how much there is."""
    if progress is None or not progress.total:
        return None
    return min(1.0, max(0.0, progress.done / progress.total))


def bar(part: float, width: int = 20, *, ascii_only: bool = False) -> str:
    """A bar of `width` characters."""
    full, empty = ("#", "-") if ascii_only else ("█", "░")
    filled = round(part * width)
    return full * filled + empty * (width - filled)


def progress_text(progress: Progress | None, *, width: int = 20, ascii_only: bool = False) -> str:
    """Progress on one line: a bar where the total is known, otherwise the count."""
    if progress is None:
        return ""
    part = share(progress)
    if part is None:
        text = f"{progress.done:g}"
    else:
        text = f"{bar(part, width, ascii_only=ascii_only)} {part:4.0%}"
    return f"{text} {progress.message}" if progress.message else text


def plural(count: int, noun: str, several: str | None = None) -> str:
    """`1 task`, `2 tasks`; `1 delivery`, `2 deliveries`."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"
