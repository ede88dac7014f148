"""The patterns of one key of a stream, and the constraints that its traces follow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa import LaneOutput, Matcher, MatchOutput, parse_pattern
from shards.kinds.patterns.cases import CaseAnswer, case_query
from shards.kinds.patterns.derived_events import DerivedEvents
from shards.kinds.patterns.results import PatternResults
from shards.kinds.patterns.rules import Rules, rules_of
from shards.operators import KeyChoice, Origin, Result, SavedHost
from streams import ConstraintsOn, ControlRecordError, Definition, EventBatch, Start, StreamDeclaration, WorkBudget

_MATCHER = "matcher"
_NO_EVENTS = EventBatch.from_events([])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """One version of a stream's constraints."""

    name: str
    document: Any
    rules: Rules


@dataclass(frozen=True, slots=True)
class PatternOutput:
    """What the matcher found, with what is needed to put it into words.

    Attributes:
        found: All of it.
        results_of: Puts it into words.
        alerts: It without the matches that become events; None: no pattern has INTO.
        events: What those become.
    """

    found: MatchOutput
    results_of: PatternResults
    alerts: MatchOutput | None = None
    events: DerivedEvents | None = None

    def results(self, origin: Origin) -> Iterator[Result]:
        """Alerts, derived events, timeouts, early terminations and what else there is, in this order."""
        return self.results_of.of(self.found if self.alerts is None else self.alerts, origin, self.events)

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        """The events with the keys of their traces, by derived stream."""
        return iter(()) if self.events is None else self.events.batches()


class PatternHost:
    """Patterns at one place.

    Args:
        declaration: Of the stream.
        route: Name of the further key; empty for the correlation key.
        matcher: The state of the traces.
        versions: Constraints by version: the newest, and those that open traces follow.
    """

    def __init__(
        self, declaration: StreamDeclaration, route: str, matcher: Matcher, versions: Mapping[int, _Version]
    ) -> None:
        self._declaration = declaration
        self._route = route
        self._matcher = matcher
        self._versions = dict(versions)
        self._derives = any(pattern.query.pattern.into is not None for pattern in matcher.versions.values())

    @property
    def names(self) -> Collection[str]:
        """The patterns that run."""
        return self._matcher.patterns.keys()

    @property
    def waits_for_time(self) -> bool:
        """Whether some pattern is decided by time that passes."""
        return self._matcher.waits_for_time

    @property
    def followed(self) -> ConstraintsOn | None:
        """The newest constraints; None: there are none."""
        if not self._versions:
            return None
        number = max(self._versions)
        newest = self._versions[number]
        return ConstraintsOn(name=newest.name, version=number, document=newest.document)

    def open_keys(self) -> NDArray[np.uint64]:
        """Hashed keys of the open traces."""
        return self._matcher.open_keys()

    @property
    def newest_us(self) -> int | None:
        """How far time has come for the matcher."""
        return self._matcher.newest_us

    def start(self, definition: Definition, start: Start) -> None:
        """Start a pattern.

        Raises:
            PatternError: The text is refused.
            ControlRecordError: The text names its pattern otherwise than the definition does.
        """
        text = definition.body["text"]
        running = self._matcher.patterns.get(definition.name)
        if running is not None and (running.version, running.text) == (definition.version, text):
            return
        pattern = parse_pattern(text)
        if pattern.name != definition.name:
            raise ControlRecordError(
                f"pattern-on record: pattern {definition.name!r} calls itself {pattern.name!r} in its text"
            )
        self._matcher.add_pattern(
            text,
            parsed=pattern,
            version=definition.version,
            is_guarded=definition.body["is_guarded"],
            drains=start == "migrate",
            budget=WorkBudget.from_json(definition.body.get("budget", {})),
        )
        self._derives |= pattern.into is not None

    def stop(self, name: str) -> None:
        """Stop a pattern; its partial matches are dropped.

        Raises:
            PatternError: No such pattern runs.
        """
        self._matcher.remove_pattern(name)

    def declare(self, declaration: StreamDeclaration) -> PatternOutput:
        """Let other types end traces, and traces end after another time without an event, open ones too.

        Traces of a further key have neither.
        """
        self._declaration = declaration
        if self._route:
            return self._output(MatchOutput(()))
        newest = self._versions.get(max(self._versions, default=0))
        self._set_end_events(None if newest is None else newest.rules)
        return self._output(self._matcher.set_idle_timeout(declaration.idle_timeout_us))

    def _set_end_events(self, rules: Rules | None) -> None:
        more = frozenset[str]() if rules is None else rules.trace_ends
        self._matcher.set_end_events(more.union(self._declaration.end_events))

    def follow(self, record: ConstraintsOn) -> None:
        """Let traces that begin later follow these constraints.

        Only the end events that the stream declares end a trace, and from here on those of constraints that say
        ``reopen: new_transaction``; other end events close the monitor of a trace, which stays open.

        Raises:
            ConstraintError: The document is refused.
            ControlRecordError: The version was taken by another document, or an older one comes after a newer one.
        """
        known = self._versions.get(record.version)
        if record.version < (newest := max(self._versions, default=0)):  # older ones are known while traces follow them
            raise ControlRecordError(
                f"constraints-on record: version {record.version} of stream {self._declaration.name!r} comes after "
                f"version {newest}; versions ascend"
            )
        if known is not None and known.document != record.document:
            raise ControlRecordError(
                f"constraints-on record: version {record.version} of stream {self._declaration.name!r} "
                "is another document"
            )
        rules = rules_of(record.document, self._declaration.ties)
        self._matcher.set_guard(record.version, rules.monitor)
        self._set_end_events(rules)
        self._versions[record.version] = _Version(name=record.name, document=record.document, rules=rules)

    def process(self, batch: EventBatch) -> PatternOutput:
        """Match events."""
        newest_us = self._matcher.newest_us
        return self._output(self._matcher.process(batch), batch, newest_us)

    def advance_time(self, watermark_us: int) -> PatternOutput:
        """Decide what the watermark decides."""
        return self._output(self._matcher.pass_time(watermark_us))

    def end_trace(self, key: str, time_us: int | None) -> PatternOutput:
        """End the trace of a key."""
        return self._output(self._matcher.end_traces([key], time_us))

    def finish(self) -> PatternOutput:
        """End every trace."""
        return self._output(self._matcher.finish())

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Forget the traces of other keys."""
        self._matcher.keep(is_kept, has_counts=has_counts)

    def measures(self) -> Mapping[str, int]:
        """``nfa.MatcherStats``."""
        return asdict(self._matcher.stats)

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Which traces are open, and how far each pattern is in them.

        Raises:
            ControlRecordError: The question is not about that.
        """
        words = CaseAnswer(
            declaration=self._declaration,
            patterns=self._matcher.patterns,
            rules={number: version.rules for number, version in self._versions.items()},
        )
        return words.of(self._matcher.open_cases(case_query(question)), self._matcher.newest_us)

    def dump(self) -> SavedHost:
        """The matcher, and the constraints that something follows."""
        in_use = self._matcher.guard_versions_in_use
        self._versions = {number: version for number, version in self._versions.items() if number in in_use}
        constraints = [
            {"version": number, "name": version.name, "document": version.document}
            for number, version in sorted(self._versions.items())
        ]
        return SavedHost(head={"constraints": constraints}, sections={_MATCHER: self._matcher.dump()})

    @classmethod
    def load(cls, declaration: StreamDeclaration, route: str, saved: SavedHost) -> PatternHost:
        """The host that ``dump`` saved.

        Raises:
            ForestallError: A part cannot be read.
        """
        versions = {
            one["version"]: _Version(
                name=one["name"], document=one["document"], rules=rules_of(one["document"], declaration.ties)
            )
            for one in saved.head["constraints"]
        }
        monitors = {number: version.rules.monitor for number, version in versions.items()}
        return cls(declaration, route, Matcher.load(saved.sections[_MATCHER], monitors), versions)

    def _output(
        self, found: MatchOutput, batch: EventBatch = _NO_EVENTS, newest_us: int | None = None
    ) -> PatternOutput:
        results_of = PatternResults(
            stream=self._declaration.name,
            patterns=found.versions,
            rules={number: version.rules for number, version in self._versions.items()},
            route=self._route,
        )
        if not self._derives:
            return PatternOutput(found, results_of)
        alerts, derived = _parted(found)
        events = DerivedEvents(derived, batch, self._declaration.name, newest_us)
        return PatternOutput(found, results_of, alerts, events)


def _parted(found: MatchOutput) -> tuple[MatchOutput, list[LaneOutput]]:
    """What is reported, and what becomes events; corrections are in both."""
    alerts: list[LaneOutput] = []
    derived: list[LaneOutput] = []
    for lane in found.lanes:
        is_derived = np.array([one.query.pattern.into is not None for one in lane.patterns], np.bool_)
        chosen = is_derived[lane.matches.patterns]
        alerts.append(lane.chosen(~chosen) if chosen.any() else lane)
        if chosen.any() or len(lane.corrections):
            derived.append(lane.chosen(chosen))
    return MatchOutput(tuple(alerts)), derived


def pattern_host(declaration: StreamDeclaration, route: str, saved: SavedHost | None) -> PatternHost:
    """A host without patterns, or the one that was saved; the traces of a further key have no end and no constraints.

    Raises:
        DeclarationError: The stream does not declare that key.
        ForestallError: The saved state cannot be read.
    """
    if saved is not None:
        return PatternHost.load(declaration, route, saved)
    if route:
        paths = declaration.route_paths(route)
        matcher = Matcher(ties=declaration.ties, key_paths=paths, may_be_guarded=False)
    else:
        matcher = Matcher(
            end_events=declaration.end_events,
            ties=declaration.ties,
            key_paths=declaration.key_paths,
            idle_timeout_us=declaration.idle_timeout_us,
        )
    return PatternHost(declaration, route, matcher, {})
