"""The guard protocol: the interface to the component that decides what can still happen in a trace.

The matcher asks a *guard* three questions: how a trace's monitor moves on an event, which pattern states can still
complete in a monitor state, and whether an event that must not follow can still come. The matcher interns the answers
as tables and never learns why. ``constraints.Monitor`` is the guard that reasons from constraints (constraint-aware
CEP, section 4.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.automata.query import Query
from nfa.language.description import describe_atom
from nfa.syntax import Atom

Seen: TypeAlias = frozenset[str]
Question: TypeAlias = Query | Atom

OTHER = ""  # represents all event types that neither a guard nor a pattern names; no event has this type
TRACE_END = "\x00trace-end"  # the type of rows that end a trace without an event; no event has this type


class Prune(StrEnum):
    """What to do with partial matches that can no longer complete (constraint-aware CEP, sections 4.4 and 4.6)."""

    STATE = "state"  # drop each at the event that rules it out
    QUERY = "query"  # drop those of an alternative once none of them can complete, unless the alternative has matched
    SHADOW = "shadow"  # drop none; report what would have been dropped, and which matches lost
    OFF = "off"  # drop none; only report deviations


class OnViolation(StrEnum):
    """What to do with a trace that breaks a constraint (constraint-aware CEP, section 4.6)."""

    REPORT = "report"  # report the deviation; the trace is no longer pruned
    FAIL_TRACE = "fail_trace"  # report the deviation; nothing more is matched in the trace
    IGNORE = "ignore"  # count the violation, and prune as if the event had not come: matches may be lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the matcher uses a guard: what is pruned, and what happens after a violation.

    A trace that would need more than ``max_monitor_states`` monitor states continues under bit tables.
    """

    prune: Prune = Prune.STATE
    on_violation: OnViolation = OnViolation.REPORT
    max_monitor_states: int = 65_536


@dataclass(frozen=True, slots=True)
class Symbol:
    """An event type with a condition on the event's own attributes, both from ``step`` (its alias is ignored)."""

    step: Atom

    @property
    def type(self) -> str:
        return self.step.type

    @property
    def name(self) -> str:
        """The symbol's name in constraints and monitor states, such as ``Quote [price > 1000]``."""
        return describe_atom(self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventClass:
    """The properties by which guards distinguish events.

    ``type`` is ``OTHER`` if neither a guard nor a pattern names it. ``is_later``: the event is later than the previous
    event of its trace; always true unless events with equal timestamps are simultaneous.
    """

    type: str
    symbols: frozenset[str] = frozenset()
    is_later: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorState:
    """A guard's memory of a trace: plain data, for saving.

    ``seen`` are the names of types and symbols that occurred and matter to the guard. If ties are simultaneous,
    ``settled`` are the names seen before the newest time; otherwise None. ``places`` are the states of the guard's
    automata.
    """

    seen: Seen = frozenset()
    settled: Seen | None = None
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BitGoal:
    """The names (types and symbols, as bits) that a pattern state or a step still needs.

    Attributes:
        needs: Names of further events; the goal is dead if such a name is blocked.
        implies: Names of the then complete trace; the goal is dead if such a name is in no conforming continuation.
        conflicts: Sets of names; the goal is dead once all names of a set are certain.
    """

    needs: int = 0
    implies: int = 0
    conflicts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BitRules:
    """A guard's rules over names (types and symbols): a name is an index, a set of names a bit mask.

    Attributes:
        start: Sets of a new trace: names seen, certain to occur, excluded from the trace, blocked from now on.
        requires: For each name, the names that are certain once this name is, itself included.
        excludes: For each name, the names that are excluded once this name is certain.
        blocks: For each name, the names that cannot come afterwards.
        clauses: Pairs (set of names, implied name); without an implied name, the names of the set cannot all occur.
        broken: Sets of names, never all certain in a conforming trace.
    """

    start: tuple[int, int, int, int]
    requires: tuple[int, ...]
    excludes: tuple[int, ...]
    blocks: tuple[int, ...]
    clauses: tuple[tuple[int, int | None], ...] = ()
    broken: tuple[int, ...] = ()


class BitGuard(Protocol):
    """The bit tables of a guard, for traces beyond the cap of its monitor states."""

    @property
    def rules(self) -> BitRules: ...

    def goals(self, question: Question) -> tuple[BitGoal, ...]:
        """For a query, a goal per state, in order; for a step, alternative goals, one of which must be alive."""
        ...

    def names_in(self, event: EventClass) -> int:
        """The guard's names that apply to an event, as bits."""
        ...

    def mask(self, names: Iterable[str]) -> int:
        """The bits of the given names; names without a bit are ignored."""
        ...

    def names(self, mask: int) -> Seen:
        """The names whose bits are set."""
        ...


class Guard(Protocol):
    """A constraint set as the matcher sees it: moves a monitor, and knows which pattern states are alive."""

    @property
    def types(self) -> frozenset[str]:
        """Event types that can move the monitor, including the types of its symbols."""
        ...

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols (conditions on events) that the guard distinguishes."""
        ...

    @property
    def policy(self) -> Policy: ...

    @property
    def start(self) -> MonitorState:
        """The state of a new trace."""
        ...

    def step(self, state: MonitorState, event: EventClass) -> MonitorState | None:
        """Monitor state after one more event, or None if the trace deviates by this event."""
        ...

    def live(self, state: MonitorState, query: Query) -> NDArray[np.bool_]:
        """A mask of the ``query.states`` that can still complete in some conforming continuation."""
        ...

    @property
    def bits(self) -> BitGuard | None:
        """The guard's bit tables, for traces beyond the cap of monitor states; None: such traces continue unguarded."""
        ...

    def can_occur(self, state: MonitorState, atom: Atom) -> bool:
        """Whether some conforming continuation has an event that a step takes."""
        ...
