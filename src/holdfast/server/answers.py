"""JSON answers, written once: no model is built to be taken apart again."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from starlette.responses import Response

from holdfast.core.task import Json


def answer(data: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer with this JSON; instants become RFC 3339 with a Z."""
    body = orjson.dumps(data, option=orjson.OPT_UTC_Z)
    return Response(body, status, headers, media_type="application/json")


def nothing() -> Response:
    """An answer without a body."""
    return Response(status_code=204)
