"""Which requests have spans: those that send events, if tracing is configured."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from fastapi.telemetry import TelemetryConfig

_METHOD, _PATH = "POST", "/v1/events"


def telemetry_of(tracer_provider: Any) -> TelemetryConfig:
    """What FastAPI is to tell of requests: spans of those that send events, and nothing on its own account.

    Args:
        tracer_provider: OpenTelemetry's, which spans are made with; None: there are none.
    """
    return {
        "tracing": tracer_provider is not None,
        "tracer_provider": tracer_provider,
        "metrics": False,
        "logs": False,
        "operation_spans": False,
        "auto_configure": False,  # the environment is read by the settings alone
        "exclude": _is_left_out,
    }


def _is_left_out(scope: MutableMapping[str, Any]) -> bool:
    return (scope.get("method"), scope.get("path")) != (_METHOD, _PATH)
