"""The variants of matching that answer the question of a backtest.

The first variant is the tested one. Further variants as requested: the patterns that it is compared with, the
same without pruning, the same without constraints. All are guarded by the same constraints, reduced to the limit of
monitor states as by ``forestall match``.
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
    """The question without constraints, except that traces end by the types by which they end with them."""
    declaration, ends = question.declaration, set(question.declaration.end_events)
    if question.constraint_set is not None:
        ends |= question.constraint_set.trace_ends
    ends.intersection_update(declaration.event_types or ends)  # no event of other types comes
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
    """Aliases are compared if all compared patterns have the same ones."""
    tested = {pattern.name: _aliases(pattern) for pattern in patterns}
    pairs = ((tested.get(counterparts.get(other.name, other.name)), _aliases(other)) for other in against)
    return "bindings" if all(mine in (None, theirs) for mine, theirs in pairs) else "events"


def _aliases(pattern: TriedPattern) -> frozenset[str]:
    return frozenset(atom.alias for atom in atoms_of(parse_pattern(pattern.text).event))
