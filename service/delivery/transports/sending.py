"""The types that all kinds of sinks share: a delivery, the permitted targets, and the error of a failed delivery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.targets import Resolver, TargetRules, permitted_addresses, resolve


class SendFailed(Exception):
    """The error of a delivery that the receiver did not accept.

    ``status`` is the numeric code of the receiver's answer, or None if there was no such answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A delivery to a sink.

    Attributes:
        id: Id of the result or digest, which is the same in all attempts.
        sink: Id of the sink.
        filled: The sink's template, filled with members of the body, or None if the sink has no template.
        secret: Password of the sink, or empty.
    """

    id: str
    sink: str
    body: bytes
    filled: bytes | None
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """The permitted targets of sinks, and their open clients.

    Attributes:
        folder: Folder below which files may be written, or None to permit no files.
        clients: Clients that are reused for later deliveries, by the sink's id and settings.
    """

    rules: TargetRules
    folder: Path | None
    timeout_s: float
    resolver: Resolver = resolve
    clients: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host. Raise ``WebhookRefused`` unless all addresses are permitted."""
        return permitted_addresses(host, port, self.rules, self.resolver)
