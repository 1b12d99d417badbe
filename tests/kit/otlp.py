"""A real receiver of spans: OTLP over HTTP, decoded with OpenTelemetry's own protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.kit.receivers import Receiver, Request

ERROR = 2
KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}


class Event(NamedTuple):
    """Something that happened in a span."""

    name: str
    attributes: dict[str, Any]


class ReceivedSpan(NamedTuple):
    """A span as it came over the wire."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    kind: str
    start: int
    end: int
    is_error: bool
    status: str
    attributes: dict[str, Any]
    events: list[Event]
    service: str


class SpanReceiver(Receiver):
    """Takes spans; answers as every receiver of the kit does."""

    @property
    def spans(self) -> list[ReceivedSpan]:
        """Those that have come, in the order of their starts."""
        requests = [one for one in self.got if one.path == "/v1/traces"]
        return sorted((span for one in requests for span in _read(one)), key=lambda one: one.start)

    def named(self, *names: str) -> list[ReceivedSpan]:
        """Those of these names."""
        return [span for span in self.spans if span.name in names]

    def one(self, name: str) -> ReceivedSpan:
        """The only one of this name."""
        found = self.named(name)
        assert len(found) == 1, f"{len(found)} spans {name!r} in {[one.name for one in self.spans]}"
        return found[0]


def _read(request: Request) -> Sequence[ReceivedSpan]:
    message = ExportTraceServiceRequest()
    message.ParseFromString(request.body)
    return [
        ReceivedSpan(
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            kind=KINDS[span.kind],
            start=span.start_time_unix_nano,
            end=span.end_time_unix_nano,
            is_error=span.status.code == ERROR,
            status=span.status.message,
            attributes=_said(span.attributes),
            events=[Event(event.name, _said(event.attributes)) for event in span.events],
            service=_said(group.resource.attributes)["service.name"],
        )
        for group in message.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def _said(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
