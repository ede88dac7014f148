"""The distribution's extras, and which of them installs a missing package."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "service": (
            "fastapi",
            "fastapi_offline",
            "hiredis",
            "httpcore",
            "packaging",
            "prometheus_client",
            "pydantic",
            "pydantic_settings",
            "redis",
            "starlette",
            "structlog",
            "uvicorn",
        ),
        "spark": ("pandas", "py4j", "pyspark"),
        "console": ("jinja2",),
        "kafka": ("confluent_kafka",),
        "otel": ("opentelemetry",),
        "testing": ("pytest",),
    }
)
"""Modules by the extra that brings them."""


def advice_on(error: ModuleNotFoundError) -> str | None:
    """Return how to install a missing module, or None if no extra installs it."""
    missing = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in MODULES.items() if missing in modules), None)
    if extra is None:
        return None
    return f"{missing} is not installed; it comes with the extra {extra!r}: pip install 'forestall[{extra}]'"
