"""The extras of the distribution: which of them brings a package that a call misses."""

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
"""The modules that each extra brings."""


def advice_on(error: ModuleNotFoundError) -> str | None:
    """What to install for a missing module, in words; None if no extra brings it."""
    missing = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in MODULES.items() if missing in modules), None)
    if extra is None:
        return None
    return f"{missing} is not installed; it comes with the extra {extra!r}: pip install 'forestall[{extra}]'"
