"""The fleet's numbers for Prometheus."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from holdfast.metrics.exposition import counted, measured, text_of
from holdfast.server.models.tasks import NoQuery
from holdfast.server.routing import ApiRequest, Routes

routes = Routes("service")

TEXT: Final = "text/plain"


def _answers_text(described: dict[str, Any]) -> None:
    content = {TEXT: {"schema": {"type": "string", "description": "Prometheus' text format."}}}
    described["responses"][200] = {"description": "The metrics.", "content": content}


@routes(
    "GET",
    "/metrics",
    "The fleet's numbers for Prometheus",
    says="Of all workers and servers of the store, whichever server is asked, and at most a "
    "second old. See docs/reference/metrics.md.",
    answers=None,
    amend=_answers_text,
)
async def get_metrics(request: ApiRequest[NoQuery]) -> Response:
    fleet = await request.service.fleet()
    families = [*measured(fleet), *counted(fleet.counts)]
    body, content_type = text_of(families, request.headers.get("accept", ""))
    return Response(body, media_type=content_type)
