"""The rules of a run of one stream, with the checks of ``forestall match``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nfa import Pattern, PatternRefused, Prune, TraceEnds, attributes_by_types, build_query, key_notices
from service.registering.strangers import misspelt_types, strangers, types_of
from service.runs.plan import RunPlan
from service.runs.stream_run import stream_plan
from shards import RoutedPattern, read_suppression, routed
from streams import EventBatch, StreamDeclaration, places_of
from streams.tables import Tables

if TYPE_CHECKING:
    from constraints import ConstraintSet  # slow to import, and rarely needed


@dataclass(frozen=True, kw_only=True)
class RunRules:
    """The patterns of one stream, and the constraints of the stream.

    ``own`` has the given constraints, without the declared end events. ``prune`` replaces the pruning in the settings
    of ``own``. ``suppress`` is the suppression that every pattern gets, as plain JSON. Each of these may be None.
    """

    patterns: Sequence[Pattern]
    declaration: StreamDeclaration
    own: ConstraintSet | None = None
    prune: Prune | None = None
    is_open: bool = False
    suppress: Mapping[str, Any] | None = None
    tables: Tables = field(default_factory=Tables)

    @cached_property
    def read(self) -> set[str] | None:
        """The names of the attributes that a run has to read from the events, because patterns or keys use them.

        None means all attributes, because constraints have conditions.
        """
        if self.own is not None and self.own.conditions:
            return None
        names = {attribute.path[0] for pattern in self.patterns for attribute, *_ in attributes_by_types(pattern)}
        names |= {part for pattern in self.patterns for path in pattern.keys for part in path}
        for key in self.declaration.keys.values():
            names |= {part for path in places_of(key) for part in path.split(".")}
        return names

    @cached_property
    def plan(self) -> RunPlan:
        return stream_plan(
            self.declaration,
            self.constraint_set,
            [(routed_pattern, True) for routed_pattern in self._routed],
            tables=self.tables,
        )

    @cached_property
    def constraint_set(self) -> ConstraintSet | None:
        """The constraints of the run: those that were given, the declared end events, and the chosen pruning."""
        if self.own is None:
            return None
        from service.registering.reports import joined_with  # noqa: PLC0415 - most calls do not need it

        joined = joined_with(self.own, self.declaration)
        if self.prune is None:
            return joined
        return replace(joined, settings=replace(joined.settings, prune=self.prune))

    def notices(self) -> Iterator[str]:
        whole = TraceEnds(has_trace_end=True, is_log_ordered=self.declaration.ties == "log")
        ends = {
            routed_pattern.pattern: self._ends_of(routed_pattern) if self.is_open or routed_pattern.route else whole
            for routed_pattern in self._routed
        }
        yield from pattern_notices(list(ends), ends.__getitem__)
        for pattern in self.patterns:
            yield from (f"{pattern.name}: {notice.placed}" for notice in key_notices(pattern, self.tables))
        if self.constraint_set is not None:
            yield from constraint_notices(
                [routed_pattern.pattern for routed_pattern in self._routed if not routed_pattern.route],
                self.constraint_set,
            )

    def event_notices(self, events: EventBatch, beside: Collection[str] = ()) -> Iterator[str]:
        """Yield notices about types, also of constraints, and attributes that no event has, and about comparisons.

        ``beside`` are members that the events had beside ``data`` and that were not read.
        """
        for pattern, notice in strangers(self.patterns, events, beside=beside, forms=self.tables.forms):
            yield f"{pattern.name}: {notice.placed}"
        yield from misspelt_types(self.declaration, self.own, types_of(events), "in these events")

    @cached_property
    def _routed(self) -> Sequence[RoutedPattern]:
        routed_patterns = [routed(pattern, self.declaration) for pattern in self.patterns]
        if self.suppress is None:
            return routed_patterns
        return [
            replace(routed_pattern, suppression=read_suppression(self.suppress, routed_pattern))
            for routed_pattern in routed_patterns
        ]

    def _ends_of(self, routed_pattern: RoutedPattern) -> TraceEnds:
        timing = routed_pattern.declaration
        if self.constraint_set is None or routed_pattern.route:
            has_end = not routed_pattern.route and (bool(timing.end_events) or timing.idle_timeout is not None)
            return TraceEnds(
                has_trace_end=has_end, is_log_ordered=timing.ties == "log", further_key=routed_pattern.route
            )
        from service.registering.on_stream import trace_ends_of  # noqa: PLC0415 - most calls do not need it

        return trace_ends_of(routed_pattern, self.constraint_set, is_guarded=True)


def pattern_notices(patterns: Sequence[Pattern], ends_of: Callable[[Pattern], TraceEnds]) -> Iterator[str]:
    """Yield sentences about probable mistakes in patterns. Raises ``PatternRefused`` if one cannot be matched."""
    for pattern in patterns:
        ends = ends_of(pattern)
        try:
            ends.check(pattern)
        except PatternRefused as refusal:
            refusal.message = f"{pattern.name}: {refusal.message}"
            raise
        for notice in ends.warnings_of(pattern):
            yield f"{pattern.name}: {notice.placed}"


def constraint_notices(patterns: Sequence[Pattern], constraint_set: ConstraintSet) -> Iterator[str]:
    """Yield a sentence about each pattern that constraints make impossible, with the reasons."""
    from constraints import check_query, check_set  # noqa: PLC0415 - most calls do not need it

    check_set(constraint_set)
    for pattern in patterns:
        verdict = check_query(build_query(pattern), constraint_set)
        if not verdict.is_satisfiable:
            reasons = "; ".join(dict.fromkeys(term.text for term in verdict.dead))
            yield f"{pattern.name} can never match: {reasons}"
