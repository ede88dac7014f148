"""The delivery to a sink of any kind, the permitted targets, and the error of a failed delivery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.targets import Resolver, TargetRules, permitted_addresses, resolve


class SendFailed(Exception):
    """The error of a delivery that a receiver did not accept; ``status`` is the numeric code of its answer, if any."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A delivery to a sink; ``id`` is the id of the result or digest, the same in all attempts.

    ``filled`` is the sink's template, filled with the body; None if the sink has no template.
    """

    id: str
    sink: str
    body: bytes
    filled: bytes | None
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """The permitted targets of sinks: hosts, and files below ``folder``; None permits no files.

    ``clients`` has the connections that are kept between deliveries; a key has the sink and its settings.
    """

    rules: TargetRules
    folder: Path | None
    timeout_s: float
    resolver: Resolver = resolve
    clients: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host; raises ``WebhookRefused`` unless all of them are permitted."""
        return permitted_addresses(host, port, self.rules, self.resolver)
