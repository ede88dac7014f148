"""Spans of OpenTelemetry.

Only this module uses OpenTelemetry's SDK, and ``tracing`` imports this module only if tracing is configured. Spans are
queued up to a limit, and a thread sends them. Spans that the collector does not accept are dropped, so no other code
has to wait for the collector.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

Attribute: TypeAlias = str | int | bool
SpanKind: TypeAlias = Literal["internal", "client"]

TRACEPARENT = "traceparent"

_KINDS: Mapping[SpanKind, trace.SpanKind] = {"internal": trace.SpanKind.INTERNAL, "client": trace.SpanKind.CLIENT}
_W3C = TraceContextTextMapPropagator()
_SEND_TIMEOUT_S = 5.0  # for a batch, including all attempts
_CLOSE_S = 5.0


class OpenSpan:
    """A span that is sent once it has ended. Any process can use its ``traceparent`` as the parent of other spans."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.traceparent = _written(span.get_span_context())

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        self._span.set_attributes(attributes)

    def fail(self, reason: str) -> None:
        self._span.set_status(trace.Status(trace.StatusCode.ERROR, reason))

    def end(self) -> None:
        self._span.end()


class Spans:
    """The spans of a process, sent to ``endpoint`` by OTLP over HTTP.

    ``sample_ratio`` is the share of new traces that are sampled. A trace continued from a caller keeps the caller's
    decision. ``provider`` is passed to libraries that create spans themselves.
    """

    def __init__(self, endpoint: str, sample_ratio: float, process: str) -> None:
        attributes = {"service.namespace": "forestall", "service.name": f"forestall-{process}"}
        self.provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(sample_ratio)),
            resource=Resource.create(attributes),
            shutdown_on_exit=False,  # the SDK's own shutdown at exit takes long if no collector answers
        )
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=_SEND_TIMEOUT_S)))
        self._tracer = self.provider.get_tracer("forestall")

    def current(self) -> str | None:
        """Return the ``traceparent`` of the current span, or None if there is no span or it is not sampled."""
        span_context = trace.get_current_span().get_span_context()
        return _written(span_context) if span_context.is_valid and span_context.trace_flags.sampled else None

    def begin(
        self,
        name: str,
        parent: str,
        attributes: Mapping[str, Attribute],
        *,
        kind: SpanKind = "internal",
        start_us: int | None = None,
        links: Sequence[str] = (),
    ) -> OpenSpan:
        """Begin a span under the span ``parent``, with ``links`` to other spans. Spans are given as ``traceparent``.

        Use the kind ``client`` for calls to another service. ``start_us`` is in microseconds UTC, and None means now.
        Use few different names.
        """
        start_ns = None if start_us is None else min(start_us * 1_000, time.time_ns())  # clocks may differ
        span = self._tracer.start_span(
            name,
            context=_read(parent),
            kind=_KINDS[kind],
            attributes=attributes,
            links=[trace.Link(trace.get_current_span(_read(link)).get_span_context()) for link in links],
            start_time=start_ns,
        )
        return OpenSpan(span)

    def close(self) -> None:
        """Send the queued spans for at most a few seconds, then drop the rest."""
        closing = threading.Thread(target=self.provider.shutdown, name="spans-closing", daemon=True)
        closing.start()
        closing.join(_CLOSE_S)


def _read(traceparent: str) -> Context:
    return _W3C.extract({TRACEPARENT: traceparent})


def _written(span: trace.SpanContext) -> str:
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(trace.NonRecordingSpan(span), Context()))
    return carrier[TRACEPARENT]
