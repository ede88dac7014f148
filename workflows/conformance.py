"""Conformance checking: whether past traces are traces of a model, and at which event they leave it.

If the model has an automaton, the first event that leaves the model is found exactly. Otherwise the constraints of the
model are checked. A trace that breaks a constraint is not a trace of the model, but a trace that keeps all constraints
need not be one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from constraints import (
    ConstraintSet,
    DeviationKind,
    Monitor,
    Part,
    ProcessAutomaton,
    Settings,
    clause_of,
    explain_deviation,
)
from nfa import EventClass, MonitorState
from workflows.compiling import CompiledWorkflow
from workflows.relations.extraction import Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformance:
    """The conformance of one trace to a model.

    Attributes:
        conforms: Whether the trace is the beginning of a complete trace, so that no event leaves the model.
        at: Index of the first event that leaves the model; None if no event does.
        kind: The kind of the deviation, such as ``after_end`` if the trace was over before the event; None without a
            deviation.
        allowed: The event types that the model allows in place of the deviating event, sorted.
        still_allowed: The event types that may follow the last event, sorted. Empty if an event leaves the model.
        broken: The constraints that the event breaks. Empty if the model has an automaton.
        unmet: The constraints that only more events could satisfy. Empty if the model has an automaton.
        unknown: The event types of the trace that the model never emits, sorted.
        is_exact: Whether an automaton was used. Otherwise constraints were used, which may accept too much.
    """

    conforms: bool
    is_complete: bool
    at: int | None = None
    event: str | None = None
    kind: DeviationKind | None = None
    allowed: tuple[str, ...] = ()
    still_allowed: tuple[str, ...] = ()
    broken: tuple[Part, ...] = ()
    unmet: tuple[Part, ...] = ()
    unknown: tuple[str, ...] = ()
    is_exact: bool = True

    def to_document(self) -> dict[str, Any]:
        return {
            "conforms": self.conforms,
            "is_complete": self.is_complete,
            "index": self.at,
            "event": self.event,
            "kind": self.kind,
            "allowed": list(self.allowed),
            "still_allowed": list(self.still_allowed),
            "broken_constraints": [str(part) for part in self.broken],
            "unmet": [str(part) for part in self.unmet],
            "unknown": list(self.unknown),
            "is_exact": self.is_exact,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationCount:
    """The number of traces that leave a model in the same way.

    Attributes:
        event: The type of the first event that leaves the model.
        kind: The kind of the deviation, such as ``after_end`` if the trace was over before the event.
        allowed: The event types that the model allows in place of this event.
        broken: The constraints that the event breaks, if the model has no automaton.
        example: The index of the first such trace.
    """

    event: str
    kind: DeviationKind | None
    allowed: tuple[str, ...]
    broken: tuple[Part, ...]
    traces: int
    example: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConformance:
    """The conformance of a log to a model, with the frequency of each deviation and each unknown type.

    The most frequent ones come first. In a conforming trace no event leaves the model. A result is exact if the model
    has an automaton. Otherwise constraints are checked, which may accept too much.
    """

    traces: int
    conforming: int
    complete: int
    deviations: tuple[DeviationCount, ...]
    unknown: tuple[tuple[str, int], ...]
    is_exact: bool

    @property
    def fitting_share(self) -> float:
        """The share of conforming traces, or 1 for an empty log."""
        return self.conforming / self.traces if self.traces else 1.0

    @property
    def complete_share(self) -> float:
        """The share of traces that are complete traces of the model, or 1 for an empty log."""
        return self.complete / self.traces if self.traces else 1.0


def check_trace(compiled: CompiledWorkflow, types: Sequence[str]) -> Conformance:
    """Check a trace, given as the types of its events, against a model."""
    return _checker(compiled).check(types)


def check_log(compiled: CompiledWorkflow, traces: Iterable[Sequence[str]]) -> LogConformance:
    """Check all traces of a log against a model. Equal traces are checked once."""
    checker = _checker(compiled)
    variants: Counter[tuple[str, ...]] = Counter()
    example: dict[tuple[str, ...], int] = {}
    for number, types in enumerate(traces):
        variant = tuple(types)
        variants[variant] += 1
        example.setdefault(variant, number)
    conforming = complete = 0
    deviations: dict[tuple[str, DeviationKind | None, tuple[str, ...], tuple[Part, ...]], list[int]] = {}
    unknown: Counter[str] = Counter()
    for variant, count in variants.items():
        conformance = checker.check(variant)
        conforming += count * conformance.conforms
        complete += count * conformance.is_complete
        unknown.update(dict.fromkeys(conformance.unknown, count))
        if conformance.event is not None:
            way = (conformance.event, conformance.kind, conformance.allowed, conformance.broken)
            entry = deviations.setdefault(way, [0, example[variant]])
            entry[0] += count
    listed = [
        DeviationCount(event=event, kind=kind, allowed=allowed, broken=broken, traces=count, example=first)
        for (event, kind, allowed, broken), (count, first) in deviations.items()
    ]
    return LogConformance(
        traces=variants.total(),
        conforming=conforming,
        complete=complete,
        deviations=tuple(sorted(listed, key=lambda deviation: (-deviation.traces, deviation.event, deviation.allowed))),
        unknown=tuple(sorted(unknown.items(), key=lambda pair: (-pair[1], pair[0]))),
        is_exact=compiled.automaton is not None,
    )


class _Checker(Protocol):
    def check(self, types: Sequence[str]) -> Conformance: ...


def _checker(compiled: CompiledWorkflow) -> _Checker:
    if compiled.automaton is not None:
        return _ByAutomaton(compiled.automaton)
    return _ByConstraints(compiled.extraction)


def _unknown(types: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(types).difference(known)))


@dataclass(frozen=True, slots=True)
class _ByAutomaton:
    automaton: ProcessAutomaton

    def check(self, types: Sequence[str]) -> Conformance:
        state = 0
        unknown = _unknown(types, self.automaton.letters)
        for place, event in enumerate(types):
            after = self.automaton.step(state, event)
            if after is None:
                return Conformance(
                    conforms=False,
                    is_complete=False,
                    at=place,
                    event=event,
                    kind=self._kind(state, event),
                    allowed=self.automaton.allowed(state),
                    unknown=unknown,
                )
            state = after
        return Conformance(
            conforms=True,
            is_complete=bool(self.automaton.accepting[state]),
            still_allowed=self.automaton.allowed(state),
        )

    def _kind(self, state: int, event: str) -> DeviationKind:
        if not self.automaton.allowed(state):
            return "after_end"
        return "workflow" if event in self.automaton.letters else "unknown_type"


class _ByConstraints:
    def __init__(self, extraction: Extraction) -> None:
        events = frozenset(extraction.events)
        self._set = ConstraintSet(
            extraction.constraints,
            frozenset(extraction.end),
            settings=Settings(unknown_types="deviate", types=events),
        )
        self._events = events
        self._monitor = Monitor(self._set)
        self._clauses = tuple(
            (constraint, clause)
            for constraint in extraction.constraints
            if (clause := clause_of(constraint)) is not None
        )

    def check(self, types: Sequence[str]) -> Conformance:
        unknown = _unknown(types, self._events)
        state = self._monitor.start
        for place, event in enumerate(types):
            after = self._monitor.step(state, EventClass(type=event))
            if after is None:
                reason = explain_deviation(self._set, state, EventClass(type=event))
                return Conformance(
                    conforms=False,
                    is_complete=False,
                    at=place,
                    event=event,
                    kind=reason.kind,
                    allowed=self._allowed(state),
                    broken=reason.constraints,
                    unknown=unknown,
                    is_exact=False,
                )
            state = after
        seen = state.seen
        unmet = tuple(
            constraint
            for constraint, clause in self._clauses
            if clause.head and clause.body <= seen and clause.head not in seen
        )
        return Conformance(
            conforms=True,
            is_complete=not unmet,
            still_allowed=self._allowed(state),
            unmet=unmet,
            is_exact=False,
        )

    def _allowed(self, state: MonitorState) -> tuple[str, ...]:
        return tuple(
            sorted(event for event in self._events if self._monitor.step(state, EventClass(type=event)) is not None)
        )
