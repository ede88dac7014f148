"""Plans of backtests. A plan consists of variants, all of which are matched over the same history.

A variant is a set of patterns and constraints. The first variant has the tested patterns. Three variants are optional:
the patterns to compare with, the tested patterns without pruning, and the tested patterns without constraints. If the
constraints need more monitor states than permitted, some constraints are left out, as in ``forestall match``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from constraints import ConstraintSet, to_document, within_cap
from nfa import Prune, build_query, lookups_in, parse_pattern
from service.backtests.questions import Question, TriedPattern
from shards import PatternKind, RoundPlan, Variant, likeness, records_of
from streams import ConstraintsOn, ControlRecord, OperatorOn, StreamDeclaration, StreamOn, TableOn
from streams.tables import TableFiles, Tables, require_lookup

TESTED, AGAINST, UNPRUNED, UNGUARDED = "pattern", "against", "no_prune", "no_constraints"

_VERSION = 1


def plan_of(question: Question) -> RoundPlan:
    """Return the plan for a question, with the variants that the question requires."""
    tested = _variant(question, TESTED, question.patterns, question.prune)
    variants = [tested]
    if question.against:
        against = _variant(question, AGAINST, question.against, question.prune)
        # A single pattern is compared with a single pattern of any name. Several patterns are compared by name.
        if len(question.patterns) == len(question.against) == 1:
            against = replace(against, counterparts={question.against[0].name: question.patterns[0].name})
        variants.append(replace(against, alike=likeness(tested, against)))
    if question.compares_pruning:
        variants.append(_variant(question, UNPRUNED, question.patterns, Prune.OFF))
    if question.compares_constraints:
        variants.append(_variant(_without_constraints(question), UNGUARDED, question.patterns, None))
    return RoundPlan(variants=tuple(variants), is_open=question.is_open, changes=question.changes)


def _variant(question: Question, name: str, patterns: Sequence[TriedPattern], prune: Prune | None) -> Variant:
    stream = question.declaration.name
    tables = Tables.from_json(question.tables, TableFiles())
    records: list[tuple[str, ControlRecord]] = [("", record) for record in records_of(tables)]
    records.append((stream, StreamOn(question.declaration)))
    if question.constraint_set is not None:
        document = to_document(_used(question.constraint_set, patterns, prune))
        records.append((stream, ConstraintsOn(name=stream, version=_VERSION, document=document)))
    changed = [change.table for change in question.changes if isinstance(change, TableOn)]
    forms = tables.forms | {version.name: version.form for version in changed}
    for pattern in patterns:
        for lookup in lookups_in(parse_pattern(pattern.text)):
            require_lookup(forms, *lookup)
        record = pattern.to_record()
        definition = record.definition(stream)
        if (feed := PatternKind().feed(definition)) is not None:
            records.append((feed.stream, StreamOn(StreamDeclaration(name=feed.stream, derived=True))))
        records.append((stream, record))
        records += [(part.inputs[0].stream, OperatorOn(part)) for part in PatternKind().parts(definition)]
    return Variant(name=name, records=tuple(records))


def _without_constraints(question: Question) -> Question:
    declaration, ends = question.declaration, set(question.declaration.end_events)
    if question.constraint_set is not None:
        ends |= question.constraint_set.trace_ends
    ends.intersection_update(declaration.event_types or ends)  # the stream has no other types
    return replace(question, constraint_set=None, declaration=replace(declaration, end_events=tuple(sorted(ends))))


def _used(constraint_set: ConstraintSet, patterns: Sequence[TriedPattern], prune: Prune | None) -> ConstraintSet:
    if prune is not None:
        constraint_set = replace(constraint_set, settings=replace(constraint_set.settings, prune=prune))
    queries = [build_query(parse_pattern(pattern.text)) for pattern in patterns if pattern.is_guarded]
    return within_cap(constraint_set, queries)[0]
