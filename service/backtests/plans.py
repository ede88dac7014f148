"""From the question of a backtest to the ways to match that answer it.

The first variant is what is asked about. Beside it run, as is asked for: the patterns that it is compared with, the
same without pruning, the same without constraints. All are guarded by the same constraints, cut down as ``forestall
match`` does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from constraints import ConstraintSet, to_document, within_cap
from nfa import Prune, atoms_of, build_query, parse_pattern
from service.backtests.questions import Question, TriedPattern
from shards import Likeness, TrialPlan, Variant
from streams import ConstraintsOn, ControlRecord, StreamOn

TESTED, AGAINST, UNPRUNED, UNGUARDED = "pattern", "against", "no-prune", "no-constraints"

_VERSION = 1


def plan_of(question: Question) -> TrialPlan:
    """The variants that answer a question."""
    variants = [_variant(question, TESTED, question.patterns, question.prune)]
    if question.against:
        other = _variant(question, AGAINST, question.against, question.prune)
        counterparts = _counterparts(question.patterns, question.against)
        alike = _likeness(question.patterns, question.against, counterparts)
        variants.append(replace(other, counterparts=counterparts, alike=alike))
    if question.compares_pruning:
        variants.append(_variant(question, UNPRUNED, question.patterns, Prune.OFF))
    if question.compares_constraints:
        variants.append(_variant(_without_constraints(question), UNGUARDED, question.patterns, None))
    return TrialPlan(stream=question.declaration.name, variants=tuple(variants), is_open=question.is_open)


def _variant(question: Question, name: str, patterns: Sequence[TriedPattern], prune: Prune | None) -> Variant:
    stream = question.declaration.name
    control: list[ControlRecord] = [StreamOn(question.declaration)]
    if question.constraint_set is not None:
        document = to_document(_used(question.constraint_set, patterns, prune))
        control.append(ConstraintsOn(name=stream, version=_VERSION, document=document))
    control += [pattern.to_record() for pattern in patterns]
    return Variant(name=name, control=tuple(control))


def _without_constraints(question: Question) -> Question:
    """The same, where traces end as the constraints say and nothing else is known of them."""
    declaration, ends = question.declaration, set(question.declaration.end_events)
    if question.constraint_set is not None:
        ends |= question.constraint_set.trace_ends
    ends.intersection_update(declaration.event_types or ends)  # of other types no event comes
    return replace(question, constraint_set=None, declaration=replace(declaration, end_events=tuple(sorted(ends))))


def _used(constraint_set: ConstraintSet, patterns: Sequence[TriedPattern], prune: Prune | None) -> ConstraintSet:
    if prune is not None:
        constraint_set = replace(constraint_set, settings=replace(constraint_set.settings, prune=prune))
    queries = [build_query(parse_pattern(pattern.text)) for pattern in patterns if pattern.is_guarded]
    return within_cap(constraint_set, queries)[0]


def _counterparts(patterns: Sequence[TriedPattern], against: Sequence[TriedPattern]) -> Mapping[str, str]:
    """Single patterns are compared whatever their names; several by their names."""
    if len(patterns) == len(against) == 1:
        return {against[0].name: patterns[0].name}
    return {}


def _likeness(
    patterns: Sequence[TriedPattern], against: Sequence[TriedPattern], counterparts: Mapping[str, str]
) -> Likeness:
    """Aliases count where all patterns that are compared have the same ones."""
    tested = {pattern.name: _aliases(pattern) for pattern in patterns}
    pairs = ((tested.get(counterparts.get(other.name, other.name)), _aliases(other)) for other in against)
    return "bindings" if all(mine in (None, theirs) for mine, theirs in pairs) else "events"


def _aliases(pattern: TriedPattern) -> frozenset[str]:
    return frozenset(atom.alias for atom in atoms_of(parse_pattern(pattern.text).event))
