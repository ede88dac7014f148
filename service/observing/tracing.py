"""Opens the spans of a process. If tracing is off, OpenTelemetry's SDK is not imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.errors import TracerMissing
from service.settings import PREFIX, TracingSettings

if TYPE_CHECKING:
    from service.observing.spans import Spans


def open_spans(settings: TracingSettings, process: str) -> Spans | None:
    """Open the spans of a process, which the caller must close. Return None if no endpoint is set.

    Raises ``TracerMissing`` if OpenTelemetry is not installed.
    """
    if settings.endpoint is None:
        return None
    return _tracer()(settings.endpoint, settings.sample_ratio, process)


@contextmanager
def spans_of(settings: TracingSettings, process: str) -> Iterator[Spans | None]:
    """Open the spans of a process, as ``open_spans`` does, and close them at the end of the block."""
    spans = open_spans(settings, process)
    try:
        yield spans
    finally:
        if spans is not None:
            spans.close()


def require_tracer(settings: TracingSettings) -> None:
    """Raise ``TracerMissing`` if an endpoint is set and OpenTelemetry is not installed."""
    if settings.endpoint is not None:
        _tracer()


def _tracer() -> type[Spans]:
    try:
        from service.observing.spans import Spans  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        raise TracerMissing(
            f"{PREFIX}TRACING__ENDPOINT is set, and {error.name} is not installed: install forestall with its extra "
            "otel, or leave the setting out"
        ) from error
    return Spans
