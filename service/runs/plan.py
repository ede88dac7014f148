"""The rules of a run: streams, constraints, patterns and other operators, as the control records of a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from nfa import build_query, lookups_in, require_rows
from shards import RoutedPattern, Variant, fed_stream, records_of
from streams import (
    USUAL_BUDGET,
    AttributePath,
    ConstraintsOn,
    ControlRecord,
    Definition,
    OperatorOn,
    PatternOn,
    StreamDeclaration,
    StreamOn,
    WorkBudget,
)
from streams.tables import Tables, require_lookup

if TYPE_CHECKING:
    from constraints import ConstraintSet  # slow to import, and not needed without constraints


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """The streams, constraints, patterns and other operators of a run.

    Streams between operators that are not declared are derived. Each pattern has a flag: whether constraints terminate
    its partial matches. Rows of tables are in the cache folder.
    """

    declarations: Mapping[str, StreamDeclaration]
    sets: Mapping[str, ConstraintSet]
    patterns: Mapping[str, Sequence[tuple[RoutedPattern, bool]]]
    operators: Sequence[Definition] = ()
    tables: Tables = field(default_factory=Tables)
    budget: WorkBudget = USUAL_BUDGET

    def records(self) -> Sequence[tuple[str, ControlRecord]]:
        """The control records that a log would hold before its first event, each with its stream."""
        return self._variant.records

    def _declared(self) -> Iterator[tuple[str, ControlRecord]]:
        yield from (("", record) for record in records_of(self.tables))
        for name, declaration in self.declarations.items():
            yield name, StreamOn(declaration)
        inputs = {source.stream for one in self.operators for source in one.inputs}
        patterns = [one for some in self.patterns.values() for one, _ in some]
        inputs |= {fed_stream(one.pattern.name, one.suppression) for one in patterns if one.suppression}
        for name in sorted(inputs.difference(self.declarations)):
            yield name, StreamOn(StreamDeclaration(name=name, derived=True))
        for name in self.declarations:
            for record in self._records(name, self.sets.get(name)):
                yield name, record
        for one in self.operators:
            yield one.inputs[0].stream, OperatorOn(one, "fresh")

    def variant(self, name: str) -> Variant:
        """The plan as a variant of a plan of rounds."""
        return replace(self._variant, name=name)

    def routes(self, stream: str) -> dict[str, AttributePath]:
        """Further keys by name, and their paths, that operators on a posted stream use."""
        return self._variant.routes.get(stream, {})

    @cached_property
    def _variant(self) -> Variant:
        return Variant(name="", records=tuple(self._declared()))

    def _records(self, stream: str, constraint_set: ConstraintSet | None) -> Iterator[ControlRecord]:
        patterns = self.patterns.get(stream, ())
        if constraint_set is not None and _has_rules(constraint_set):
            from constraints import to_document, within_cap  # noqa: PLC0415 - takes long

            guarded = [build_query(one.pattern) for one, is_guarded in patterns if is_guarded and one.has_whole_traces]
            used, _ = within_cap(constraint_set, guarded)
            yield ConstraintsOn(name=stream, version=1, document=to_document(used))
        for one, is_guarded in patterns:
            for lookup in lookups_in(one.pattern):
                require_lookup(self.tables.forms, *lookup)
            require_rows(one.pattern, self.tables)
            yield PatternOn(
                name=one.pattern.name,
                version=1,
                text=one.pattern.text,
                is_guarded=is_guarded and one.has_whole_traces,
                route=one.route,
                budget=self.budget,
                suppression=one.suppression,
            )


def _has_rules(constraint_set: ConstraintSet) -> bool:
    """Whether a set has constraints, a process to follow, or reports unknown types."""
    deviates = constraint_set.settings.unknown_types == "deviate"
    return bool(constraint_set.parts) or constraint_set.process is not None or deviates
