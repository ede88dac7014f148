"""The incidents, each as its newest change has it.

The shards decide about incidents (ADR 75), so a record only follows the changes that they report. Beyond the number
that is kept, the oldest closed incidents are removed; open ones stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from service.errors import UnknownIncident
from service.stores.connection import PREFIX, Client, register
from service.stores.cursors import NUMBER, require_cursor
from service.stores.records import decode, encode

INCIDENTS_KEY = PREFIX + "incidents"
ORDER_KEY = PREFIX + "incidents:order"
NUMBER_KEY = PREFIX + "incidents:number"

_PAGE = 500
_CHUNK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentPage:
    """Some incidents, the newest first; ``next`` is the cursor for older ones, None when these are all."""

    items: list[dict[str, Any]]
    next: str | None


class IncidentStore:
    """The incidents; at most about ``kept`` closed ones."""

    def __init__(self, client: Client, *, kept: int) -> None:
        self._client = client
        self._kept = kept
        self._note = register(client, "results/note_incidents")

    def note(self, changes: Sequence[bytes]) -> None:
        """Take in changes of incidents, JSON objects, in any order; older ones than the known have no effect."""
        found = [orjson.loads(body) for body in changes]
        for first in range(0, len(found), _CHUNK):
            some = found[first : first + _CHUNK]
            rest = [part for one in some for part in (one["incident"], one["revision"], encode(incident=one))]
            self._note(incidents=INCIDENTS_KEY, order=ORDER_KEY, number=NUMBER_KEY, kept=self._kept, rest=rest)

    def get(self, incident_id: str) -> dict[str, Any]:
        """The newest change of an incident."""
        body = cast("bytes | None", self._client.hget(INCIDENTS_KEY, incident_id))
        if body is None:
            raise UnknownIncident(f"there is no incident {incident_id!r}", id=incident_id)
        return _read(body, incident_id)

    def page(self, limit: int, *, after: str | None = None, **chosen: Any) -> IncidentPage:
        """Incidents whose members have the chosen values (None: any), the newest first, after a cursor."""
        if after is not None:
            require_cursor(after, NUMBER)
        wanted = {name: value for name, value in chosen.items() if value is not None}
        items: list[dict[str, Any]] = []
        last: str | None = None
        for number, incident in self._newest_first(after):
            if wanted.items() <= incident.items():
                if len(items) == limit:
                    return IncidentPage(items=items, next=last)
                items.append(incident)
                last = str(number)
        return IncidentPage(items=items, next=None)

    def open_ones(self, pattern: str) -> list[dict[str, Any]]:
        """The incidents of a pattern that are not closed."""
        return [one for _, one in self._newest_first(None) if one["pattern"] == pattern and one["state"] != "closed"]

    def _newest_first(self, after: str | None) -> Iterator[tuple[int, dict[str, Any]]]:
        until = "+inf" if after is None else f"({after}"
        while found := cast(
            "list[tuple[bytes, float]]",
            self._client.zrevrangebyscore(ORDER_KEY, until, "-inf", start=0, num=_PAGE, withscores=True),
        ):
            bodies = cast("list[bytes | None]", self._client.hmget(INCIDENTS_KEY, [name.decode() for name, _ in found]))
            for (name, number), body in zip(found, bodies, strict=True):
                if body is not None:
                    yield int(number), _read(body, name.decode())
            until = f"({int(found[-1][1])}"


def _read(body: bytes, incident_id: str) -> dict[str, Any]:
    incident: dict[str, Any] = decode(body, f"the incident {incident_id!r}")["incident"]
    return incident
