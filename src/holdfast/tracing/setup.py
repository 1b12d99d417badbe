"""Where spans go: to the program's own provider, or to one that is set up here from the `OTEL_…`
variables of the environment.

One that we set up exports in batches, by a thread. If the receiver is away, that is said once. At
exit what is left has `FLUSH` seconds, and is then forgotten.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import ConfigError
from holdfast.logs import EventLog, take_over

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.trace import TracerProvider

    from holdfast.tracing.spans import Spans

log = EventLog("holdfast.tracing")

QUEUE_SIZE: Final = 16_384
"""Spans that wait for export at most; the SDK's 2,048 are a tenth of a second of a busy worker."""
_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_PROCESSOR: Final = "opentelemetry.sdk._shared_internal"


class _Process:
    """The spans of this process, once somebody has asked for them."""

    lock = threading.Lock()
    spans: Spans | None = None
    provider: object = None


def spans_of_this_process() -> Spans:
    """Made when it is first asked for. `ConfigError` if the extra is missing."""
    try:
        from opentelemetry import trace  # noqa: PLC0415 - only where it is asked for

        from holdfast.tracing.spans import Spans  # noqa: PLC0415

        with _Process.lock:
            provider = trace.get_tracer_provider()
            if isinstance(provider, trace.ProxyTracerProvider):
                trace.set_tracer_provider(_own_provider())
                provider = trace.get_tracer_provider()
            if _Process.spans is None or _Process.provider is not provider:
                _Process.spans, _Process.provider = Spans(provider), provider
            return _Process.spans
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise ConfigError(
            "otel", f"otel: spans need {error.name}: pip install 'holdfast[otel]'"
        ) from error


def _own_provider() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    given = os.environ
    is_named = "OTEL_SERVICE_NAME" in given or "service.name=" in given.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    resource = Resource.create({} if is_named else {"service.name": "holdfast"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    size = None if "OTEL_BSP_MAX_QUEUE_SIZE" in given else QUEUE_SIZE
    exporter = _SaysOnce(OTLPSpanExporter())
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=size))  # type: ignore[arg-type] # it has what one must have
    for name in (_EXPORTER, _PROCESSOR):
        take_over(name, exporter.take_over)
    atexit.register(_flush_at_exit)
    return provider


def _flush_at_exit() -> None:
    if _Process.spans is not None:
        _Process.spans.flush_sync()


class _SaysOnce:
    """An exporter that says when it begins to fail, and when it works again; and nothing else."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._fails = False
        self._has_dropped = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result: SpanExportResult = self._inner.export(spans)
        if self._fails and result.name == "SUCCESS":
            self._fails = False
            log.info("tracing.exports_again")
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is kept here."""
        return True

    def take_over(self, record: logging.LogRecord) -> bool:
        """What the SDK would log batch by batch: we say it once. The filter of its logs."""
        if record.name == _PROCESSOR and not self._has_dropped:
            self._has_dropped = True
            log.warning("tracing.spans_dropped", error=record.getMessage())
        elif record.name == _EXPORTER and not self._fails:
            self._fails = True
            log.warning("tracing.not_exported", error=record.getMessage())
        return False
