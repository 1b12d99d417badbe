"""What a page does, as commands for a terminal."""

from __future__ import annotations

import re
import shlex
from typing import Final
from urllib.parse import quote

from holdfast.core.task import Json
from holdfast.dashboard.page import View
from holdfast.dashboard.rendering import pretty

_HOST: Final = re.compile(r"[A-Za-z0-9.:\[\]-]+", re.ASCII).fullmatch


def curl(view: View, method: str, path: str, *names: str, body: Json = None) -> str:
    """A call of the API. `path` has a `{}` for each name, which may be any text."""
    quoted = path.format(*(quote(name, safe="") for name in names))
    base = "$HOLDFAST_URL" if view.root or not _HOST(view.host) else f"http://{view.host}"
    lines = [f'curl -X {method} "{base}{quoted}"', '  -H "Authorization: Bearer $HOLDFAST_TOKEN"']
    if body is not None:
        lines += ["  -H 'Content-Type: application/json'", f"  -d {shlex.quote(pretty(body))}"]
    return " \\\n".join(lines)
