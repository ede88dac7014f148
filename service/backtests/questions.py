"""The question of a backtest, which is a storable value and does not depend on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from constraints import ConstraintSet, parse_constraints, to_document
from nfa import Prune, TraceEnds, parse_pattern
from service.registering.on_stream import trace_ends_of
from shards import TableRecord, routed
from streams import USUAL_BUDGET, PatternOn, StreamDeclaration, WorkBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedPattern:
    """A pattern of a backtest. If ``is_guarded``, constraints prune its partial matches."""

    name: str
    text: str
    version: int = 1
    is_guarded: bool = True
    budget: WorkBudget = USUAL_BUDGET
    suppression: Mapping[str, Any] | None = None

    def to_record(self) -> PatternOn:
        return PatternOn(
            name=self.name,
            version=self.version,
            text=self.text,
            is_guarded=self.is_guarded,
            budget=self.budget,
            suppression=self.suppression,
        )

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TriedPattern:
        """Read a pattern from plain JSON. Documents of earlier releases have no work budget."""
        return cls(**{**document, "budget": WorkBudget.from_json(document.get("budget", {}))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question of a backtest.

    Attributes:
        declaration: Declaration of the stream. It includes the end events.
        patterns: The tested patterns.
        against: The patterns with which the tested patterns are compared.
        constraint_set: The constraints and end events of the stream, or None for no constraints.
        prune: How partial matches that can no longer complete are pruned, or None for the policy of the constraint set.
        compares_pruning: Whether the tested patterns are compared with themselves without pruning.
        compares_constraints: Whether the tested patterns are compared with themselves without constraints.
        is_open: Whether traces continue after the history.
        tables: The tables that patterns look up, as returned by ``Tables.to_json``. If the history is the log, the
            tables are in their state before the first event.
        changes: Changes of tables between the events of the log. They are empty if the history consists of files.
            ``to_document`` leaves them out.
    """

    declaration: StreamDeclaration
    patterns: tuple[TriedPattern, ...]
    against: tuple[TriedPattern, ...] = ()
    constraint_set: ConstraintSet | None = None
    prune: Prune | None = None
    compares_pruning: bool = False
    compares_constraints: bool = False
    is_open: bool = False
    tables: tuple[Mapping[str, Any], ...] = ()
    changes: tuple[TableRecord, ...] = ()

    def to_document(self) -> dict[str, Any]:
        return {
            "declaration": self.declaration.to_json(),
            "patterns": [asdict(pattern) for pattern in self.patterns],
            "against": [asdict(pattern) for pattern in self.against],
            "constraints": None if self.constraint_set is None else to_document(self.constraint_set),
            "prune": None if self.prune is None else self.prune.value,
            "compares_pruning": self.compares_pruning,
            "compares_constraints": self.compares_constraints,
            "is_open": self.is_open,
            "tables": list(self.tables),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Question:
        constraints, prune = document["constraints"], document["prune"]
        return cls(
            declaration=StreamDeclaration.from_json(document["declaration"]),
            patterns=tuple(TriedPattern.from_document(pattern) for pattern in document["patterns"]),
            against=tuple(TriedPattern.from_document(pattern) for pattern in document["against"]),
            constraint_set=None if constraints is None else parse_constraints(constraints).constraint_set,
            prune=None if prune is None else Prune(prune),
            compares_pruning=document["compares_pruning"],
            compares_constraints=document["compares_constraints"],
            is_open=document["is_open"],
            tables=tuple(document.get("tables", ())),
        )


def ends_in(question: Question, tried: TriedPattern) -> TraceEnds:
    """Return which ends of traces a pattern takes into account in a backtest.

    If traces do not continue after the history, the end of the history ends every trace.
    """
    if not question.is_open:
        return TraceEnds(has_trace_end=True)
    is_guarded = tried.is_guarded and question.prune is not Prune.OFF
    constraint_set = question.constraint_set
    if constraint_set is not None and question.prune is not None:
        constraint_set = replace(constraint_set, settings=replace(constraint_set.settings, prune=question.prune))
    on_stream = routed(parse_pattern(tried.text), question.declaration)
    return trace_ends_of(on_stream, constraint_set, is_guarded=is_guarded)
