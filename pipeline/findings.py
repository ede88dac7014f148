"""What a matcher found, as rows: their ids, and what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import orjson

from nfa import (
    MATCH_LIMIT,
    Correction,
    Deviation,
    Ending,
    Match,
    MatchOutput,
    Overflow,
    Query,
    RegisteredPattern,
    Timeout,
    atoms_of,
    describe_atom,
)
from pipeline.entries import Entry
from pipeline.errors import EventLate, MatchLimitReached, PipelineError, RunLimitReached
from pipeline.rows import RowKind, alert_id, dead_letter_body, row_id
from pipeline.rules import Rules
from streams import EARLIEST_US, LATEST_US, EventBatch, format_time

_SHOWN_CHARS = 4_000

Finding: TypeAlias = tuple[RowKind, str, dict[str, Any]]
"""Kind, id, JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Tells what was found in one stream.

    Attributes:
        stream: Its name.
        patterns: The patterns by name and version.
        rules: Constraints by version.
        endings_told: Of each correlation key the newest so many endings are told one by one, and the others counted by
            their reasons; None: all are told.
    """

    stream: str
    patterns: Mapping[tuple[str, int], RegisteredPattern]
    rules: Mapping[int, Rules]
    endings_told: int | None = None
    _steps: dict[tuple[str, int], dict[str, str]] = field(default_factory=dict)
    _reasons: dict[tuple[Any, ...], tuple[Ending, dict[str, Any]]] = field(default_factory=dict)

    def tell(self, output: MatchOutput, shard: int, entry: Entry) -> Iterator[Finding]:
        """All findings of some events, or of time passing.

        Args:
            output: What the matcher says.
            shard: Where the events are.
            entry: The last entry that had a part in it.
        """
        yield from map(self._alert, output.matches())
        yield from map(self._timeout, output.timeouts())
        yield from map(self._ending, output.endings(self.endings_told))
        if self.endings_told is not None:
            yield from self._counted(output.older_endings(self.endings_told), shard, entry)
        yield from map(self._deviation, output.deviations())
        yield from map(self._correction, output.corrections())
        for overflow in _summed(output.overflows()):
            for loss in self._losses(overflow):
                yield self._loss(shard, entry, overflow, loss)

    def _alert(self, match: Match) -> Finding:
        name = self.stream
        identity = alert_id(name, match.pattern, match.version, match.key, match.bindings)
        end = format_time(match.end_us)
        body = {
            "type": RowKind.ALERT.value,
            "id": identity,
            "stream": name,
            "pattern": match.pattern,
            "version": match.version,
            "key": match.key,
            "start": format_time(match.start_us),
            "end": end,
            "detected_at": end if match.detected_us == match.end_us else format_time(match.detected_us),
            "bindings": match.bindings,
            "returns": match.returns,
            "why": _why(self._steps_of(match), match.bindings),
            **({} if match.decided_by is None else {"decided_by": match.decided_by}),
            **({"deviating": True} if match.deviating else {}),
            **({"would_be_lost": True} if match.would_be_lost else {}),
        }
        return RowKind.ALERT, identity, body

    def _correction(self, correction: Correction) -> Finding:
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

    def _timeout(self, timeout: Timeout) -> Finding:
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

    def _ending(self, ending: Ending) -> Finding:
        name = self.stream
        identity = row_id(RowKind.ENDING, name, ending.pattern, ending.version, ending.key, ending.event_id)
        body = {
            "id": identity,
            "stream": name,
            "pattern": ending.pattern,
            "version": ending.version,
            "key": ending.key,
            "event": ending.event_id,
            "event_type": ending.event_type,
            "time": format_time(ending.time_us),
            **self._reason(ending),
        }
        return RowKind.ENDING, identity, body

    def _counted(self, kinds: Iterable[tuple[Ending, int]], shard: int, entry: Entry) -> Iterator[Finding]:
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

    def _deviation(self, deviation: Deviation) -> Finding:
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

    def _loss(self, shard: int, entry: Entry, overflow: Overflow, error: PipelineError) -> Finding:
        place = entry.position if not overflow.event_id else overflow.event_id
        parts = (overflow.pattern, overflow.version, overflow.key, place, overflow.time_us, error.code)
        identity = row_id(RowKind.DEAD_LETTER, self.stream, *parts)
        return RowKind.DEAD_LETTER, identity, dead_letter_body(shard, entry, error) | {"id": identity}

    def _steps_of(self, match: Match) -> dict[str, str]:
        """The steps of the pattern in words, by alias: where alternatives share an alias, all of them."""
        name = match.pattern, match.version
        if name not in self._steps:
            steps: dict[str, dict[str, None]] = {}
            for atom in atoms_of(self._query(match).pattern.event):
                steps.setdefault(atom.alias, {})[describe_atom(atom)] = None
            self._steps[name] = {alias: " or ".join(found) for alias, found in steps.items()}
        return self._steps[name]

    def _query(self, found: Match | Ending | Overflow) -> Query:
        return self.patterns[found.pattern, found.version].query


def _summed(overflows: Iterable[Overflow]) -> list[Overflow]:
    """One per trace, event and pattern, in the order of their first."""
    found: dict[Overflow, tuple[int, int]] = {}
    for overflow in overflows:
        place = replace(overflow, dropped=0, runs=0)
        dropped, runs = found.get(place, (0, 0))
        found[place] = dropped + overflow.dropped, runs + overflow.runs
    return [replace(place, dropped=dropped, runs=runs) for place, (dropped, runs) in found.items()]


def _place_of(overflow: Overflow) -> str:
    if overflow.event_id:
        return f"in the trace {overflow.key!r} at the event {overflow.event_id!r} of type {overflow.event_type!r}"
    return f"in the trace {overflow.key!r} as time passed" if overflow.key else "as time passed"


def _why(steps: Mapping[str, str], bindings: Mapping[str, tuple[str, ...]]) -> str:
    """The bound events, each with its step."""
    return "; ".join(
        f"{', '.join(ids)} {'is' if len(ids) == 1 else 'are'} {steps[alias]}" for alias, ids in bindings.items()
    )


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
