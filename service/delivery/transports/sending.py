"""The arguments of sinks of all kinds: the delivery, and the permitted targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.targets import Resolver, TargetRules, permitted_addresses, resolve


class SendFailed(Exception):
    """A receiver did not accept a delivery; ``status``: its answer as a number, if it has one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A delivery to a sink; ``id`` identifies the result or the digest, and is the same in all attempts."""

    id: str
    sink: str
    body: bytes
    filled: bytes | None
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """The permitted targets of sinks: hosts, and files below one folder (None: no files).

    ``clients``: connections that are kept between deliveries, by sink and settings.
    """

    rules: TargetRules
    folder: Path | None
    timeout_s: float
    resolver: Resolver = resolve
    clients: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host; raises ``WebhookRefused`` unless all of them are permitted."""
        return permitted_addresses(host, port, self.rules, self.resolver)
