"""The host of patterns: the patterns of one key of a stream, and the constraints of its traces."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa import (
    CaseQuery,
    LaneOutput,
    Matcher,
    MatcherStats,
    MatchOutput,
    OpenCases,
    RunningPattern,
    Tracked,
    parse_pattern,
)
from shards.kinds.patterns.cases import CaseAnswer, case_query
from shards.kinds.patterns.derived_events import DerivedEvents, QuietAlerts, passed_us
from shards.kinds.patterns.result_events import result_events
from shards.kinds.patterns.results import PatternResults
from shards.kinds.patterns.rules import Rules, rules_of
from shards.kinds.patterns.suppression import Suppression
from shards.operators import NO_OUTPUT, Host, KeyChoice, Origin, Output, Result, SavedHost, Traces
from streams import ConstraintsOn, ControlRecordError, Definition, EventBatch, Start, StreamDeclaration, WorkBudget
from streams.tables import Tables

_MATCHER = "matcher"
_SUPPRESSIONS = "suppressions"
_NO_EVENTS = EventBatch.from_events([])
_NO_KEYS = np.zeros(0, np.uint64)
_NOTHING_MEASURED: Mapping[str, int] = MappingProxyType(
    dict.fromkeys((field.name for field in fields(MatcherStats)), 0)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    name: str
    document: Any
    rules: Rules


@dataclass(frozen=True, slots=True)
class PatternOutput(Output):
    """The output of the matcher for a batch or for an advance of time, with the data needed to describe it.

    Attributes:
        alerts: The output without the matches that become derived events or quiet alerts. None if there are no such
            matches.
        quiet: Alerts of patterns with ``suppress``, ``incident`` or ``resolves``. They are sent to the places of their
            groups. None without such patterns.
        batch: The processed events; empty if only time has passed.
        newest_us: The event time reached before the batch.
    """

    found: MatchOutput
    results_of: PatternResults
    alerts: MatchOutput | None = None
    events: DerivedEvents | None = None
    quiet: QuietAlerts | None = None
    batch: EventBatch = _NO_EVENTS
    newest_us: int | None = None

    def results(self, origin: Origin) -> Iterator[Result]:
        """Yield alerts, derived events, timeouts, early terminations and all other results, in this order."""
        yield from self.results_of.of(self.found if self.alerts is None else self.alerts, origin, self.events)
        if self.quiet is not None:
            yield from self.quiet.rows()

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        return chain(*(events.batches() for events in (self.events, self.quiet) if events is not None))

    def events_of(self, results: str, event_type: str) -> EventBatch | None:
        passed = passed_us(self.batch, self.newest_us)
        return result_events(results, self.found, self.results_of, passed, event_type)


class PatternHost(Host):
    """Host of the patterns at one place, which share one matcher.

    The matcher is created with the first event, pattern or constraint. Until then, a place takes next to no memory, and
    advancing time is one assignment.

    Args:
        matcher: The state of the traces, or None if it is not created yet.
        versions: Constraints by version: the newest version, and the versions that open traces follow.
        newest_us: The event time reached. It is used only while there is no matcher.
        suppressions: The JSON form of each ``Suppression``, by pattern.
    """

    def __init__(
        self,
        declaration: StreamDeclaration,
        route: str,
        matcher: Matcher | None,
        versions: Mapping[int, _Version],
        newest_us: int | None = None,
        suppressions: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> None:
        self._declaration = declaration
        self._suppressions = dict(suppressions)
        self._route = route
        self._matcher = matcher
        self._versions = dict(versions)
        self._newest_us = newest_us
        running = () if matcher is None else matcher.versions.values()
        self._steps: dict[RunningPattern, Mapping[str, str]] = {}
        self._derives = any(pattern.query.pattern.into is not None for pattern in running)
        self._tables = Tables()
        self._measured: Mapping[str, int] | None = _NOTHING_MEASURED if matcher is None else None

    def _opened(self) -> Matcher:
        """Return the matcher, for a call that changes the matcher's state. It is created on first use."""
        self._measured = None
        if self._matcher is None:
            self._matcher = _new_matcher(self._declaration, self._route)
            self._matcher.read_tables(self._tables)
            if self._newest_us is not None:
                self._matcher.pass_time(self._newest_us)
        return self._matcher

    @property
    def names(self) -> Collection[str]:
        return () if self._matcher is None else self._matcher.patterns.keys()

    @property
    def waits_for_time(self) -> bool:
        return self._matcher is not None and self._matcher.waits_for_time

    @property
    def followed(self) -> ConstraintsOn | None:
        """The newest constraints, or None if there are none."""
        if not self._versions:
            return None
        number = max(self._versions)
        newest = self._versions[number]
        return ConstraintsOn(name=newest.name, version=number, document=newest.document)

    def open_keys(self) -> NDArray[np.uint64]:
        """Return the hashed keys of the open traces."""
        return _NO_KEYS if self._matcher is None else self._matcher.open_keys()

    @property
    def traces(self) -> Traces:
        """The open traces. They are complete, because every stream has a host of patterns from its declaration on."""
        return Traces(self.followed, self.open_keys)

    @property
    def newest_us(self) -> int | None:
        return self._newest_us if self._matcher is None else self._matcher.newest_us

    def start(self, definition: Definition, start: Start) -> None:
        text = definition.body["text"]
        running = self._opened().patterns.get(definition.name)
        if running is not None and (running.version, running.text) == (definition.version, text):
            return
        pattern = parse_pattern(text)
        if pattern.name != definition.name:
            raise ControlRecordError(
                f"pattern-on record: pattern {definition.name!r} calls itself {pattern.name!r} in its text"
            )
        self._steps.clear()
        self._opened().add_pattern(
            text,
            parsed=pattern,
            version=definition.version,
            is_guarded=definition.body["is_guarded"],
            drains=start == "migrate",
            budget=WorkBudget.from_json(definition.body.get("budget", {})),
        )
        self._suppressions.pop(definition.name, None)
        if definition.body.get("suppression") is not None:
            self._suppressions[definition.name] = definition.body["suppression"]
        self._derives |= pattern.into is not None

    def stop(self, name: str) -> None:
        self._steps.clear()
        self._opened().remove_pattern(name)
        self._suppressions.pop(name, None)

    def declare(self, declaration: StreamDeclaration) -> Output:
        """Apply changed end events and a changed idle timeout, for open traces too.

        Traces of a further key have neither end events nor an idle timeout.
        """
        self._declaration = declaration
        if self._route or self._matcher is None:
            return NO_OUTPUT
        newest = self._versions.get(max(self._versions, default=0))
        self._set_end_events(None if newest is None else newest.rules)
        return self._output(self._opened().set_idle_timeout(declaration.idle_timeout_us))

    def _set_end_events(self, rules: Rules | None) -> None:
        more = frozenset[str]() if rules is None else rules.trace_ends
        self._opened().set_end_events(more.union(self._declaration.end_events))

    def follow(self, record: ConstraintsOn) -> None:
        """Follow constraints in traces that begin from now on. An older version or a changed document is refused.

        End events of the stream's declaration end a trace. End events of constraints end a trace only if the
        constraints have ``reopen: new_transaction``. Otherwise they close the monitor of the trace, which remains open.
        """
        known_version = self._versions.get(record.version)
        if record.version < (newest := max(self._versions, default=0)):  # older ones may be gone
            raise ControlRecordError(
                f"constraints-on record: version {record.version} of stream {self._declaration.name!r} comes after "
                f"version {newest}; versions ascend"
            )
        if known_version is not None and known_version.document != record.document:
            raise ControlRecordError(
                f"constraints-on record: version {record.version} of stream {self._declaration.name!r} "
                "is another document"
            )
        rules = rules_of(record.document, self._declaration.ties)
        self._opened().set_guard(record.version, rules.monitor)
        self._set_end_events(rules)
        self._versions[record.version] = _Version(name=record.name, document=record.document, rules=rules)

    def use_tables(self, tables: Tables) -> None:
        """Let lookups in RETURN, and FOR EACH ROW, read ``tables`` from now on."""
        self._tables = tables
        if self._matcher is not None:
            self._opened().read_tables(tables)

    def process(self, batch: EventBatch) -> Output:
        newest_us = self.newest_us
        return self._output(self._opened().process(batch), batch, newest_us)

    def advance_time(self, watermark_us: int) -> Output:
        if self._matcher is None:
            self._newest_us = watermark_us if self._newest_us is None else max(self._newest_us, watermark_us)
            return NO_OUTPUT
        return self._output(self._opened().pass_time(watermark_us))

    def end_trace(self, key: str, time_us: int | None) -> Output:
        if self._matcher is None:
            return NO_OUTPUT
        return self._output(self._opened().end_traces([key], time_us))

    def finish(self) -> Output:
        return NO_OUTPUT if self._matcher is None else self._output(self._opened().finish())

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        if self._matcher is not None:
            self._opened().keep(is_kept, has_counts=has_counts)

    def measures(self) -> Mapping[str, int]:
        """Return the counts of ``nfa.MatcherStats``, cached until the state of the matcher changes."""
        if self._measured is None:
            stats = self._opened().stats
            self._measured = {name: getattr(stats, name) for name in _NOTHING_MEASURED}
        return self._measured

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a description of the open traces, and of the progress of each pattern in them."""
        matcher = self._opened()
        words = CaseAnswer(
            declaration=self._declaration,
            patterns=matcher.patterns,
            rules={number: version.rules for number, version in self._versions.items()},
        )
        return words.of(matcher.open_cases(case_query(question)), matcher.newest_us)

    def open_cases(self, query: CaseQuery) -> OpenCases:
        return self._opened().open_cases(query)

    def dump(self) -> SavedHost:
        """Return the matcher and the constraints in use as saved state.

        Without a matcher, this is only the event time reached.
        """
        if self._matcher is None:
            return SavedHost(head={"constraints": [], "newest_us": self._newest_us}, sections={})
        in_use = self._opened().guard_versions_in_use
        self._versions = {number: version for number, version in self._versions.items() if number in in_use}
        constraints = [
            {"version": number, "name": version.name, "document": version.document}
            for number, version in sorted(self._versions.items())
        ]
        quiet = {_SUPPRESSIONS: self._suppressions} if self._suppressions else {}
        return SavedHost(head={"constraints": constraints, **quiet}, sections={_MATCHER: self._opened().dump()})

    @classmethod
    def load(cls, declaration: StreamDeclaration, route: str, saved: SavedHost) -> PatternHost:
        """Restore the host that ``dump`` saved."""
        versions = {
            saved_version["version"]: _Version(
                name=saved_version["name"],
                document=saved_version["document"],
                rules=rules_of(saved_version["document"], declaration.ties),
            )
            for saved_version in saved.head["constraints"]
        }
        monitors = {number: version.rules.monitor for number, version in versions.items()}
        if _MATCHER not in saved.sections:
            return cls(declaration, route, None, versions, saved.head["newest_us"])
        matcher = Matcher.load(saved.sections[_MATCHER], monitors, lists_open_traces=True)
        return cls(declaration, route, matcher, versions, suppressions=saved.head.get(_SUPPRESSIONS, {}))

    def _output(
        self, match_output: MatchOutput, batch: EventBatch = _NO_EVENTS, newest_us: int | None = None
    ) -> Output:
        lanes = [lane for lane in match_output.lanes if not lane.is_empty]
        if not lanes:
            return NO_OUTPUT
        tables = self._tables if self._tables.versions else None
        match_output = MatchOutput(tuple(lanes if tables is None else (replace(lane, tables=tables) for lane in lanes)))
        results_of = PatternResults(
            stream=self._declaration.name,
            patterns=match_output.versions,
            rules={number: version.rules for number, version in self._versions.items()},
            route=self._route,
            steps=self._steps,
        )
        output = PatternOutput(match_output, results_of, batch=batch, newest_us=newest_us)
        has_results = any(len(lane.matches) or len(lane.corrections) for lane in match_output.lanes)
        if not (has_results and (self._derives or self._suppressions)):
            return output
        suppressions = {name: Suppression.from_json(document) for name, document in self._suppressions.items()}
        alerts, derived, quiet = _parted(match_output, suppressions)
        context = batch, self._declaration.name, newest_us
        events = DerivedEvents(derived, *context)
        quiet_alerts = QuietAlerts(suppressions, results_of.alerts, quiet, *context) if self._suppressions else None
        return replace(output, alerts=alerts, events=events, quiet=quiet_alerts)


def _parted(
    match_output: MatchOutput, quiet: Mapping[str, Suppression]
) -> tuple[MatchOutput, list[LaneOutput], list[LaneOutput]]:
    """Split the matcher's output into alerts, matches that become events, and alerts for the places of their groups.

    The first two parts keep all corrections.
    """
    alerts: list[LaneOutput] = []
    derived: list[LaneOutput] = []
    grouped: list[LaneOutput] = []
    for lane in match_output.lanes:
        is_derived = np.array([pattern.query.pattern.into is not None for pattern in lane.patterns], np.bool_)
        is_sent = np.array([pattern.name in quiet for pattern in lane.patterns], np.bool_) & ~is_derived
        stays = np.array([pattern.name in quiet and quiet[pattern.name].stays for pattern in lane.patterns], np.bool_)
        derived_mask, group_mask, alert_mask = (
            flags[lane.matches.patterns] for flags in (is_derived, is_sent, ~is_derived & (~is_sent | stays))
        )
        alerts.append(lane if alert_mask.all() else lane.chosen(alert_mask))
        if derived_mask.any() or len(lane.corrections):
            derived.append(lane.chosen(derived_mask))
        if group_mask.any():
            grouped.append(lane.chosen(group_mask))
    return MatchOutput(tuple(alerts)), derived, grouped


def pattern_host(
    declaration: StreamDeclaration, route: str, saved: SavedHost | None, *, follows_all: bool | None = None
) -> PatternHost:
    """Create a host without patterns, or load the saved one.

    Traces of a further key have no end events and no constraints.
    """
    if saved is not None:
        return PatternHost.load(declaration, route, saved)
    if not route and follows_all is None:
        return PatternHost(declaration, route, None, {})
    return PatternHost(declaration, route, _new_matcher(declaration, route, "listed" if follows_all else "bound"), {})


def _new_matcher(declaration: StreamDeclaration, route: str, tracks: Tracked = "listed") -> Matcher:
    if route:
        paths = declaration.route_paths(route)
        return Matcher(ties=declaration.ties, key_paths=paths, tracks=tracks)
    return Matcher(
        end_events=declaration.end_events,
        ties=declaration.ties,
        key_paths=declaration.key_paths,
        tracks=tracks,
        idle_timeout_us=declaration.idle_timeout_us,
    )
