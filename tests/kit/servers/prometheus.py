"""A real Prometheus, from Debian's package, that scrapes what a test serves.

    with Prometheus(folder, port, token, rules) as prometheus:
        prometheus.query("holdfast_workers_total")

`program("promtool")` checks rules.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import httpx
from tests.kit.servers.debian import package
from tests.kit.servers.postgres import free_port

PATIENCE = 60.0


def program(name: str) -> Path:
    """`prometheus` or `promtool`: the system's, or Debian's, fetched on first use."""
    found = shutil.which(name)
    return Path(found) if found else package("prometheus") / "usr/bin" / name


class Prometheus:
    """One Prometheus, that looks every second."""

    def __init__(self, folder: Path, target: str, token: str, rules: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "token").write_text(token)
        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {
                    "job_name": "holdfast",
                    "authorization": {"credentials_file": str(folder / "token")},
                    "static_configs": [{"targets": [target]}],
                }
            ],
        }
        (folder / "prometheus.yml").write_text(json.dumps(settings))  # JSON is YAML

    def __enter__(self) -> Self:
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program("prometheus"),
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "GOMAXPROCS": "1"},
            )
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def query(self, expression: str) -> list[Any]:
        """What it answers to this now. `AssertionError` if it does not understand."""
        said = self._get("query", query=expression)
        result: list[Any] = said["data"]["result"]
        return result

    def rules(self) -> list[Any]:
        """All rules as they stand."""
        groups = self._get("rules")["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, verb: str, **words: str) -> Any:
        answer = httpx.get(f"{self.url}/api/v1/{verb}", params=words, timeout=PATIENCE)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if httpx.get(f"{self.url}/-/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline, (self._folder / "log").read_text()
            time.sleep(0.1)
