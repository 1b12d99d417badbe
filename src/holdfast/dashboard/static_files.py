"""Styles and scripts, as they are in the package: no build step, and no other host."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from holdfast.server.problems import Refused

KINDS: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class StaticFile(NamedTuple):
    """A file, and what tells whether a browser has it."""

    content: bytes
    kind: str
    etag: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """All of them: a name that is not here is not there."""
    found = {}
    for file in files("holdfast.dashboard").joinpath("static").iterdir():
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            content = file.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            found[file.name] = StaticFile(content, kind, etag)
    return found


async def get_static(request: Request) -> Response:
    """One of them; 304 if the browser has it already."""
    found = static_files().get(request.path_params["name"])
    if found is None:
        raise Refused(404, "not_found", "there is no such file")
    headers = {"etag": found.etag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.kind)
