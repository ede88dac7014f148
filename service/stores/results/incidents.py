"""The store of incidents, which has each incident in the state after its newest change.

The shards decide about incidents (ADR 75). The store only applies the changes that the shards report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import orjson

from service.errors import UnknownIncident
from service.stores.connection import PREFIX, Client, register
from service.stores.cursors import NUMBER, Cursor, Order, Page, page_of
from service.stores.records import decode, encode
from shards import with_alerts

INCIDENTS_KEY = PREFIX + "incidents"
ORDER_KEY = PREFIX + "incidents:order"
NUMBER_KEY = PREFIX + "incidents:number"

_KEYS = {
    "incidents": INCIDENTS_KEY,
    "order": ORDER_KEY,
    "number": NUMBER_KEY,
    "examined": PREFIX + "incidents:examined",
}
_PAGE = 500
_CHUNK = 200


class IncidentStore:
    """Stores the incidents.

    If there are more than about ``kept`` incidents, the oldest closed incidents are removed. Open incidents are never
    removed.
    """

    def __init__(self, client: Client, *, kept: int) -> None:
        self._client = client
        self._kept = kept
        self._note = register(client, "results/note_incidents", **_KEYS)

    def note(self, changes: Sequence[bytes]) -> None:
        """Apply changes of incidents, which are JSON objects, in any order.

        A change has no effect if its revision is older than the stored revision of the incident.
        """
        self._store([orjson.loads(body) for body in changes])

    def count_suppressed(self, suppressed_alerts: Sequence[bytes]) -> None:
        """Add suppressed alerts, which are JSON objects, to the counts of their open incidents.

        A suppressed alert causes no change of its incident (ADR 75), but has the number of alerts so far.
        """
        counts: dict[str, int] = {}
        for alert in map(orjson.loads, suppressed_alerts):
            if "incident_alerts" in alert:  # missing in alerts of patterns without incidents
                counts[alert["incident"]] = max(counts.get(alert["incident"], 0), alert["incident_alerts"])
        if not counts:
            return
        bodies = cast("list[bytes | None]", self._client.hmget(INCIDENTS_KEY, list(counts)))
        known = [_read(body, name) for name, body in zip(counts, bodies, strict=True) if body is not None]
        self._store([with_alerts(incident, counts[incident["incident"]]) for incident in known])

    def _store(self, incidents: Sequence[Mapping[str, Any]]) -> None:
        for first in range(0, len(incidents), _CHUNK):
            chunk = incidents[first : first + _CHUNK]
            arguments = [
                part
                for incident in chunk
                for part in (incident["incident"], incident["revision"], encode(incident=incident))
            ]
            self._note(kept=self._kept, rest=arguments)

    def get(self, incident_id: str) -> dict[str, Any]:
        """Return an incident in its current state. If there is none with this id, raise ``UnknownIncident``."""
        body = cast("bytes | None", self._client.hget(INCIDENTS_KEY, incident_id))
        if body is None:
            raise UnknownIncident(f"there is no incident {incident_id!r}", id=incident_id)
        return _read(body, incident_id)

    def page(self, limit: int, *, after: str | None = None, order: Order | None = None, **members: Any) -> Page:
        """Return a page of the incidents that have the values in ``members``. None selects any value.

        The page starts after the cursor ``after``. If ``after`` is None, the page starts at the first incident in
        ``order``, by default at the newest.
        """
        begin = Cursor.read(after, order, NUMBER, "desc")
        criteria = {name: value for name, value in members.items() if value is not None}
        return page_of(self._listed(begin), criteria, limit, begin)

    def open_incidents(self, pattern: str) -> list[dict[str, Any]]:
        return [
            incident
            for _, incident in self._listed(Cursor("desc"))
            if incident["pattern"] == pattern and incident["state"] != "closed"
        ]

    def _listed(self, begin: Cursor) -> Iterator[tuple[str, dict[str, Any]]]:
        is_upward = begin.order == "asc"
        read_range = self._client.zrangebyscore if is_upward else self._client.zrevrangebyscore
        end = "+inf" if is_upward else "-inf"
        start = ("-inf" if is_upward else "+inf") if begin.place is None else f"({begin.place}"
        while entries := cast(
            "list[tuple[bytes, float]]", read_range(ORDER_KEY, start, end, start=0, num=_PAGE, withscores=True)
        ):
            bodies = cast(
                "list[bytes | None]", self._client.hmget(INCIDENTS_KEY, [name.decode() for name, _ in entries])
            )
            for (name, number), body in zip(entries, bodies, strict=True):
                if body is not None:
                    yield str(int(number)), _read(body, name.decode())
            start = f"({int(entries[-1][1])}"


def _read(body: bytes, incident_id: str) -> dict[str, Any]:
    incident: dict[str, Any] = decode(body, f"the incident {incident_id!r}")["incident"]
    return incident
