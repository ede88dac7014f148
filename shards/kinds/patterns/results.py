"""Results of a matcher as rows with ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from nfa import (
    FEW_ROWS,
    MATCH_LIMIT,
    Correction,
    Deviation,
    Ending,
    LaneOutput,
    Match,
    MatchOutput,
    Overflow,
    Query,
    RunningPattern,
    Timeout,
)
from shards.errors import ShardError
from shards.kinds.patterns.alert_columns import alerts_of, endings_of, steps_of
from shards.kinds.patterns.derived_events import DerivedEvents
from shards.kinds.patterns.errors import MatchLimitReached, RunLimitReached, WorkLimitReached
from shards.kinds.patterns.result_kinds import (
    ALERT,
    CORRECTION,
    DEVIATION,
    ENDING,
    ENDING_COUNT,
    SUSPENSION,
    TIMEOUT,
    alert_id,
)
from shards.kinds.patterns.rules import Rules
from shards.operators import Origin, Result, Single
from shards.results import DEAD_LETTER
from shards.rows import dead_letter_body, row_id
from streams import WorkBudget, format_time, shown_time

_FEWER = "WITHIN, stricter conditions, shorter repetitions, NEXT or a skip to the next match keep partial matches few"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternResults:
    """Renders the output of a matcher as results.

    Attributes:
        route: Name of the further key of the traces; empty for the correlation key.
        steps: The steps of patterns in words. A pattern is added with its first alert.
    """

    stream: str
    patterns: Mapping[tuple[str, int], RunningPattern]
    rules: Mapping[int, Rules]
    route: str = ""
    steps: dict[RunningPattern, Mapping[str, str]] = field(default_factory=dict)

    def of(self, output: MatchOutput, origin: Origin, events: DerivedEvents | None = None) -> Iterator[Result]:
        """Yield all results of the matcher's output for a batch, or for passing time.

        ``events`` are the events that the same output derives.
        """
        for lane in output.lanes:
            yield from self.alerts(lane)
        if events is not None:
            yield from events.rows()
            yield from events.dead_letters(origin)
        yield from self.timeouts(output)
        yield from self.endings(output, origin.newest)
        yield from self._routed(self._others(output, origin))

    def timeouts(self, output: MatchOutput) -> Iterator[Single]:
        """Return the timeouts: partial matches that could still have continued when WITHIN had passed."""
        return self._routed(map(self._timeout, output.timeouts()))

    def alerts(self, lane: LaneOutput) -> Iterator[Result]:
        """Yield the alerts of the matches of one per-key matcher."""
        if not lane.has_few_matches:
            yield from alerts_of(lane, self.stream, self.route)
        elif len(lane.matches):
            matches = ((match, self._steps(match.pattern, match.version)) for match in lane.values_of_matches())
            yield from self._routed((ALERT, *alert_of(self.stream, match, steps)) for match, steps in matches)

    def endings(self, output: MatchOutput, newest: int | None = None) -> Iterator[Result]:
        """Yield the last ``newest`` early terminations of each per-key matcher, or all if ``newest`` is None."""
        for lane in output.lanes:
            if len(lane.ending_rows) > FEW_ROWS:
                columns = lane.columns_of_endings(newest)
                yield endings_of(columns, list(map(self._reason, columns.kinds)), self.stream, self.route)
            elif len(lane.ending_rows):
                endings = lane.values_of_endings(newest)
                yield from self._routed(
                    (ENDING, *ending_of(self.stream, ending, self._reason(ending))) for ending in endings
                )

    def _steps(self, name: str, version: int) -> Mapping[str, str]:
        pattern = self.patterns[name, version]
        if pattern not in self.steps:
            self.steps[pattern] = steps_of(pattern)
        return self.steps[pattern]

    def deviations(self, output: MatchOutput) -> Iterator[Single]:
        """Return the deviations. The first deviation of a kind can take a second, because it has to be explained."""
        return map(self._deviation, output.deviations())

    def corrections(self, output: MatchOutput) -> Iterator[Single]:
        """Return the corrections of all retracted matches."""
        return map(self._correction, output.corrections())

    def _others(self, output: MatchOutput, origin: Origin) -> Iterator[Single]:
        if origin.newest is not None:
            yield from self._counted(output.older_endings(origin.newest), origin)
        yield from map(self._deviation, output.deviations())
        yield from map(self._correction, filter(self._is_alert, output.corrections()))
        for overflow in _summed(output.overflows()):
            for loss in self._losses(overflow):
                yield self._loss(origin, overflow, loss)
            if overflow.suspends:
                yield self._suspension(origin, overflow)

    def _is_alert(self, correction: Correction) -> bool:
        """Return whether a correction retracts an alert. A match that became an event is retracted by an event."""
        return self.patterns[correction.pattern, correction.version].query.pattern.into is None

    def _routed(self, results: Iterable[Single]) -> Iterator[Single]:
        if not self.route:
            return iter(results)
        return ((kind, identity, {**body, "route": self.route}) for kind, identity, body in results)

    def _correction(self, correction: Correction) -> Single:
        name = self.stream
        bindings = {alias: list(ids) for alias, ids in correction.bindings.items()}
        alert = alert_id(name, correction.pattern, correction.version, correction.key, bindings, correction.row)
        identity = row_id(CORRECTION, alert, correction.event_id)
        body = {
            "type": CORRECTION.delivered_as,
            "id": identity,
            "stream": name,
            "pattern": correction.pattern,
            "version": correction.version,
            "key": correction.key,
            **_row_of(correction),
            "alert": alert,
            "bindings": bindings,
            "event": correction.event_id,
            "event_type": correction.event_type,
            "time": format_time(correction.time_us),
            "reason": f"{correction.event_type} must not follow, and was ruled out when the alert was sent",
        }
        return CORRECTION, identity, body

    def _timeout(self, timeout: Timeout) -> Single:
        name = self.stream
        bindings = {alias: list(ids) for alias, ids in timeout.bindings.items()}
        parts = (
            name,
            timeout.pattern,
            timeout.version,
            timeout.key,
            bindings,
            timeout.due_us,
            *_row_of(timeout).values(),
        )
        identity = row_id(TIMEOUT, *parts)
        body = {
            "id": identity,
            "stream": name,
            "pattern": timeout.pattern,
            "version": timeout.version,
            "key": timeout.key,
            **_row_of(timeout),
            "start": format_time(timeout.start_us),
            "due": shown_time(timeout.due_us),
            "bindings": bindings,
            "missing": timeout.missing,
        }
        return TIMEOUT, identity, body

    def _counted(self, kinds: Iterable[tuple[Ending, int]], origin: Origin) -> Iterator[Single]:
        """Count early terminations by pattern and reason. The id of a count depends on its first termination."""
        counts: dict[bytes, dict[str, Any]] = {}
        for ending, count in kinds:
            members = {"pattern": ending.pattern, "version": ending.version, **self._reason(ending)}
            counted = counts.setdefault(
                orjson.dumps(members), {**members, "count": 0, "first": (ending.key, ending.event_id)}
            )
            counted["count"] += count
        place = self.stream, origin.shard, origin.entry.position
        for cause, body in counts.items():
            identity = row_id(ENDING_COUNT, *place, body["first"], cause.decode())
            yield ENDING_COUNT, identity, {**body, "id": identity, "stream": self.stream}

    def _reason(self, ending: Ending) -> Mapping[str, Any]:
        return self.rules[ending.guard_version].explain(self._query(ending), ending)

    def _deviation(self, deviation: Deviation) -> Single:
        name = self.stream
        identity = row_id(DEVIATION, name, deviation.key, deviation.event_id)
        why = self.rules[deviation.guard_version].explain_deviation(deviation)
        body = {
            "type": DEVIATION.delivered_as,
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
        return DEVIATION, identity, body

    def _losses(self, overflow: Overflow) -> Iterator[ShardError]:
        pattern, budget = self._query(overflow).pattern, self._budget(overflow)
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
        if overflow.work and not overflow.is_in_all:
            yield WorkLimitReached(
                f"{what} was given up: its events met {overflow.work:,} partial matches (or as much work of "
                f"conditions) beyond the {budget.per_event:,} that each may meet, and the limit is "
                f"{budget.per_trace:,}; it is not matched in this trace until the trace ends; everything else "
                f"continues. {_FEWER}"
            )

    def _loss(self, origin: Origin, overflow: Overflow, error: ShardError) -> Single:
        place = origin.entry.position if not overflow.event_id else overflow.event_id
        parts = (overflow.pattern, overflow.version, overflow.key, place, overflow.time_us, error.code)
        identity = row_id(DEAD_LETTER, self.stream, *parts)
        body = {
            **dead_letter_body(origin.shard, origin.entry, error),
            "id": identity,
            "pattern": overflow.pattern,
            "version": overflow.version,
            "key": overflow.key,
            "event_id": overflow.event_id,
            "event_type": overflow.event_type,
            **({"work": overflow.work} if error.code == WorkLimitReached.code else {}),
        }
        return DEAD_LETTER, identity, body

    def _suspension(self, origin: Origin, overflow: Overflow) -> Single:
        """Return the suspension of a pattern, which has the same id in every shard."""
        identity = row_id(SUSPENSION, self.stream, overflow.pattern, overflow.version)
        budget = self._budget(overflow)
        why, advice = overflow.reason, ""
        if not why:
            why, advice = f"{_why_suspended(overflow, budget)}, the last time {_place_of(overflow)}", f" {_FEWER}"
        body = {
            "type": SUSPENSION.delivered_as,
            "id": identity,
            "stream": self.stream,
            "pattern": overflow.pattern,
            "version": overflow.version,
            "key": overflow.key,
            "event": overflow.event_id,
            "event_type": overflow.event_type,
            "time": format_time(overflow.time_us),
            "shard": origin.shard,
            "budget": budget.to_json(),
            "reason": f"the pattern {overflow.pattern!r} (version {overflow.version}) is suspended: "
            f"{why}; it matches nothing until another version is registered or it is resumed.{advice}",
        }
        return SUSPENSION, identity, body

    def _budget(self, overflow: Overflow) -> WorkBudget:
        return self.patterns[overflow.pattern, overflow.version].budget

    def _query(self, result: Ending | Overflow) -> Query:
        return self.patterns[result.pattern, result.version].query


def _row_of(result: Timeout | Correction) -> dict[str, Any]:
    return {} if result.row is None else {"row": result.row}


def _summed(overflows: Iterable[Overflow]) -> list[Overflow]:
    sums: dict[Overflow, Overflow] = {}
    for overflow in overflows:
        place = replace(overflow, dropped=0, runs=0, work=0, suspends=False, is_in_all=False)
        total = sums.get(place, place)
        sums[place] = replace(
            place,
            dropped=total.dropped + overflow.dropped,
            runs=total.runs + overflow.runs,
            work=total.work + overflow.work,
            suspends=total.suspends or overflow.suspends,
            is_in_all=total.is_in_all or overflow.is_in_all,
        )
    return list(sums.values())


def _why_suspended(overflow: Overflow, budget: WorkBudget) -> str:
    if overflow.is_in_all:
        return (
            f"in all traces of one shard its events met {overflow.work:,} partial matches (or as much work of "
            f"conditions) beyond the {budget.per_event:,} that each event of the stream allows, and the limit is "
            f"{budget.in_all:,}"
        )
    traces = "trace" if budget.traces == 1 else "traces"
    return (
        f"it was given up in more than {budget.traces:,} {traces} of one shard (each counts for "
        f"{budget.forgiven_after:,} events of the stream)"
    )


def _place_of(overflow: Overflow) -> str:
    if overflow.event_id:
        return f"in the trace {overflow.key!r} at the event {overflow.event_id!r} of type {overflow.event_type!r}"
    return f"in the trace {overflow.key!r} as time passed" if overflow.key else "as time passed"


def alert_of(stream: str, match: Match, steps: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the id and the JSON object of the alert for a match.

    ``steps`` maps each alias of the pattern to a description of its step, which explains the alert.
    """
    identity = alert_id(stream, match.pattern, match.version, match.key, match.bindings, match.row)
    body = {
        "type": ALERT.name,
        "id": identity,
        "stream": stream,
        "pattern": match.pattern,
        "version": match.version,
        "key": match.key,
        **({} if match.row is None else {"row": match.row}),
        "start": format_time(match.start_us),
        "end": format_time(match.end_us),
        "detected_at": shown_time(match.detected_us),
        "bindings": match.bindings,
        "returns": match.returns,
        "why": _why(steps, match.bindings),
        **({} if match.decided_by is None else {"decided_by": match.decided_by}),
        **({"deviating": True} if match.deviating else {}),
        **({"would_be_lost": True} if match.would_be_lost else {}),
    }
    return identity, body


def ending_of(stream: str, ending: Ending, reason: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the id and the JSON object of an early termination."""
    row = {} if ending.row is None else {"row": ending.row}
    identity = row_id(ENDING, stream, ending.pattern, ending.version, ending.key, ending.event_id, *row.values())
    body = {
        "id": identity,
        "stream": stream,
        "pattern": ending.pattern,
        "version": ending.version,
        "key": ending.key,
        **row,
        "event": ending.event_id,
        "event_type": ending.event_type,
        "time": format_time(ending.time_us),
        **reason,
    }
    return identity, body


def _why(steps: Mapping[str, str], bindings: Mapping[str, tuple[str, ...]]) -> str:
    return "; ".join(
        f"{', '.join(ids)} {'is' if len(ids) == 1 else 'are'} {steps[alias]}" for alias, ids in bindings.items()
    )
