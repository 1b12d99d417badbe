"""Where a schedule is shown: its name is in the path, but for one that is a path of ours."""

from __future__ import annotations

from typing import Final

OURS: Final = ("new",)


def path_of(name: str) -> str:
    return f"/schedules/{name}/details" if name in OURS else f"/schedules/{name}"
