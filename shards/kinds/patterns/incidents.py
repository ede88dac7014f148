"""The incidents of one pattern at a place.

The first alert of a group opens an incident, and later alerts of the group join it. An incident is closed when event
time has passed ``close_after`` since its last alert, when a pattern with ``resolves`` raises an alert, or when a person
closes it. So there is at most one open incident per group, and ``close_after`` bounds the state (ADR 75).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import orjson

from shards.kinds.patterns.result_kinds import CLOSED, OPENED, UPDATED
from shards.kinds.patterns.sources import CLOSE
from shards.results import ResultKind
from shards.rows import row_id
from streams import LATEST_US, NEVER_US, Definition, format_time

Change: TypeAlias = tuple[ResultKind, str, dict[str, Any]]
"""A change of an incident: the kind of result, the id, and the JSON object."""


@dataclass(slots=True, kw_only=True)
class Incident:
    """An open incident.

    Attributes:
        id: The id that all changes of the incident share.
        last_alert: The id, ``key`` and ``why`` of the last alert that was not suppressed.
    """

    id: str
    key_hash: int
    opened_us: int
    last_us: int
    revision: int = 0
    alerts: int = 0
    suppressed: int = 0
    first_alert: str
    last_alert: Mapping[str, Any]
    acknowledged: Mapping[str, Any] | None = None


class Incidents:
    """The open incidents of a pattern, by group.

    Each change is reported once, and depends only on the events of the place. ``by`` has the names of the values that
    form a group. A group is a JSON list of these values.
    """

    def __init__(self, stream: str, definition: Definition, by: Sequence[str], closes_after_us: int) -> None:
        self._about = {"stream": stream, "pattern": definition.name, "version": definition.version}
        self._by = by
        self._closes_after_us = closes_after_us
        self._open: dict[str, Incident] = {}  # ordered by last alert, the oldest first
        self._now_us = NEVER_US

    def __len__(self) -> int:
        return len(self._open)

    def continue_as(self, definition: Definition, closes_after_us: int) -> None:
        """Keep the open incidents under another version of the pattern that forms the same groups."""
        self._about["version"], self._closes_after_us = definition.version, closes_after_us

    def __getitem__(self, group: str) -> Incident:
        return self._open[group]

    def add(
        self, group: str, time_us: int, alert: Mapping[str, Any], key_hash: int, *, is_suppressed: bool
    ) -> Iterator[Change]:
        """Add an alert to the open incident of its group, or open an incident, and yield the changes.

        An incident that had no alert for ``close_after`` is closed first. A suppressed alert is only counted.
        """
        at_us = max(time_us, self._now_us)
        yield from self._overdue(group, at_us)
        last_alert = {name: alert[name] for name in ("id", "key", "why")}
        incident = self._open.pop(group, None)  # inserted again below, to keep that order
        is_new = incident is None
        if incident is None:
            about = self._about["stream"], self._about["pattern"], group, alert["id"]
            incident = Incident(
                id=row_id(OPENED, *about),
                key_hash=key_hash,
                opened_us=at_us,
                last_us=at_us,
                first_alert=alert["id"],
                last_alert=last_alert,
            )
        self._open[group] = incident
        incident.last_us = at_us
        incident.alerts += 1
        incident.suppressed += is_suppressed
        if is_new or not is_suppressed:
            incident.last_alert = last_alert
            yield self._change(OPENED if is_new else UPDATED, group, incident, at_us)

    def resolve(self, group: str, time_us: int, alert: Mapping[str, Any]) -> Iterator[Change]:
        """Close the open incident of a group, if any, because another pattern has raised ``alert``.

        Yields the change.
        """
        at_us = max(time_us, self._now_us)
        yield from self._overdue(group, at_us)
        yield from self._close(group, at_us, {"how": "pattern", "pattern": alert["pattern"], "alert": alert["id"]})

    def act(self, group: str, action: str, request: Mapping[str, Any]) -> Iterator[Change]:
        """Acknowledge or close an open incident as a person requests, and yield the change.

        There is no change if the incident is already acknowledged or closed.
        """
        incident = self._open.get(group)
        if incident is None or incident.id != request["incident"]:
            return
        at_us, by = max(incident.last_us, self._now_us), {"by": request["by"], "at": request["at"]}
        if action == CLOSE:
            yield from self._close(group, at_us, {"how": request.get("how", "person"), **by})
        elif incident.acknowledged is None:
            incident.acknowledged = by
            yield self._change(UPDATED, group, incident, at_us)

    def pass_time(self, now_us: int | None) -> Iterator[Change]:
        """Close the incidents that had no alert for ``close_after``, and yield the changes.

        ``now_us`` is the event time reached. None closes all incidents, because the input has ended.
        """
        if now_us is not None:
            self._now_us = max(self._now_us, now_us)
        while self._open:
            ends_us = self._ends_us(self._open[first := next(iter(self._open))])
            if now_us is not None and ends_us > self._now_us:
                return
            yield from self._close(first, ends_us, {"how": "time"})

    def close_all(self, how: str) -> Iterator[Change]:
        for group, incident in list(self._open.items()):
            yield from self._close(group, max(incident.last_us, self._now_us), {"how": how})

    def key_hashes(self) -> list[int]:
        """Return the hashed key of each group."""
        return [incident.key_hash for incident in self._open.values()]

    def keep(self, stays: list[bool]) -> None:
        """Keep the incidents of the groups whose flag in ``stays`` is true.

        The flags are in the order of ``key_hashes``.
        """
        self._open = {
            group: incident for (group, incident), stay in zip(self._open.items(), stays, strict=True) if stay
        }

    def to_json(self) -> list[Any]:
        return [self._now_us, [[group, asdict(incident)] for group, incident in self._open.items()]]

    def load(self, value: list[Any]) -> None:
        self._now_us, groups = value
        self._open = {group: Incident(**members) for group, members in groups}

    def _ends_us(self, incident: Incident) -> int:
        return incident.last_us + self._closes_after_us

    def _overdue(self, group: str, now_us: int) -> Iterator[Change]:
        incident = self._open.get(group)
        if incident is not None and self._ends_us(incident) <= now_us:
            yield from self._close(group, self._ends_us(incident), {"how": "time"})

    def _close(self, group: str, at_us: int, closed_by: Mapping[str, Any]) -> Iterator[Change]:
        incident = self._open.pop(group, None)
        if incident is not None:
            yield self._change(CLOSED, group, incident, at_us, closed_by)

    def _change(
        self, kind: ResultKind, group: str, incident: Incident, at_us: int, closed_by: Mapping[str, Any] | None = None
    ) -> Change:
        incident.revision += 1
        identity = row_id(kind, incident.id, incident.revision)
        updated_at = format_time(min(at_us, LATEST_US))
        state = "acknowledged" if incident.acknowledged else "open"
        return (
            kind,
            identity,
            {
                "type": kind.delivered_as,
                "id": identity,
                "incident": incident.id,
                **self._about,
                "group": dict(zip(self._by, orjson.loads(group), strict=True)),
                "state": state if closed_by is None else "closed",
                "revision": incident.revision,
                "opened_at": format_time(incident.opened_us),
                "updated_at": updated_at,
                "closed_at": None if closed_by is None else updated_at,
                "closed_by": closed_by,
                "acknowledged": incident.acknowledged,
                "alerts": incident.alerts,
                "suppressed_alerts": incident.suppressed,
                "first_alert": incident.first_alert,
                "last_alert": incident.last_alert["id"],
                "key": incident.last_alert["key"],
                "why": incident.last_alert["why"],
            },
        )
