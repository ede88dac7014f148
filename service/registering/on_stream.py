"""A pattern on its stream: its key, the constraints on which it relies, and how the stream's traces end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from constraints import ConstraintSet, QueryCheck, check_query, parse_constraints
from nfa import Pattern, Query, TraceEnds, awaited_types, build_query
from shards import RoutedPattern, routed
from streams import StreamDeclaration


@dataclass(frozen=True, kw_only=True)  # without slots, because each value is computed once, when it is first needed
class StreamRules:
    """The declaration of a stream, and the document of its registered constraint set, or None if it has no set."""

    declaration: StreamDeclaration
    document: Mapping[str, Any] | None

    @cached_property
    def constraint_set(self) -> ConstraintSet:
        """The registered constraint set or, if there is none, a set with only the declared end events."""
        return self._ends_only if self.document is None else parse_constraints(self.document).constraint_set

    @property
    def _ends_only(self) -> ConstraintSet:
        return ConstraintSet(end_events=frozenset(self.declaration.end_events))

    def relied_on(self, route: str, *, is_guarded: bool) -> ConstraintSet:
        """Return the constraints that a pattern can take for granted.

        For an unguarded pattern, these are only the declared end events. For a pattern on a further key (``route``),
        there are none.
        """
        if route:
            return ConstraintSet()
        return self.constraint_set if is_guarded else self._ends_only

    def on_stream(self, pattern: Pattern, *, is_guarded: bool) -> OnStream:
        """Combine a pattern with this stream and its constraints. Raises ``KeyMismatch``."""
        return OnStream(rules=self, routed=routed(pattern, self.declaration), is_guarded=is_guarded)


@dataclass(frozen=True, kw_only=True)  # without slots, because each value is computed once, when it is first needed
class OnStream:
    """A pattern on its stream. If ``is_guarded``, constraints may terminate its partial matches early."""

    rules: StreamRules
    routed: RoutedPattern
    is_guarded: bool

    @property
    def pattern(self) -> Pattern:
        return self.routed.pattern

    @property
    def is_pruned(self) -> bool:
        """Whether constraints terminate partial matches early.

        They do if the pattern is guarded and reads whole traces.
        """
        return self.is_guarded and self.routed.has_whole_traces

    @cached_property
    def query(self) -> Query:
        """The query that is checked against constraints. It has no NOTs if the pattern does not read whole traces."""
        query = build_query(self.pattern)
        return query if self.routed.has_whole_traces else _without_absences(query)

    @property
    def constraint_set(self) -> ConstraintSet:
        return self.rules.relied_on(self.routed.route, is_guarded=self.is_guarded)

    @cached_property
    def check(self) -> QueryCheck:
        return check_query(self.query, self.constraint_set)

    @cached_property
    def ends(self) -> TraceEnds:
        return trace_ends_of(self.routed, self.rules.constraint_set, is_guarded=self.is_guarded)


def trace_ends_of(on_stream: RoutedPattern, constraint_set: ConstraintSet | None, *, is_guarded: bool) -> TraceEnds:
    """Return how the traces that a pattern reads can end. Traces of a further key do not end.

    End events of a constraint set count only if its settings let them end traces. Constraints can decide a NOT at the
    end of a pattern only if ``is_guarded``.
    """
    declaration = on_stream.declaration
    if on_stream.route:
        return TraceEnds(has_trace_end=False, is_log_ordered=declaration.ties == "log", further_key=on_stream.route)
    ends = {*declaration.end_events, *(() if constraint_set is None else constraint_set.trace_ends)}
    return TraceEnds(
        has_trace_end=bool(ends) or declaration.idle_timeout is not None,
        is_log_ordered=declaration.ties == "log",
        has_closing=is_guarded
        and on_stream.has_whole_traces
        and constraint_set is not None
        and constraint_set.decides_absences(declaration.ties, awaited_types(on_stream.pattern)),
    )


def _without_absences(query: Query) -> Query:
    """Return the query without its NOTs, and without states that only wait for a NOT."""
    terms = tuple(replace(term, absences=()) for term in query.terms)
    states = tuple(state for state in query.states if len(state.bound) < len(query.terms[state.term].atoms))
    return replace(query, terms=terms, states=states)
