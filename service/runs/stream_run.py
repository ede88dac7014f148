"""Runs patterns of one stream over events in this process. Matches remain columns until they are written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import orjson

from nfa import CasePattern, CaseQuery, LaneOutput, MatcherStats, Overflow, Pattern
from service.errors import ProjectRefused
from service.runs.plan import RunPlan
from service.runs.running import InlineRun
from service.runs.stream_report import LISTS, StreamReport
from shards import (
    DEAD_LETTER,
    LastAlerts,
    Origin,
    Output,
    PatternHost,
    PatternKind,
    PatternOutput,
    Result,
    RoutedPattern,
    Suppression,
    match_ids,
    routed,
    suppressed_only,
)
from streams import (
    USUAL_BUDGET,
    ControlRecord,
    EventBatch,
    Late,
    PatternOn,
    PatternPause,
    StreamDeclaration,
    StreamOn,
    Tick,
    WorkBudget,
)
from streams.compiling import progress_of
from streams.tables import Tables

if TYPE_CHECKING:
    from constraints import ConstraintSet  # slow to import, and rarely needed

BATCH_ROWS = 262_144
_FILE = StreamDeclaration(name="file")

Change: TypeAlias = tuple[int, ControlRecord]
"""A control record, after the number of events that are fed before it."""


def stream_plan(
    declaration: StreamDeclaration,
    constraint_set: ConstraintSet | None,
    patterns: Sequence[tuple[RoutedPattern, bool]],
    budget: WorkBudget = USUAL_BUDGET,
    tables: Tables | None = None,
) -> RunPlan:
    """Plan a run of the patterns of one stream. Late events are either matched or dropped.

    Each pattern has a flag, which says whether constraints terminate its partial matches early. ``budget`` limits the
    work of each pattern.
    """
    name = declaration.name
    late: Late = declaration.late if declaration.lateness is None or declaration.late == "process" else "drop"
    return RunPlan(
        declarations={name: replace(declaration, late=late, derived=False)},
        sets={} if constraint_set is None else {name: constraint_set},
        patterns={name: patterns},
        budget=budget,
        tables=tables or Tables(),
    )


class StreamRun:
    """A run of the patterns of one stream. Patterns with INTO feed no streams.

    The report counts all results, but contains only the lists named in ``lists``. Without constraints, matchers ignore
    traces without bound events, unless ``follows_all`` is True. Raises ``ProjectRefused`` if a pattern is refused.

    If ``changes`` are given, in order, only they start patterns. Of a declaration, they change the end events and the
    idle timeout only.
    """

    def __init__(
        self,
        plan: RunPlan,
        *,
        lists: Collection[str] = LISTS,
        follows_all: bool = False,
        changes: Sequence[Change] | None = None,
    ) -> None:
        self._plan = plan
        self._lists = lists
        self._lanes: list[LaneOutput] = []
        self._overflows: dict[Overflow, Overflow] = {}
        followed = True if follows_all else None if plan.sets else False
        kinds = {PatternKind.name: PatternKind(follows_all=followed, derives=False)}
        (self._stream,) = plan.declarations
        self._run = InlineRun(plan, kinds=kinds, renderer=self._results, starts_patterns=changes is None)
        self._changes = deque(changes or ())
        self._fed = 0
        names = {routed_pattern.pattern.name for routed_pattern, _ in plan.patterns[self._stream]}
        self._running = names if changes is None else set[str]()

    def feed(self, events: EventBatch, progress: Callable[[int], None] | None = None, *, route: str = "") -> None:
        """Match events in order of arrival. ``progress`` receives the number of processed events after each batch.

        If ``route`` names a further key, the key of each event is a value of this further key. Otherwise, the events
        have the correlation key, and patterns on further keys see the events, too.
        """
        first = 0
        while first < len(events):
            self._change()
            rows = self._changes[0][0] - self._fed if self._changes else BATCH_ROWS
            batch = events.slice(first, min(rows, BATCH_ROWS))
            if not route:
                self._run.feed(self._stream, batch)
            elif self._running:
                self._run.append(self._stream, batch, route)
            self._run.settle()
            first, self._fed = first + len(batch), self._fed + len(batch)
            if progress:
                progress(first)

    def _change(self) -> None:
        """Apply the changes that are due."""
        while self._changes and self._changes[0][0] <= self._fed:
            _, record = self._changes.popleft()
            if isinstance(record, StreamOn):
                ends, idle_timeout = record.declaration.end_events, record.declaration.idle_timeout
                declaration = self._plan.declarations[self._stream]
                record = StreamOn(replace(declaration, end_events=ends, idle_timeout=idle_timeout))
            elif isinstance(record, PatternOn):
                self._running.add(record.name)
            elif isinstance(record, PatternPause):
                self._running.discard(record.name)
            self._run.append_record(self._stream, record)

    def pass_time(self, time_us: int) -> None:
        self._change()
        self._run.append_record(self._stream, Tick(time_us=time_us, cause="events"))
        self._run.settle()

    def partial_matches(self, route: str) -> dict[str, CasePattern]:
        """Return the progress of each pattern that has partial matches, by name. At most 20 patterns are returned.

        All events must belong to one transaction.
        """
        host = cast("PatternHost", self._run.state.host(PatternKind.name, self._stream, route))
        cases = host.open_cases(CaseQuery()).cases
        return {
            case_pattern.name: case_pattern
            for case in cases
            for case_pattern in case.patterns
            if case_pattern.partial_matches
        }

    def matched(self) -> frozenset[str]:
        """Return the names of the patterns that matched since the last call.

        These matches are dropped, so the report does not contain them.
        """
        lanes, self._lanes = self._lanes, []
        return frozenset(match.pattern for lane in lanes for match in lane.values_of_matches())

    def report(self, *, is_open: bool) -> StreamReport:
        """Finish the run and return its report. Raises ``ProjectRefused`` if events could not be matched.

        If ``is_open``, transactions continue after the last event. Otherwise, they end with it.
        """
        self._change()
        rows = self._run.rows(is_open=is_open)
        if refused := [orjson.loads(row.body)["reason"] for row in rows if row.kind == DEAD_LETTER.name]:
            raise ProjectRefused.of(refused)
        patterns = [routed_pattern.pattern for routed_pattern, _ in self._plan.patterns[self._stream]]
        declaration = self._plan.declarations[self._stream]
        routed_patterns = [routed_pattern for routed_pattern, _ in self._plan.patterns[self._stream]]
        suppression_forms = (
            (routed_pattern.pattern.name, suppressed_only(routed_pattern.suppression))
            for routed_pattern in routed_patterns
        )
        quiet = {name: Suppression.from_json(form) for name, form in suppression_forms if form is not None}
        lanes, suppressed = _quieted(self._lanes, quiet, self._stream) if quiet else (tuple(self._lanes), None)
        return StreamReport(
            lanes=lanes,
            suppressed=suppressed,
            rows=tuple((row.kind, orjson.loads(row.body)) for row in rows),
            overflow=tuple(self._overflows.values()),
            stats=self._stats(),
            with_returns=frozenset(pattern.name for pattern in patterns if pattern.returns),
            late=None if declaration.lateness is None else sum(self._run.late.get(self._stream, {}).values()),
            lateness=self._run.measured.get(self._stream),
        )

    def _stats(self) -> MatcherStats:
        """Return the counts of the run. Each event counts once, even if patterns read it by several keys."""
        measures = self._run.state.measures()
        names = [member.name for member in fields(MatcherStats)]
        total, *further = (
            MatcherStats(**{name: counts[name] or 0 for name in names})
            for label, counts in measures.items()
            if label.partition("@")[0] == self._stream
        )
        for stats in further:
            total = total.with_other_keys(stats)
        return total

    def _results(self, output: Output, origin: Origin) -> Iterator[Result]:
        """Yield the results in an output of the shard, except its matches, which remain columns."""
        if not isinstance(output, PatternOutput):
            return
        matcher_output, results = output.found, output.results_of
        if "matches" in self._lists:
            self._lanes += matcher_output.lanes
        if "timeouts" in self._lists:
            yield from results.timeouts(matcher_output)
        if "endings" in self._lists:
            yield from results.endings(matcher_output, origin.newest)
        if "deviations" in self._lists:
            yield from results.deviations(matcher_output)
        yield from results.corrections(matcher_output)
        for overflow in matcher_output.overflows():
            place = replace(overflow, dropped=0, runs=0)
            counted = self._overflows.get(place, place)
            dropped, runs = counted.dropped + overflow.dropped, counted.runs + overflow.runs
            self._overflows[place] = replace(place, dropped=dropped, runs=runs)


def _quieted(
    lanes: Sequence[LaneOutput], suppressions: Mapping[str, Suppression], stream: str
) -> tuple[tuple[LaneOutput, ...], int]:
    """Return the matches that suppression rules do not hide (ADR 72), and the number of hidden matches."""
    last = {name: LastAlerts(suppression.lasts_us) for name, suppression in suppressions.items()}
    keeps = [np.ones(len(lane.matches), np.bool_) for lane in lanes]
    filled = [(number, lane.columns_of_matches()) for number, lane in enumerate(lanes) if len(lane.matches)]
    places = []
    for number, columns in filled:
        names = [columns.patterns[code].name for code in columns.pattern.tolist()]
        values = list(lanes[number].values_of_returns()) or [{}] * len(names)
        members = zip(columns.detected_us.tolist(), match_ids(columns, stream).to_pylist(), names, strict=True)
        for row, ((time_us, identity, name), key, returns) in enumerate(
            zip(members, columns.key.to_pylist(), values, strict=True)
        ):
            if (rule := suppressions.get(name)) is not None:
                group = rule.group_of({"key": key, "returns": returns})
                places.append((time_us, identity, name, group, number, row))
    for time_us, identity, name, group, number, row in sorted(places):
        keeps[number][row] = last[name].suppressor(group, time_us, identity) is None
    unsuppressed = tuple(lane.chosen(keep) for lane, keep in zip(lanes, keeps, strict=True))
    return unsuppressed, sum(int(np.count_nonzero(~keep)) for keep in keeps)


def run_patterns(
    patterns: Sequence[Pattern],
    events: EventBatch,
    constraint_set: ConstraintSet | None = None,
    declaration: StreamDeclaration = _FILE,
    *,
    is_open: bool = False,
) -> StreamReport:
    """Run patterns over events, and return the report. ``is_open`` has the same meaning as for ``StreamRun.report``."""
    run = StreamRun(
        stream_plan(declaration, constraint_set, [(routed(pattern, declaration), True) for pattern in patterns])
    )
    run.feed(events)
    return run.report(is_open=is_open)


def exercises_of(plan: RunPlan) -> list[str]:
    """Return the names of the exercises that a run needs. An exercise compiles kernels (``streams.compiling``).

    If the kernels of all matchers are already cached, only the exercise of the matchers is returned. Then the kernels
    of other exercises need not be recorded.
    """
    if progress_of([PatternKind.exercise]).is_complete:
        return [PatternKind.exercise]
    from shards import RoundPlan, run_exercises  # noqa: PLC0415 - rarely needed

    return run_exercises(RoundPlan(variants=(plan.variant(""),)))
