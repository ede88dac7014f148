"""The question of a backtest: a value that can be stored, independent of Spark."""

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
    """A pattern of a backtest; constraints terminate its partial matches early if ``is_guarded``."""

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
        """Read a pattern from plain JSON; documents of earlier releases have no work budget."""
        return cls(**{**document, "budget": WorkBudget.from_json(document.get("budget", {}))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question of a backtest: the patterns to run on a stream, and the comparisons to make.

    Attributes:
        declaration: Declaration of the stream, with its end events.
        constraint_set: The constraints of the stream, including its end events; None: no constraints.
        prune: Pruning of partial matches that can no longer complete; None: as in the constraint set.
        is_open: Whether traces continue after the history.
        tables: Versions of the tables that patterns look up, in the form of ``Tables.to_json``, each with the time from
            which the version is valid. For the log: only the versions before its first event.
        changes: For the log, the changes of tables between events; left out by ``to_document``.
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
    """How traces end for one pattern of a backtest."""
    if not question.is_open:
        return TraceEnds(has_trace_end=True)
    is_guarded = tried.is_guarded and question.prune is not Prune.OFF
    constraint_set = question.constraint_set
    if constraint_set is not None and question.prune is not None:
        constraint_set = replace(constraint_set, settings=replace(constraint_set.settings, prune=question.prune))
    on_stream = routed(parse_pattern(tried.text), question.declaration)
    return trace_ends_of(on_stream, constraint_set, is_guarded=is_guarded)
