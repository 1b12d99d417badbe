"""An app whose timers are called by an emulator, at a port that is known before it is served."""

from __future__ import annotations

from datetime import datetime
from typing import Unpack

from tests.kit.servers.postgres import free_port

from holdfast import Holdfast
from holdfast.settings import SettingsKeywords

SECRET = "a secret that is long enough"
ROUTE = "/v1/tasks/execute"


class Probe:
    """Notes what is fired, and fails as often as it is told to."""

    def __init__(self, app: Holdfast) -> None:
        self.app = app
        self.fired: list[tuple[str, datetime]] = []
        self.fails = 0
        app.wake_ups.on("probe", self.fire)

    async def fire(self, key: str) -> None:
        if self.fails:
            self.fails -= 1
            raise RuntimeError("not now")
        self.fired.append((key, await (await self.app.verbs()).store.now()))

    def arm(self, key: str, at: datetime) -> None:
        self.app.wait_for(self.app.wake_ups.arm(key, at))


def target_at(port: int) -> str:
    return f"http://127.0.0.1:{port}{ROUTE}"


def timer_settings(timer_url: str, /, **more: Unpack[SettingsKeywords]) -> SettingsKeywords:
    """Those of an app with timers, and more."""
    more["timer_url"] = timer_url
    more["timer_secret"] = SECRET
    return more


__all__ = ["ROUTE", "SECRET", "Probe", "free_port", "target_at", "timer_settings"]
