"""Acknowledges and closes incidents by requests in the log.

The shard of the incident's group decides on the requests (ADR 75).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import orjson

from service.errors import IncidentClosed, UnknownStream
from service.runtime import Stores
from service.stores import Submission
from shards import ACKNOWLEDGE, CLOSE, CLOSED, alerts_stream
from streams import Clock, Event, EventBatch, format_time, parse_time

Action: TypeAlias = Literal["acknowledge", "close"]


class IncidentLibrary:
    """Appends requests about incidents to the log."""

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._clock = clock

    def act(self, incident_id: str, action: Action, by: str | None) -> dict[str, Any]:
        """Request that an incident is acknowledged or closed. Returns the incident, or raises ``IncidentClosed``.

        A second acknowledgement has no effect. If the incident's pattern was deleted, no shard can decide on the
        request, so the stored incident is closed directly.
        """
        incident = self._stores.incidents.get(incident_id)
        if incident["state"] == "closed":
            raise IncidentClosed(f"the incident {incident_id!r} is closed since {incident['closed_at']}")
        if action == ACKNOWLEDGE and incident["acknowledged"]:
            return incident
        try:
            self._request([incident], action, {"by": by})
        except UnknownStream:
            incident |= {"type": CLOSED.delivered_as, "state": "closed", "revision": incident["revision"] + 1}
            incident |= {"closed_at": incident["updated_at"], "closed_by": {"how": "deletion"}}
            self._stores.incidents.note([orjson.dumps(incident)])
        return incident

    def close_all(self, pattern: str) -> None:
        """Request that the open incidents of a pattern are closed. Call this before its inner stream is removed."""
        if incidents := self._stores.incidents.open_incidents(pattern):
            self._request(incidents, CLOSE, {"by": None, "how": "deletion"})

    def _request(self, incidents: Sequence[Mapping[str, Any]], action: Action, request: Mapping[str, Any]) -> None:
        """Append requests. Their event times are before the watermark, so that they take effect at once."""
        at = format_time(self._clock.now_us())
        events = [
            Event(
                id=f"~{uuid4().hex}",
                type=action,
                time_us=parse_time(incident["updated_at"]),
                key=orjson.dumps([*incident["group"].values()]).decode(),
                data={"incident": incident["incident"], "at": at, **request},
            )
            for incident in incidents
        ]
        submission = Submission(
            stream=alerts_stream(incidents[0]["pattern"]),
            batch=EventBatch.from_events(events),
            dead_letters=(),
            answer={},
            fingerprint="",
            token=uuid4().hex,
        )
        self._stores.log.append_events(submission)
