"""The operator that decides which alerts of a pattern are suppressed, at the place of their groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import orjson
import pyarrow as pa

from shards.hosts.keyed_host import KeyedHost, Operator, Results
from shards.kinds.patterns.result_kinds import ALERT, SUPPRESSED
from shards.kinds.patterns.suppression import LastAlerts, Suppression
from shards.operators import NO_OUTPUT, KeyChoice, Output, SavedHost
from shards.results import ResultKind
from shards.rows import FoundRows
from streams import Definition, EventBatch, StreamDeclaration

_HEAD = b'{"type":"%b"'


class SuppressingOperator(Operator):
    """Lets alerts of a pattern pass, or suppresses them."""

    waits_for_time = True  # groups are dropped as time passes

    def __init__(self, definition: Definition, declaration: StreamDeclaration) -> None:
        super().__init__(definition, declaration)
        self._suppression = Suppression.from_json(definition.body["suppression"])
        self._last = LastAlerts(self._suppression.lasts_us)

    def process(self, batch: EventBatch) -> Output:
        """Decide about alerts."""
        batch = batch.take(np.flatnonzero(~batch.is_ended))
        ids, bodies = (batch.columns.column(name).to_pylist() for name in ("id", "data"))
        passing: list[tuple[str, bytes]] = []
        suppressed: list[tuple[str, bytes]] = []
        for identity, body, time_us, key_hash in zip(
            ids, bodies, batch.time_us.tolist(), batch.key_hashes.tolist(), strict=True
        ):
            group = self._suppression.group_of(orjson.loads(body))
            suppressor = self._last.suppressor(group, time_us, identity, key_hash)
            if suppressor is None:
                passing.append((identity, body))
            else:
                suppressed.append((identity, _marked(body, suppressor)))
        return Results([self._rows(kind, some) for kind, some in ((ALERT, passing), (SUPPRESSED, suppressed)) if some])

    def advance_time(self, watermark_us: int) -> Output:
        """Drop groups whose last alert suppresses none any more."""
        self._last.expire(watermark_us)
        return NO_OUTPUT

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Forget the groups of all other keys."""
        self._last.keep(is_kept(np.array(self._last.key_hashes(), np.uint64)).tolist())

    def measures(self) -> Mapping[str, int]:
        """The number of groups."""
        return {"groups": len(self._last)}

    def dump(self) -> SavedHost:
        """The last alerts by group."""
        return SavedHost(head={}, sections={"last": orjson.dumps(self._last.to_json())})

    def load(self, saved: SavedHost) -> None:
        """Restore the last alerts."""
        self._last.load(orjson.loads(saved.sections["last"]))

    def _rows(self, kind: ResultKind, found: list[tuple[str, bytes]]) -> FoundRows:
        stream = self.definition.body["stream"]
        ids, bodies = zip(*found, strict=True)
        about = {"stream": stream, "pattern": self.definition.name}
        texts = pa.array(ids, pa.string()), pa.array(bodies, pa.binary())
        return replace(FoundRows.about(kind, *texts, [about], np.zeros(len(ids), np.int32)), stream=stream)


class SuppressionHost(KeyedHost):
    """Host of the suppressions at one place."""

    has_traces: ClassVar[bool] = False


def _marked(alert: bytes, suppressor: str) -> bytes:
    """A suppressed alert as JSON: an alert with its other type, and the id of the alert that suppresses it."""
    head, own = (_HEAD % one.delivered_as.encode() for one in (ALERT, SUPPRESSED))
    return own + alert.removeprefix(head)[:-1] + b',"suppressed_by":"%b"}' % suppressor.encode()
