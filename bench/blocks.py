"""Loads the statements of an `.sql` file: one block for each `-- name: …` line."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def blocks(path: Path) -> dict[str, str]:
    """The statements by name."""
    _, *parts = _NAME.split(path.read_text())
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}
