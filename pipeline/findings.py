"""What a matcher found, as rows: their ids, and what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, TypeAlias

import orjson

from nfa import (
    MATCH_LIMIT,
    WORK_LIMIT,
    WORK_PER_EVENT,
    Correction,
    Deviation,
    Ending,
    MatchOutput,
    Overflow,
    Query,
    RegisteredPattern,
    Timeout,
    describe_atom,
)
from pipeline.alert_columns import alerts_of, endings_of
from pipeline.entries import Entry
from pipeline.errors import EventLate, MatchLimitReached, PipelineError, RunLimitReached, WorkLimitReached
from pipeline.rows import FoundRows, RowKind, alert_id, dead_letter_body, row_id
from pipeline.rules import Rules
from streams import EARLIEST_US, LATEST_US, EventBatch, format_time

_SHOWN_CHARS = 4_000

_Single: TypeAlias = tuple[RowKind, str, dict[str, Any]]
Finding: TypeAlias = _Single | FoundRows
"""Kind, id, JSON object; or many of one kind as columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Tells what was found in one stream.

    Attributes:
        stream: Its name.
        patterns: The patterns by name and version.
        rules: Constraints by version.
        route: Name of the further key whose traces they are; empty for those of the correlation key.
        endings_told: Of each correlation key the newest so many endings are told one by one, and the others counted by
            their reasons; None: all are told.
    """

    stream: str
    patterns: Mapping[tuple[str, int], RegisteredPattern]
    rules: Mapping[int, Rules]
    route: str = ""
    endings_told: int | None = None
    _reasons: dict[tuple[Any, ...], tuple[Ending, dict[str, Any]]] = field(default_factory=dict)

    def tell(self, output: MatchOutput, shard: int, entry: Entry) -> Iterator[Finding]:
        """All findings of some events, or of time passing.

        Args:
            output: What the matcher says.
            shard: Where the events are.
            entry: The last entry that had a part in it.
        """
        for lane in output.lanes:
            if len(lane.matches):
                yield from alerts_of(lane, self.stream, self.route)
        yield from self._routed(map(self._timeout, output.timeouts()))
        for columns in output.ending_columns(self.endings_told):
            yield endings_of(columns, list(map(self._reason, columns.kinds)), self.stream, self.route)
        yield from self._routed(self._others(output, shard, entry))

    def _others(self, output: MatchOutput, shard: int, entry: Entry) -> Iterator[_Single]:
        """Of the findings those that are few."""
        if self.endings_told is not None:
            yield from self._counted(output.older_endings(self.endings_told), shard, entry)
        yield from map(self._deviation, output.deviations())
        yield from map(self._correction, output.corrections())
        for overflow in _summed(output.overflows()):
            for loss in self._losses(overflow):
                yield self._loss(shard, entry, overflow, loss)

    def _routed(self, found: Iterable[_Single]) -> Iterator[_Single]:
        """The same with the further key in their bodies."""
        if not self.route:
            return iter(found)
        return ((kind, identity, {**body, "route": self.route}) for kind, identity, body in found)

    def _correction(self, correction: Correction) -> _Single:
        name = self.stream
        bindings = {alias: list(ids) for alias, ids in correction.bindings.items()}
        alert = alert_id(name, correction.pattern, correction.version, correction.key, bindings)
        identity = row_id(RowKind.CORRECTION, alert, correction.event_id)
        body = {
            "type": RowKind.CORRECTION.value,
            "id": identity,
            "stream": name,
            "pattern": correction.pattern,
            "version": correction.version,
            "key": correction.key,
            "alert": alert,
            "bindings": bindings,
            "event": correction.event_id,
            "event_type": correction.event_type,
            "time": format_time(correction.time_us),
            "reason": f"{correction.event_type} must not follow, and was told to be impossible when the alert was sent",
        }
        return RowKind.CORRECTION, identity, body

    def _timeout(self, timeout: Timeout) -> _Single:
        name = self.stream
        bindings = {alias: list(ids) for alias, ids in timeout.bindings.items()}
        parts = (name, timeout.pattern, timeout.version, timeout.key, bindings, timeout.due_us)
        identity = row_id(RowKind.TIMEOUT, *parts)
        body = {
            "id": identity,
            "stream": name,
            "pattern": timeout.pattern,
            "version": timeout.version,
            "key": timeout.key,
            "start": format_time(timeout.start_us),
            "due": format_time(timeout.due_us),
            "bindings": bindings,
            "missing": timeout.missing,
        }
        return RowKind.TIMEOUT, identity, body

    def _counted(self, kinds: Iterable[tuple[Ending, int]], shard: int, entry: Entry) -> Iterator[_Single]:
        """How many endings have the same pattern and reason; the first of them makes the id."""
        counts: dict[bytes, dict[str, Any]] = {}
        for ending, count in kinds:
            told = {"pattern": ending.pattern, "version": ending.version, **self._reason(ending)}
            found = counts.setdefault(orjson.dumps(told), {**told, "count": 0, "first": (ending.key, ending.event_id)})
            found["count"] += count
        for cause, body in counts.items():
            identity = row_id(RowKind.ENDING_COUNT, self.stream, shard, entry.position, body["first"], cause.decode())
            yield RowKind.ENDING_COUNT, identity, {**body, "id": identity, "stream": self.stream}

    def _reason(self, ending: Ending) -> dict[str, Any]:
        """Why it ended: once per cause, as the endings of a batch have few, whose parts are the same objects."""
        parts = ending.before, ending.after, ending.event, ending.state
        cause = ending.pattern, ending.version, ending.guard_version, ending.event_type, *map(id, parts)
        if cause not in self._reasons:
            why = self.rules[ending.guard_version].explain(self._query(ending), ending)
            told = {
                "form": why.form,
                "constraints": [str(constraint) for constraint in why.constraints],
                "atom": describe_atom(why.atom) if why.atoms else f"NOT {describe_atom(why.atom)}",
                "reason": why.text,
            }
            self._reasons[cause] = ending, told  # the ending keeps its parts, and so their ids, from being reused
        return self._reasons[cause][1]

    def _deviation(self, deviation: Deviation) -> _Single:
        name = self.stream
        identity = row_id(RowKind.DEVIATION, name, deviation.key, deviation.event_id)
        why = self.rules[deviation.guard_version].explain_deviation(deviation)
        body = {
            "type": RowKind.DEVIATION.value,
            "id": identity,
            "stream": name,
            "key": deviation.key,
            "event": deviation.event_id,
            "event_type": deviation.event_type,
            "time": format_time(deviation.time_us),
            "version": deviation.guard_version,
            "kind": why.kind,
            "constraints": [str(part) for part in why.constraints],
            "symbols": sorted(deviation.event.symbols),
            "allowed": list(why.allowed),
            "released": deviation.released,
            "reason": why.text,
        }
        return RowKind.DEVIATION, identity, body

    def _losses(self, overflow: Overflow) -> Iterator[PipelineError]:
        """What was lost, in words: an alert that is not told has to be told of."""
        pattern = self._query(overflow).pattern
        what = f"the pattern {overflow.pattern!r} (version {overflow.version}) {_place_of(overflow)}"
        advice = "conditions or a window in the pattern make them fewer"
        if overflow.dropped:
            limit = MATCH_LIMIT if pattern.limit is None else pattern.limit
            yield MatchLimitReached(
                f"{overflow.dropped:,} matches of {what} were beyond the limit of {limit:,} per event and gave no "
                f"alerts; {advice}"
            )
        if overflow.runs:
            yield RunLimitReached(
                f"{overflow.runs:,} partial matches of {what} were beyond what a trace may hold, so that alerts may "
                f"be missing; {advice}"
            )

        if overflow.work:
            yield WorkLimitReached(
                f"{what} was given up: its events met {overflow.work:,} partial matches beyond the {WORK_PER_EVENT:,} "
                f"that each may meet, and the limit is {WORK_LIMIT:,}; the pattern finds nothing more in this trace "
                "until it ends, and all else goes on. WITHIN, stricter conditions, NEXT or a skip to the next match "
                "keep partial matches few"
            )

    def _loss(self, shard: int, entry: Entry, overflow: Overflow, error: PipelineError) -> _Single:
        place = entry.position if not overflow.event_id else overflow.event_id
        parts = (overflow.pattern, overflow.version, overflow.key, place, overflow.time_us, error.code)
        identity = row_id(RowKind.DEAD_LETTER, self.stream, *parts)
        return RowKind.DEAD_LETTER, identity, dead_letter_body(shard, entry, error) | {"id": identity}

    def _query(self, found: Ending | Overflow) -> Query:
        return self.patterns[found.pattern, found.version].query


def in_columns(findings: Iterable[Finding]) -> Iterator[FoundRows]:
    """The same findings in the same order, single ones of one kind together."""
    for kind, some in groupby(findings, lambda found: found[0] if isinstance(found, tuple) else None):
        if kind is None:
            yield from (found for found in some if isinstance(found, FoundRows))
        else:
            yield FoundRows.of(kind, [found[1:] for found in some if isinstance(found, tuple)])


def _summed(overflows: Iterable[Overflow]) -> list[Overflow]:
    """One per trace, event and pattern, in the order of their first."""
    found: dict[Overflow, tuple[int, int, int]] = {}
    for overflow in overflows:
        place = replace(overflow, dropped=0, runs=0, work=0)
        dropped, runs, work = found.get(place, (0, 0, 0))
        found[place] = dropped + overflow.dropped, runs + overflow.runs, work + overflow.work
    return [replace(place, dropped=dropped, runs=runs, work=work) for place, (dropped, runs, work) in found.items()]


def _place_of(overflow: Overflow) -> str:
    if overflow.event_id:
        return f"in the trace {overflow.key!r} at the event {overflow.event_id!r} of type {overflow.event_type!r}"
    return f"in the trace {overflow.key!r} as time passed" if overflow.key else "as time passed"


def late_letter(shard: int, entry: Entry, event: EventBatch, watermark_us: int) -> Finding:
    """The dead letter for an event that is too late.

    Args:
        shard: Where it came.
        entry: What it came with.
        event: A batch of one row.
        watermark_us: Events before it were not expected any more.
    """
    (late,) = event.to_events()
    error = EventLate(
        f"event {late.id!r} of {format_time(late.time_us)} came late: events before {_shown(watermark_us)} were not "
        "expected any more; a larger lateness of the stream waits longer, and late: process matches late events, too"
    )
    identity = row_id(RowKind.DEAD_LETTER, entry.stream, entry.route, "late", late.id, late.key, late.time_us)
    shown = {"id": late.id, "type": late.type, "time": format_time(late.time_us), "key": late.key, "data": late.data}
    text = orjson.dumps(shown).decode()
    body = {
        **dead_letter_body(shard, entry, error),
        "id": identity,
        "event": text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…",
        "watermark": _shown(watermark_us),
    }
    return RowKind.DEAD_LETTER, identity, body


def _shown(time_us: int) -> str:
    return format_time(min(max(time_us, EARLIEST_US), LATEST_US))
