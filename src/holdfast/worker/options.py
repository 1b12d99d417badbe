"""How a worker is to be started, as one value that travels from the command line to its processes.

Light on purpose: the supervisor imports it and must stay small.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What `holdfast worker` was told. None means: as the app's settings say."""

    app: str
    include: tuple[str, ...] = ()
    queues: tuple[str, ...] | None = None
    concurrency: int | None = None
    processes: int | None = None
    capabilities: tuple[str, ...] | None = None
    lease: str | None = None
    drain: str | None = None
    worker_name: str | None = None
    burst: bool = False
    reload: bool = False
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    log_level: str | None = None
    log_format: str | None = None

    def overrides(self) -> dict[str, Any]:
        """The settings that were given, by their names."""
        names = (
            "queues", "concurrency", "capabilities", "lease", "drain", "worker_name", "log_level",
            "log_format",
        )  # fmt: skip
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        for name in ("include", "queues", "capabilities"):
            if fields[name] is not None:
                fields[name] = tuple(fields[name])
        return cls(**fields)
