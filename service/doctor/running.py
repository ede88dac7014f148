"""The check of a running service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx

from service.doctor.findings import Finding, ok, problem, warning
from service.doctor.machine import is_port_free
from service.settings import PREFIX, Settings

_TIMEOUT_S = 5.0


def look_at_port(settings: Settings) -> Iterator[Finding]:
    """Check the API's port: it is free, or a running service answers, which is then checked too."""
    host, port = settings.api_host, settings.api_port
    if port == 0 or is_port_free(host, port):
        yield ok("port", f"port {port} on {host} is free; no service runs there")
        return
    answer = _ask(host, port)
    if answer is None:
        yield problem(
            "port",
            f"port {port} on {host} is in use by something that is not this service",
            f"stop it, or choose another port: {PREFIX}API_PORT",
        )
        return
    yield ok("port", f"a service answers on port {port} of {host}")
    missing = answer.get("missing")
    if missing:
        yield warning(
            "running service",
            f"it is not ready: {'; '.join(map(str, missing))}",
            "it may be starting; if this lasts, see the logs of its processes",
        )
    else:
        yield ok("running service", "it is ready")


def _ask(host: str, port: int) -> dict[str, Any] | None:
    """The answer of ``/v1/ready``; None if the listening process does not have this path."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - such a server is queried here
    url = f"http://{f'[{name}]' if ':' in name else name}:{port}/v1/ready"
    try:
        answer = httpx.get(url, timeout=_TIMEOUT_S, trust_env=False)
        body = answer.json()
    except (httpx.HTTPError, ValueError):
        return None
    is_ours = isinstance(body, dict) and ("missing" in body or body.get("status") == "ready")
    return body if is_ours else None
