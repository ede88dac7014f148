"""Bindings (section 4.3) by enumeration of every skeleton and every choice of distinct events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

from nfa.syntax import Pattern
from tests.references.patterns.attempts import Attempt
from tests.references.patterns.layout import Layout
from tests.references.patterns.rules import RULES, is_kept_by, keeps_order, keeps_spans, keeps_trailing
from tests.references.patterns.skeletons import begun_skeletons, whole_skeletons
from tests.references.patterns.traces import Trace


def bindings_of(pattern: Pattern, trace: Trace) -> Iterator[Attempt]:
    """All bindings of all skeletons, before WHERE; equal maps from alias to events may occur several times."""
    for skeleton in whole_skeletons(pattern.event, trace.events):
        for attempt in _extended(_empty(pattern, Layout.of(pattern, skeleton), trace), 0):
            if is_kept_by(RULES, attempt) and keeps_trailing(attempt):
                yield attempt


def begun_bindings(pattern: Pattern, trace: Trace) -> Iterator[Attempt]:
    """All bindings of non-empty, proper parts of skeletons; a part contains every step before each of its steps."""
    for skeleton in begun_skeletons(pattern.event, trace.events):
        yield from _extended(_empty(pattern, Layout.of(pattern, skeleton), trace), 0)


def _empty(pattern: Pattern, layout: Layout, trace: Trace) -> Attempt:
    return Attempt(pattern=pattern, layout=layout, trace=trace, bound=MappingProxyType({}))


def _extended(attempt: Attempt, number: int) -> Iterator[Attempt]:
    """Extensions of the attempt by occurrence ``number`` and all later ones, except those that stay unbound."""
    if number == len(attempt.layout.occurrences):
        yield attempt
        return
    occurrence = attempt.layout.occurrences[number]
    if not occurrence.is_bound:
        yield from _extended(attempt, number + 1)
        return
    for place in range(len(attempt.trace)):  # 4.3.1
        if place not in attempt.bound.values() and attempt.takes(occurrence.atom, occurrence.spot, place):
            longer = replace(attempt, bound={**attempt.bound, number: place})
            if keeps_order(longer) and keeps_spans(longer):
                yield from _extended(longer, number + 1)
