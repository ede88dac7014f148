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

    An undeclared stream that operators feed or read is a derived stream. Each pattern has a flag, which says whether
    constraints terminate its partial matches early. The rows of tables are in the cache folder.
    """

    declarations: Mapping[str, StreamDeclaration]
    sets: Mapping[str, ConstraintSet]
    patterns: Mapping[str, Sequence[tuple[RoutedPattern, bool]]]
    operators: Sequence[Definition] = ()
    tables: Tables = field(default_factory=Tables)
    budget: WorkBudget = USUAL_BUDGET

    def records(self) -> Sequence[tuple[str, ControlRecord]]:
        """Return the control records that a log would contain before its first event, each with its stream."""
        return self._variant.records

    def _declared(self) -> Iterator[tuple[str, ControlRecord]]:
        yield from (("", record) for record in records_of(self.tables))
        for name, declaration in self.declarations.items():
            yield name, StreamOn(declaration)
        inputs = {source.stream for operator in self.operators for source in operator.inputs}
        patterns = [
            routed_pattern for stream_patterns in self.patterns.values() for routed_pattern, _ in stream_patterns
        ]
        inputs |= {
            fed_stream(routed_pattern.pattern.name, routed_pattern.suppression)
            for routed_pattern in patterns
            if routed_pattern.suppression
        }
        for name in sorted(inputs.difference(self.declarations)):
            yield name, StreamOn(StreamDeclaration(name=name, derived=True))
        for name in self.declarations:
            for record in self._records(name, self.sets.get(name)):
                yield name, record
        for operator in self.operators:
            yield operator.inputs[0].stream, OperatorOn(operator, "fresh")

    def variant(self, name: str) -> Variant:
        """Return the rules of the run under the name of a variant, so that a backtest can compare several variants."""
        return replace(self._variant, name=name)

    def routes(self, stream: str) -> dict[str, AttributePath]:
        """Return the path of each further key that operators use on a posted stream, by the name of the key."""
        return self._variant.routes.get(stream, {})

    @cached_property
    def _variant(self) -> Variant:
        return Variant(name="", records=tuple(self._declared()))

    def _records(self, stream: str, constraint_set: ConstraintSet | None) -> Iterator[ControlRecord]:
        patterns = self.patterns.get(stream, ())
        if constraint_set is not None and _has_rules(constraint_set):
            from constraints import to_document, within_cap  # noqa: PLC0415 - slow to import

            guarded = [
                build_query(routed_pattern.pattern)
                for routed_pattern, is_guarded in patterns
                if is_guarded and routed_pattern.has_whole_traces
            ]
            used, _ = within_cap(constraint_set, guarded)
            yield ConstraintsOn(name=stream, version=1, document=to_document(used))
        for routed_pattern, is_guarded in patterns:
            for lookup in lookups_in(routed_pattern.pattern):
                require_lookup(self.tables.forms, *lookup)
            require_rows(routed_pattern.pattern, self.tables)
            yield PatternOn(
                name=routed_pattern.pattern.name,
                version=1,
                text=routed_pattern.pattern.text,
                is_guarded=is_guarded and routed_pattern.has_whole_traces,
                route=routed_pattern.route,
                budget=self.budget,
                suppression=routed_pattern.suppression,
            )


def _has_rules(constraint_set: ConstraintSet) -> bool:
    deviates = constraint_set.settings.unknown_types == "deviate"
    return bool(constraint_set.parts) or constraint_set.process is not None or deviates
