"""The library engine over a list of events: no Spark, no Redis, no HTTP. What ``forestall match`` runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson

from nfa import (
    CasePattern,
    CaseQuery,
    Correction,
    Deviation,
    Ending,
    Match,
    Matcher,
    MatcherStats,
    MatchOutput,
    Overflow,
    Pattern,
    Prune,
    Timeout,
    build_query,
    match_order,
    matcher_features,
    matching_exercise,
)
from service.trials.match_text import matches_text
from shards import PatternHost, PatternKind, PatternOutput, Place, Rules, StoredEntry
from streams import (
    EARLIEST_US,
    LATEST_US,
    USUAL_BUDGET,
    Event,
    EventBatch,
    Late,
    RecordKind,
    StreamDeclaration,
    Ties,
    WorkBudget,
    format_time,
)
from streams.compiling import progress_of

if TYPE_CHECKING:  # importing constraints takes a tenth of the start of ``forestall match``
    from constraints import ConstraintSet, DeviationReason, Explanation

BATCH_ROWS = 131_072
_GUARD_VERSION = 1
_LOCAL = "local"
_HOST = "pattern"
_UNLOGGED = StoredEntry(position="", kind=RecordKind.EVENTS, stream=_LOCAL, body=b"")

Section: TypeAlias = Literal["matches", "timeouts", "ended", "deviations", "corrections"]
SECTIONS: tuple[Section, ...] = ("matches", "timeouts", "ended", "deviations", "corrections")
USUAL_SECTIONS: tuple[Section, ...] = ("matches", "ended", "deviations", "corrections")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchOptions:
    """How patterns are run.

    Attributes:
        sections: What is listed of the result; everything is counted in any case. Deviations and corrections are always
            in the report.
        key_paths: Paths that mean the events' key, besides ``key``.
        ties: What events of one time are: ordered as they come, or not ordered at all.
        is_open: Whether the events are the beginning of something: traces go on after the last one, and time has come
            as far as the newest. Otherwise every trace ends, and time has passed.
        prune: What is done with partial matches that can no longer complete; None: what the constraint set says. The
            matches are the same on traces that keep the constraints.
        lateness_us: How much older than the newest event an event may be that is put in its place by time. None: the
            order in which they come counts.
        late: What to do with events that are later than that. Those that a stream would set aside are counted only.
        idle_timeout_us: A trace ends so long after its newest event. None: never.
        end_events: Types that end a trace, as those that a stream declares. Constraints know only of those that are in
            their set too.
        first: So many events are seen before the patterns come.
        now_us: With ``is_open``: time has come so far, if the events do not say more. None: what they say.
        budget: How much work each pattern may cost.
    """

    sections: Collection[Section] = USUAL_SECTIONS
    key_paths: tuple[tuple[str, ...], ...] = ()
    ties: Ties = "log"
    is_open: bool = False
    prune: Prune | None = None
    lateness_us: int | None = None
    late: Late = "dead_letter"
    idle_timeout_us: int | None = None
    end_events: frozenset[str] = frozenset()
    first: int = 0
    now_us: int | None = None
    budget: WorkBudget = USUAL_BUDGET

    @classmethod
    def of(cls, declaration: StreamDeclaration, route: str = "") -> MatchOptions:
        """As a stream matches the events of one of its keys.

        Args:
            declaration: The stream's.
            route: Name of the further key, whose traces have no end; empty for the correlation key.

        Raises:
            DeclarationError: The stream does not declare that key.
        """
        return cls(
            key_paths=tuple(declaration.route_paths(route) if route else declaration.key_paths),
            ties=declaration.ties,
            lateness_us=declaration.lateness_us,
            late=declaration.late,
            idle_timeout_us=None if route else declaration.idle_timeout_us,
            end_events=frozenset(() if route else declaration.end_events),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowUse:
    """How a workflow is used while events are matched.

    Attributes:
        mode: ``exact`` by its automaton, ``tables`` by its constraints.
        method: How the constraints were found.
        states: States of the automaton; None where there is none.
    """

    mode: Literal["exact", "tables"]
    method: str
    states: int | None

    def to_document(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedPair:
    """The first event after which a pattern can no longer match in a trace, and why."""

    ending: Ending
    form: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviatingTrace:
    """The event by which a trace broke its constraints, and which ones."""

    deviation: Deviation
    reason: DeviationReason


@dataclass(frozen=True, kw_only=True)
class MatchReport:
    """Everything that was found in some events.

    Attributes:
        outputs: Outputs of the matcher, one per batch, if matches are requested.
        timeouts: Partial matches that WITHIN ended, of patterns that say EMIT TIMEOUTS; sorted by due, start, bindings.
        ended: In the order of the events; one per pattern and trace.
        deviations: Traces that broke a constraint, in the order of the events.
        corrections: Early matches that do not hold, in the order of the events.
        overflow: What was beyond a limit and is not listed, in the order of the events.
        stats: Counts.
        with_returns: Names of the patterns that have RETURN.
        workflow: How a workflow was used, if one was given.
        late: Number of late events; None where no event is ever late.
        duplicates: Number of events that were dropped, as their ids came before in the file.
    """

    outputs: tuple[MatchOutput, ...] = field(repr=False)
    timeouts: tuple[Timeout, ...]
    ended: tuple[EndedPair, ...]
    deviations: tuple[DeviatingTrace, ...]
    corrections: tuple[Correction, ...]
    overflow: tuple[Overflow, ...]
    stats: MatcherStats
    with_returns: frozenset[str]
    workflow: WorkflowUse | None = None
    late: int | None = None
    duplicates: int = 0

    @cached_property
    def matches(self) -> tuple[Match, ...]:
        """Sorted by end, start, bindings."""
        return tuple(sorted((match for output in self.outputs for match in output.matches()), key=match_order))

    def to_json(self) -> bytes:
        """``to_document`` as JSON."""
        text = matches_text([lane for output in self.outputs for lane in output.lanes], self.with_returns)
        rest = orjson.dumps(self._rest()).removeprefix(b"{")
        return b"".join([b'{"matches":[', *text, b"],", rest])

    def to_document(self) -> dict[str, Any]:
        """The JSON contract of ``forestall match --output json``; the changelog lists renamed members."""
        matches = [
            match_document(match) | ({"returns": dict(match.returns)} if match.pattern in self.with_returns else {})
            for match in self.matches
        ]
        return {"matches": matches, **self._rest()}

    def _rest(self) -> dict[str, Any]:
        """The document without its matches."""
        return {
            "timeouts": [timeout_document(timeout) for timeout in self.timeouts],
            "ended": [
                {
                    "pattern": pair.ending.pattern,
                    "key": pair.ending.key,
                    "event": pair.ending.event_id,
                    "reason": pair.reason,
                }
                for pair in self.ended
            ],
            "deviations": [_deviation_document(trace) for trace in self.deviations],
            "corrections": [_correction_document(correction) for correction in self.corrections],
            "overflow": [
                {
                    "pattern": overflow.pattern,
                    "key": overflow.key or None,
                    "event": overflow.event_id or None,
                    "time": shown_time(overflow.time_us) if overflow.event_id else None,
                    "dropped": overflow.dropped,
                    "runs": overflow.runs,
                }
                for overflow in self.overflow
            ],
            "stats": asdict(self.stats),
            **({} if self.workflow is None else {"workflow": self.workflow.to_document()}),
            **({} if self.late is None else {"late": self.late}),
            **({"duplicates": self.duplicates} if self.duplicates else {}),
        }


def match_document(match: Match) -> dict[str, Any]:
    """One match in the form of the JSON contract, without the columns of RETURN."""
    return {
        "pattern": match.pattern,
        "key": match.key,
        "bindings": {alias: list(ids) for alias, ids in match.bindings.items()},
        "start": format_time(match.start_us),
        "end": format_time(match.end_us),
        "detected_at": shown_time(match.detected_us),
        **({} if match.decided_by is None else {"decided_by": match.decided_by}),
        **({"deviating": True} if match.deviating else {}),
        **({"would_be_lost": True} if match.would_be_lost else {}),
    }


def timeout_document(timeout: Timeout) -> dict[str, Any]:
    """One partial match that WITHIN ended, in the form of the JSON contract."""
    return {
        "pattern": timeout.pattern,
        "key": timeout.key,
        "bindings": {alias: list(ids) for alias, ids in timeout.bindings.items()},
        "missing": list(timeout.missing),
        "start": format_time(timeout.start_us),
        "due": shown_time(timeout.due_us),
    }


def _deviation_document(trace: DeviatingTrace) -> dict[str, Any]:
    deviation, reason = trace.deviation, trace.reason
    return {
        "key": deviation.key,
        "event": deviation.event_id,
        "event_type": deviation.event_type,
        "time": shown_time(deviation.time_us),
        "kind": reason.kind,
        "constraints": [str(part) for part in reason.constraints],
        "symbols": sorted(deviation.event.symbols),
        "allowed": list(reason.allowed),
        "released": deviation.released,
        "reason": reason.text,
    }


def _correction_document(correction: Correction) -> dict[str, Any]:
    return {
        "pattern": correction.pattern,
        "key": correction.key,
        "bindings": {alias: list(ids) for alias, ids in correction.bindings.items()},
        "event": correction.event_id,
        "event_type": correction.event_type,
        "time": shown_time(correction.time_us),
    }


def shown_time(time_us: int) -> str:
    """A time as text; one that a long window puts outside the years 1 to 9999 is shown as the last or first of them."""
    return format_time(min(max(time_us, EARLIEST_US), LATEST_US))


def match_events(
    patterns: Sequence[Pattern],
    events: Sequence[Event] | EventBatch,
    constraint_set: ConstraintSet | None = None,
    options: MatchOptions | None = None,
    progress: Callable[[int], None] | None = None,
) -> MatchReport:
    """Run patterns over events in their order.

    Args:
        patterns: With distinct names and their texts.
        events: In the order in which they are to be seen; as one batch, if there are many.
        constraint_set: What the traces keep to, and how that is used. Its end events close the monitor of a trace; they
            end it only if its settings say so.
        options: See ``MatchOptions``.
        progress: Told the number of events done after each batch.

    Raises:
        PatternRefused: A text is refused.
    """
    chosen = options or MatchOptions()
    rules = None if constraint_set is None else Rules(_used(constraint_set, patterns, chosen), chosen.ties)
    run = _Run(_matcher(rules, chosen), chosen)
    whole = events if isinstance(events, EventBatch) else EventBatch.from_events(list(events))
    starts = [*range(0, chosen.first, BATCH_ROWS), *range(chosen.first, len(whole), BATCH_ROWS), len(whole)]
    for start, end in pairwise(starts):
        if start == chosen.first:
            run.add(patterns)
        run.take(whole.slice(start, end - start))
        if progress:
            progress(end)
    if chosen.first >= len(whole):
        run.add(patterns)
    run.close()
    return run.report(rules)


def match_stepwise(
    patterns: Sequence[Pattern], events: Sequence[Event], constraint_set: ConstraintSet, options: MatchOptions
) -> Iterator[tuple[Event | None, dict[str, CasePattern], frozenset[str]]]:
    """Run at most 20 patterns over one trace, event by event.

    Args:
        patterns: With distinct names and their texts.
        events: In the order in which they are matched; ``options.lateness_us`` is ignored.
        constraint_set: What the trace keeps to.
        options: See ``MatchOptions``.

    Yields:
        After each event, and None once time has come as far as the options say: the event, the patterns that have
        partial matches, and the names of those that have matched there.
    """
    rules = Rules(_used(constraint_set, patterns, options), options.ties)
    matcher = _matcher(rules, options)
    run = _Run(matcher, replace(options, lateness_us=None, sections=frozenset[Section](("matches",))))
    for place, event in enumerate([*events, None]):
        if place == min(options.first, len(events)):
            run.add(patterns)
        if event is None:
            run.close()
        else:
            run.take(EventBatch.from_events([event]))
        matched = run.matched()
        cases = matcher.open_cases(CaseQuery()).cases if place >= options.first else ()
        yield event, {one.name: one for case in cases for one in case.patterns if one.partial_matches}, matched


def merged(report: MatchReport, other: MatchReport) -> MatchReport:
    """A report with what other patterns find in the same events by another key."""
    return replace(
        report,
        outputs=report.outputs + other.outputs,
        timeouts=tuple(sorted(report.timeouts + other.timeouts, key=_timeout_order)),
        overflow=report.overflow + other.overflow,
        stats=report.stats.with_other_keys(other.stats),
        with_returns=report.with_returns | other.with_returns,
    )


def exercise_of(patterns: Sequence[Pattern], constraint_set: ConstraintSet | None, options: MatchOptions) -> str:
    """The exercise (``streams.compiling``) with the kernels that ``match_events`` calls.

    If the kernels of every matcher are kept, the exercise of every matcher, so that none is recorded.
    """
    if progress_of([PatternKind.exercise]).is_complete:
        return PatternKind.exercise
    features = matcher_features(patterns, ties=options.ties, is_idling=options.idle_timeout_us is not None)
    if constraint_set is None:
        return matching_exercise(features)
    from constraints import guard_features, guarded_exercise  # noqa: PLC0415

    used = _used(constraint_set, patterns, options)
    return guarded_exercise(features | guard_features(used, ties=options.ties))


def _matcher(rules: Rules | None, options: MatchOptions) -> Matcher:
    """A matcher without patterns, whose traces follow the rules if there are any."""
    matcher = Matcher(
        end_events=options.end_events | (rules.trace_ends if rules else frozenset()),
        ties=options.ties,
        key_paths=options.key_paths,
        may_be_guarded=rules is not None,
        idle_timeout_us=options.idle_timeout_us,
    )
    if rules is not None:
        matcher.set_guard(_GUARD_VERSION, rules.monitor)
    return matcher


def _used(constraint_set: ConstraintSet, patterns: Sequence[Pattern], options: MatchOptions) -> ConstraintSet:
    """The set as the options and its own settings want it used."""
    from constraints import within_cap  # noqa: PLC0415

    if options.prune is not None:
        constraint_set = replace(constraint_set, settings=replace(constraint_set.settings, prune=options.prune))
    return within_cap(constraint_set, [build_query(pattern) for pattern in patterns])[0]


class _Run:
    """One place of a shard, as the pipeline has them, over events that are in no log."""

    def __init__(self, matcher: Matcher, options: MatchOptions) -> None:
        self._matcher = matcher
        self._options = options
        self._found = _Found(frozenset(options.sections))
        declaration = _declaration(options)
        self._place = Place(declaration, "", {}, {_HOST: PatternHost(declaration, "", matcher, {})})

    def add(self, patterns: Sequence[Pattern]) -> None:
        """Let patterns see the events from here on."""
        for pattern in patterns:
            self._matcher.add_pattern(pattern.text, budget=self._options.budget)

    def take(self, batch: EventBatch) -> None:
        """Let events come."""
        self._note(self._place.process([_UNLOGGED], [batch]))

    def close(self) -> None:
        """Let time come as far as the options say: to a moment, or to its end."""
        if not self._options.is_open:
            self._note(self._place.finish(_UNLOGGED))
        elif self._options.now_us is not None:
            self._note(self._place.tick(_UNLOGGED, self._options.now_us))

    def matched(self) -> frozenset[str]:
        """The patterns that have matched since the last call; what they found is given up."""
        outputs, self._found.outputs = self._found.outputs, []
        return frozenset(match.pattern for output in outputs for match in output.matches())

    def report(self, rules: Rules | None) -> MatchReport:
        """Everything found, sorted and explained."""
        report = self._found.report(self._matcher, rules)
        if self._options.lateness_us is None:
            return report
        return replace(report, late=self._place.late)

    def _note(self, steps: Iterable[tuple[object, object]]) -> None:
        for _, output in steps:
            if isinstance(output, PatternOutput):
                self._found.take(output.found)


def _declaration(options: MatchOptions) -> StreamDeclaration:
    """How the events of a local run are put into order; late ones that are not matched are counted only."""
    if options.lateness_us is None:
        return StreamDeclaration(name=_LOCAL)
    late: Late = "process" if options.late == "process" else "drop"
    return StreamDeclaration(name=_LOCAL, lateness=options.lateness_us / 1_000_000, late=late)


@dataclass(slots=True)
class _Found:
    """What batch after batch gives."""

    sections: frozenset[Section]
    outputs: list[MatchOutput] = field(default_factory=list)
    timeouts: list[Timeout] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)
    overflows: dict[Overflow, tuple[int, int]] = field(default_factory=dict)

    def take(self, output: MatchOutput) -> None:
        """Add the findings of one batch, or of the end."""
        if "matches" in self.sections:
            self.outputs.append(output)
        if "timeouts" in self.sections:
            self.timeouts += output.timeouts()
        if "ended" in self.sections:
            self.endings += output.endings()
        self.deviations += output.deviations()
        self.corrections += output.corrections()
        for overflow in output.overflows():
            place = replace(overflow, dropped=0, runs=0)
            dropped, runs = self.overflows.get(place, (0, 0))
            self.overflows[place] = dropped + overflow.dropped, runs + overflow.runs

    def report(self, matcher: Matcher, rules: Rules | None) -> MatchReport:
        """All of it, sorted and explained."""
        patterns = matcher.patterns.values()
        return MatchReport(
            outputs=tuple(self.outputs),
            timeouts=tuple(sorted(self.timeouts, key=_timeout_order)),
            ended=_explained(self.endings, matcher, rules) if rules else (),
            deviations=tuple(
                DeviatingTrace(deviation=deviation, reason=rules.explain_deviation(deviation))
                for deviation in self.deviations
                if rules
            ),
            corrections=tuple(self.corrections),
            overflow=tuple(
                replace(place, dropped=dropped, runs=runs) for place, (dropped, runs) in self.overflows.items()
            ),
            stats=matcher.stats,
            with_returns=frozenset(pattern.name for pattern in patterns if pattern.query.pattern.returns),
        )


def _timeout_order(timeout: Timeout) -> tuple[Any, ...]:
    return timeout.due_us, timeout.start_us, sorted(timeout.bindings.items()), timeout.pattern, timeout.key


def _explained(endings: Sequence[Ending], matcher: Matcher, rules: Rules) -> tuple[EndedPair, ...]:
    """Reasons for early terminations; those of one cause share one."""
    reasons: dict[tuple[Any, ...], Explanation] = {}
    for ending in endings:
        cause = _cause(ending)
        if cause not in reasons:
            reasons[cause] = rules.explain(matcher.patterns[ending.pattern].query, ending)
    found = ((ending, reasons[_cause(ending)]) for ending in endings)
    return tuple(EndedPair(ending=ending, form=why.form, reason=why.text) for ending, why in found)


def _cause(ending: Ending) -> tuple[Any, ...]:
    return ending.pattern, ending.state, ending.before, ending.after, ending.event, ending.event_type
