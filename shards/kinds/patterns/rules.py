"""Constraint documents, compiled for the matcher and the explanations.

Reading a hundred constraints and checking pattern states against them takes longer than matching a small batch. The
result depends only on the document and on the order of ties. So each document is compiled once per process, and shared
by shards and by states that are loaded repeatedly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from nfa import OTHER, Deviation, Ending, EventClass, GuardView, MonitorState, PatternState, Query, describe_atom
from streams import Ties

if TYPE_CHECKING:
    from constraints import ConstraintSet, DeviationReason, Explanation  # a tenth of the start of ``forestall match``

_DOCUMENTS_KEPT = 64
_EXPLANATIONS_KEPT = 10_000
_MOST_TYPES = 50


@dataclass(frozen=True, slots=True)
class _Question:
    query: Query
    state: PatternState
    before: MonitorState
    after: MonitorState
    event: EventClass


class Rules:
    """A constraint set with its monitor. It explains early terminations and deviations, and caches the explanations.

    ``ties``: how events with equal timestamps are ordered.
    """

    def __init__(self, constraint_set: ConstraintSet, ties: Ties = "log") -> None:
        from constraints import Monitor  # noqa: PLC0415

        self._constraint_set = constraint_set
        self._ties = ties
        self._endings: dict[_Question, Mapping[str, Any]] = {}
        self._deviations: dict[tuple[MonitorState, EventClass], DeviationReason] = {}
        self.monitor = Monitor(constraint_set, ties=ties)

    @property
    def trace_ends(self) -> frozenset[str]:
        """Event types that end a trace, because the constraint set has ``reopen: new_transaction``."""
        return self._constraint_set.trace_ends

    def explain(self, query: Query, ending: Ending) -> Mapping[str, Any]:
        """Return an explanation of an early termination, as members of a result in plain JSON."""
        event = _named(ending.event, ending.event_type)
        question = _Question(query, ending.state, ending.before, ending.after, event)
        if question not in self._endings:
            _make_room(self._endings)
            why = self._explain(question)
            self._endings[question] = {
                "form": why.form,
                "constraints": [str(constraint) for constraint in why.constraints],
                "atom": describe_atom(why.atom) if why.atoms else f"NOT {describe_atom(why.atom)}",
                "reason": why.text,
            }
        return self._endings[question]

    def explain_deviation(self, deviation: Deviation) -> DeviationReason:
        """Return an explanation of a deviation, by the constraints that its event breaks."""
        from constraints import explain_deviation  # noqa: PLC0415

        question = deviation.before, _named(deviation.event, deviation.event_type)
        if question not in self._deviations:
            _make_room(self._deviations)
            self._deviations[question] = explain_deviation(self._constraint_set, *question, ties=self._ties)
        return self._deviations[question]

    def following(self, state: MonitorState, declared: Collection[str]) -> tuple[list[str], list[str], int]:
        """Return the event types that may follow in a trace without deviation, and the event types that must not.

        Conditions on attributes are ignored. ``declared`` has the types of the stream. The types of the constraints are
        added. At most 50 types are examined. The third result is the number of further types.
        """
        constraint_set = self._constraint_set
        known = sorted({*declared, *constraint_set.types, *constraint_set.end_events})
        types = known[:_MOST_TYPES]
        may = [name for name in types if self.monitor.step(state, EventClass(type=name)) is not None]
        return may, [name for name in types if name not in may], len(known) - len(types)

    def is_complete(self, state: MonitorState, may: Collection[str]) -> bool:
        """Return whether a trace is complete, because an end event or the end of the workflow has occurred.

        ``may`` has the event types that may follow, as ``following`` returns them.
        """
        is_closed = self._constraint_set.process is not None
        return not may and (is_closed or self.monitor.step(state, EventClass(type=OTHER)) is None)

    def why_over(self, query: Query, view: GuardView, state: MonitorState) -> str | None:
        """Return why a pattern can no longer match in a trace where it has no bound events, or None if unknown."""
        from constraints import explain_ending  # noqa: PLC0415

        event = EventClass(type=OTHER)
        for start in view.pattern_states[0]:
            try:
                why = explain_ending(self._constraint_set, query, start, self.monitor.start, state, event)
            except ValueError:
                continue
            return f"{why.because}{why.circumstances}"
        return None

    def _explain(self, question: _Question) -> Explanation:
        """Return an explanation of an early termination from the event that caused it.

        If this fails, the explanation uses all events since the trace began.
        """
        from constraints import explain_ending  # noqa: PLC0415

        parts = (self._constraint_set, question.query, question.state)
        try:
            return explain_ending(*parts, question.before, question.after, question.event)
        except ValueError:
            return explain_ending(*parts, self.monitor.start, question.after, question.event)


def _named(event: EventClass, event_type: str) -> EventClass:
    """Return an event class with its own type, instead of the class of all types that the constraints do not name."""
    return event if event.type == event_type else replace(event, type=event_type)


def _make_room(explanations: dict[Any, Any]) -> None:
    if len(explanations) >= _EXPLANATIONS_KEPT:
        explanations.clear()


def rules_of(document: Any, ties: Ties = "log") -> Rules:
    """Return the rules of an uploaded document. Equal documents share one object.

    ``ties`` says how the stream orders events with equal timestamps.
    """
    return _rules_of_text(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), ties)


@lru_cache(maxsize=_DOCUMENTS_KEPT)
def _rules_of_text(text: bytes, ties: Ties) -> Rules:
    from constraints import parse_constraints  # noqa: PLC0415

    return Rules(parse_constraints(orjson.loads(text)).constraint_set, ties)
