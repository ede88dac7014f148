"""Spans of requests: only requests that send events have them, if tracing is configured."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from fastapi.telemetry import TelemetryConfig

_METHOD, _PATH = "POST", "/v1/events"


def telemetry_of(tracer_provider: Any) -> TelemetryConfig:
    """The telemetry of FastAPI: spans of requests that send events, and nothing else; without a provider no spans."""
    return {
        "tracing": tracer_provider is not None,
        "tracer_provider": tracer_provider,
        "metrics": False,
        "logs": False,
        "operation_spans": False,
        "auto_configure": False,  # only the settings read the environment
        "exclude": _is_left_out,
    }


def _is_left_out(scope: MutableMapping[str, Any]) -> bool:
    return (scope.get("method"), scope.get("path")) != (_METHOD, _PATH)
