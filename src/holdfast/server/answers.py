"""JSON answers, written once: no model is built to be taken apart again."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from holdfast.core.task import Json
from holdfast.views import to_json


def answer(data: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer with this JSON; instants become RFC 3339 with a Z."""
    return Response(to_json(data), status, headers, media_type="application/json")


def nothing() -> Response:
    """An answer without a body."""
    return Response(status_code=204)
