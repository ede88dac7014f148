"""The operator that decides which alerts of a pattern are suppressed, and to which incident each alert belongs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import orjson
import pyarrow as pa

from shards.hosts.keyed_host import KeyedHost, Operator, Results
from shards.kinds.patterns.incidents import Change, Incidents
from shards.kinds.patterns.result_kinds import ALERT, SUPPRESSED
from shards.kinds.patterns.sources import RESOLUTION, SUPPRESSION
from shards.kinds.patterns.suppression import INCIDENT, LastAlerts, Suppression
from shards.operators import NO_OUTPUT, KeyChoice, Output, SavedHost
from shards.results import ResultKind
from shards.rows import ResultRows
from streams import Definition, EventBatch, StreamDeclaration

_SINCE = "since"
_HEAD = b'{"type":"%b"'


class SuppressingOperator(Operator):
    """Suppresses or emits the alerts of a pattern, and manages their incidents.

    It reads the alerts as events of an inner stream.
    """

    waits_for_time = True  # as time passes, groups are dropped and incidents closed
    is_decided_by_end = False  # an incident closes at the end of its pause, whenever this is decided

    def __init__(self, definition: Definition, declaration: StreamDeclaration) -> None:
        super().__init__(definition, declaration)
        self._begin(definition)
        self._incidents = self._new_incidents()
        self._since = 0  # first version with the current groups; 0: unknown

    def _begin(self, definition: Definition) -> None:
        self.definition = definition
        self._suppression = Suppression.from_json(definition.body[SUPPRESSION])
        self._last = LastAlerts(self._suppression.lasts_us)

    def _new_incidents(self) -> Incidents | None:
        suppression = self._suppression
        if suppression.closes_after_us is None:
            return None
        return Incidents(self.definition.body["stream"], self.definition, suppression.by, suppression.closes_after_us)

    def continue_as(self, definition: Definition) -> Output | None:
        """Switch to another version. Open incidents are closed unless both versions form the same groups."""
        incidents = self._incidents
        if incidents is None:
            return None
        groups = self._suppression.by
        self._begin(definition)
        self._since = min(self._since, definition.version) if self._suppression.by == groups else definition.version
        after_us = self._suppression.closes_after_us
        if after_us is not None and self._suppression.by == groups:
            incidents.continue_as(definition, after_us)
            return NO_OUTPUT
        closed = Results(self._changes(incidents.close_all("version")))
        self._incidents = self._new_incidents()
        return closed

    def process(self, batch: EventBatch) -> Output:
        """Suppress or emit each alert in a batch, update the incidents, and return the results."""
        batch = batch.take(np.flatnonzero(~batch.is_ended))
        types = [batch.type_names[code] for code in batch.type_codes.tolist()]
        ids, bodies, keys = (batch.columns.column(name).to_pylist() for name in ("id", "data", "key"))
        decided_alerts: dict[str, list[tuple[str, bytes]]] = {ALERT.name: [], SUPPRESSED.name: []}
        changes: list[Change] = []
        for event_type, identity, body, key, time_us, key_hash in zip(
            types, ids, bodies, keys, batch.time_us.tolist(), batch.key_hashes.tolist(), strict=True
        ):
            if event_type == ALERT.name:
                kind, row, changed = self._decided(identity, body, key, time_us, key_hash)
                decided_alerts[kind.name].append((identity, row))
                changes += changed
            elif self._incidents is not None and event_type == RESOLUTION:
                changes += self._incidents.resolve(key, time_us, orjson.loads(body))
            elif self._incidents is not None:
                changes += self._incidents.act(key, event_type, orjson.loads(body))
        rows = [
            self._rows(kind, decided_alerts[kind.name]) for kind in (ALERT, SUPPRESSED) if decided_alerts[kind.name]
        ]
        return Results([*rows, *self._changes(changes)])

    def _decided(
        self, identity: str, body: bytes, key: str, time_us: int, key_hash: int
    ) -> tuple[ResultKind, bytes, Sequence[Change]]:
        """Return the kind and the body of an alert's row, and the changes of incidents that the alert causes.

        An alert of an older version, or of another group than the place's, is emitted without any effect. It may lack
        the values that form the group.
        """
        alert = orjson.loads(body)
        group = self._suppression.group_of(alert)
        if alert["version"] < self._since or key != (group if self._suppression.is_rekeyed else alert["key"]):
            return ALERT, body, ()
        suppressor = None
        if self._suppression.lasts_us:
            suppressor = self._last.suppressor(group, time_us, identity, key_hash)
        changes: Sequence[Change] = ()
        if self._incidents is not None:
            is_suppressed = suppressor is not None
            changes = [*self._incidents.add(group, time_us, alert, key_hash, is_suppressed=is_suppressed)]
            incident = self._incidents[group]
            body = _with(body, INCIDENT, incident.id)
            if is_suppressed:
                body = _with(body, "incident_alerts", incident.alerts)
        return (ALERT, body, changes) if suppressor is None else (SUPPRESSED, _marked(body, suppressor), changes)

    def advance_time(self, watermark_us: int) -> Output:
        """Drop groups that no longer suppress alerts, and close incidents without an alert for ``close_after``."""
        self._last.expire(watermark_us)
        return NO_OUTPUT if self._incidents is None else Results(self._changes(self._incidents.pass_time(watermark_us)))

    def finish(self) -> Output:
        return NO_OUTPUT if self._incidents is None else Results(self._changes(self._incidents.pass_time(None)))

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        for groups in (self._last, self._incidents):
            if groups is not None:
                groups.keep(is_kept(np.array(groups.key_hashes(), np.uint64)).tolist())

    def measures(self) -> Mapping[str, int]:
        incidents = {} if self._incidents is None else {"incidents": len(self._incidents)}
        return {"groups": len(self._last), **incidents}

    def dump(self) -> SavedHost:
        sections = {"last": orjson.dumps(self._last.to_json())}
        if self._incidents is not None:
            sections["incidents"] = orjson.dumps(self._incidents.to_json())
        return SavedHost(head={_SINCE: self._since}, sections=sections)

    def load(self, saved: SavedHost) -> None:
        self._since = saved.head.get(_SINCE, 0)  # missing in states of earlier builds
        self._last.load(orjson.loads(saved.sections["last"]))
        if self._incidents is not None:
            self._incidents.load(orjson.loads(saved.sections["incidents"]))

    def _rows(self, kind: ResultKind, rows: list[tuple[str, bytes]]) -> ResultRows:
        stream = self.definition.body["stream"]
        ids, bodies = zip(*rows, strict=True)
        about = {"stream": stream, "pattern": self.definition.name}
        texts = pa.array(ids, pa.string()), pa.array(bodies, pa.binary())
        return replace(ResultRows.about(kind, *texts, [about], np.zeros(len(ids), np.int32)), stream=stream)

    def _changes(self, changes: Iterable[Change]) -> list[ResultRows]:
        by_kind: dict[ResultKind, list[tuple[str, bytes]]] = {}
        for kind, identity, body in changes:
            by_kind.setdefault(kind, []).append((identity, orjson.dumps(body)))
        return [self._rows(kind, rows) for kind, rows in by_kind.items()]


class SuppressionHost(KeyedHost):
    """Host of the operators that suppress alerts at one place."""

    has_traces: ClassVar[bool] = False


def _marked(alert: bytes, suppressor: str) -> bytes:
    head, suppressed_head = (_HEAD % kind.delivered_as.encode() for kind in (ALERT, SUPPRESSED))
    return _with(suppressed_head + alert.removeprefix(head), "suppressed_by", suppressor)


def _with(alert: bytes, member: str, value: str | int) -> bytes:
    return alert[:-1] + b',"%b":%b}' % (member.encode(), orjson.dumps(value))
