"""Acknowledgements of alerts and notes on alerts, which are removed when the alert log trims the alert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from service.errors import TooManyNotes, UnknownAlert
from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode

ACKNOWLEDGED_KEY = PREFIX + "alerts:acknowledged"
NOTES_KEY = PREFIX + "alerts:notes:"

MOST_NOTES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """The first acknowledgement of an alert, at the time ``at_us``. ``by`` is the person whom the caller names."""

    at_us: int
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note on an alert. ``by`` is the author whom the caller names."""

    id: str
    at_us: int
    text: str
    by: str | None = None


class AlertMarks:
    """Stores acknowledgements and notes. ``places_key`` is the Redis hash in which alerts are looked up by id."""

    def __init__(self, client: Client, places_key: str) -> None:
        self._client = client
        self._places_key = places_key
        self._acknowledge = register(client, "results/acknowledge")
        self._note = register(client, "results/add_note")

    def acknowledge(self, alert_id: str, mark: Acknowledgement) -> Acknowledgement:
        """Acknowledge an alert, unless it is acknowledged already. Return the first acknowledgement.

        If the alert is not stored, raise ``UnknownAlert``.
        """
        record = encode(**asdict(mark))
        stored = self._acknowledge(places=self._places_key, acknowledged=ACKNOWLEDGED_KEY, id=alert_id, record=record)
        if stored is None:
            raise unknown_alert(alert_id)
        return _acknowledgement(stored, alert_id)

    def add_note(self, alert_id: str, note: Note) -> None:
        """Add a note to an alert.

        If the alert is not stored, raise ``UnknownAlert``. If it has the maximum of notes, raise ``TooManyNotes``.
        """
        record = encode(**asdict(note))
        written = self._note(
            places=self._places_key, notes=NOTES_KEY + alert_id, id=alert_id, record=record, most=MOST_NOTES
        )
        if written is None:
            raise unknown_alert(alert_id)
        if not written:
            raise TooManyNotes(f"the alert {alert_id!r} has {MOST_NOTES} notes, the maximum", limit=MOST_NOTES)

    def acknowledgements(self, alert_ids: Sequence[str]) -> list[Acknowledgement | None]:
        """Return the acknowledgement of each alert, or None for an alert that is not acknowledged."""
        if not alert_ids:
            return []
        bodies = cast("list[bytes | None]", self._client.hmget(ACKNOWLEDGED_KEY, list(alert_ids)))
        return [
            None if body is None else _acknowledgement(body, id_) for id_, body in zip(alert_ids, bodies, strict=True)
        ]

    def notes(self, alert_id: str) -> list[Note]:
        bodies = cast("list[bytes]", self._client.lrange(NOTES_KEY + alert_id, 0, -1))
        return [Note(**decode(body, f"a note on the alert {alert_id!r}")) for body in bodies]


def unknown_alert(alert_id: str) -> UnknownAlert:
    """Return the error for an alert that is not stored."""
    return UnknownAlert(
        f"there is no alert {alert_id!r}; it was never found, or it is older than what is kept", alert=alert_id
    )


def _acknowledgement(body: bytes, alert_id: str) -> Acknowledgement:
    fields: dict[str, Any] = decode(body, f"the acknowledgement of the alert {alert_id!r}")
    return Acknowledgement(**fields)
