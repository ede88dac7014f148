"""The part of the sink that runs deciders, which merge the observations of all shards into decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import orjson
import structlog

from service.errors import LogResharding, RecordFormatError
from service.stores import DeciderRecord, DeciderStore, Decision
from shards import OutputRow, decider_kind
from streams import Clock, is_older, position_order

PAUSE_US = 5_000_000
"""Minimum interval between two decisions of a decider, in microseconds of the wall clock."""

_ATTEMPTS = 3

_Observed: TypeAlias = Sequence[tuple[OutputRow, Mapping[str, Any]]]
"""Rows of the kind ``stats``, each with the summary that a decider reads from it."""


class Decisions:
    """Passes the observations in the reports of shards to deciders, and appends the resulting decisions to the log.

    A decider gets each observation at most once, even if a micro-batch is written twice, or by two drivers at the same
    time. While the log is being resharded, observations are dropped. A missing observation never makes a result wrong.
    Errors of Redis stop the pipeline.
    """

    def __init__(self, store: DeciderStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._log = structlog.get_logger(__name__)

    def __call__(self, reports: Sequence[OutputRow]) -> None:
        """Pass the observations in ``reports`` to the deciders. ``reports`` are rows of the kind ``stats``."""
        observations: defaultdict[tuple[str, str], list[tuple[OutputRow, Mapping[str, Any]]]] = defaultdict(list)
        for row in reports:
            for observation in orjson.loads(row.body).get("observed", ()):
                observations[observation["stream"], observation["decider"]].append((row, observation["summary"]))
        for (stream, name), observed in sorted(observations.items()):
            try:
                self._observe(stream, name, observed)
            except LogResharding as error:
                self._log.warning("not-decided", stream=stream, decider=name, code=error.code, error=error.message)

    def _observe(self, stream: str, name: str, observed: _Observed) -> None:
        for _ in range(_ATTEMPTS):
            before = self._stored_record(stream, name)
            unread = [(row, summary) for row, summary in observed if _is_new(row, before)]
            if not unread or self._decided(stream, name, before, unread):
                return

    def _stored_record(self, stream: str, name: str) -> DeciderRecord:
        try:
            return self._store.get(stream, name)
        except RecordFormatError as error:
            self._log.warning("decider-forgotten", stream=stream, decider=name, error=error.message)
            return self._store.unread(stream, name)

    def _decided(self, stream: str, name: str, before: DeciderRecord, unread: _Observed) -> bool:
        """Return False and store nothing if another driver has changed the decider since ``before`` was read."""
        decider = decider_kind(name).load(before.state)
        decider.observe([summary for _, summary in unread])
        now_us = self._clock.now_us()
        is_due = not before.decisions or now_us - before.decisions[-1].at_us >= PAUSE_US
        record = decider.decide() if is_due else None
        decision = None if record is None else Decision(at_us=now_us, record=record.to_json())
        positions = {str(row.shard): row.position for row, _ in unread}
        after = before.after(decider.to_json(), positions, decision)
        if not self._store.put(stream, name, before, after, record):
            return False
        if decision is not None:
            self._log.info("decided", stream=stream, decider=name, **decision.record)
        return True


def _is_new(row: OutputRow, before: DeciderRecord) -> bool:
    if is_older(row.position, before.since):
        return False
    last_position = before.positions.get(str(row.shard))
    return last_position is None or position_order(row.position) > position_order(last_position)
