"""The guard protocol, through which the matcher asks what can still happen in a trace.

The matcher asks a *guard* three questions: to which monitor state an event leads, which pattern states can still
complete in a monitor state, and whether an event that must not follow can still occur. The matcher stores the answers
in tables and does not learn the reasons. ``constraints.Monitor`` is the guard that reasons from constraints
(constraint-aware CEP, section 4.2).
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

OTHER = ""  # represents all event types that no guard and no pattern uses; no event has this type
TRACE_END = "\x00trace-end"  # the type of rows that end a trace without an event; no event has this type


class Prune(StrEnum):
    """Policy for partial matches that can no longer complete (constraint-aware CEP, sections 4.4 and 4.6)."""

    STATE = "state"  # drop each partial match at the event that rules it out
    QUERY = "query"  # drop an alternative's partial matches once none can complete, unless the alternative has matched
    SHADOW = "shadow"  # drop nothing; report what would have been dropped, and which matches would have been lost
    OFF = "off"  # drop nothing; only report deviations


class OnViolation(StrEnum):
    """Policy for a trace that breaks a constraint (constraint-aware CEP, section 4.6)."""

    REPORT = "report"  # report the deviation; the trace is no longer pruned
    FAIL_TRACE = "fail_trace"  # report the deviation and stop matching in the trace
    IGNORE = "ignore"  # count the violation, and prune as if the event had not occurred, so matches may be lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the matcher uses a guard: what it prunes, and what it does after a violation.

    A trace that would need more than ``max_monitor_states`` monitor states continues under bit tables (see
    ``BitGuard``).
    """

    prune: Prune = Prune.STATE
    on_violation: OnViolation = OnViolation.REPORT
    max_monitor_states: int = 65_536


@dataclass(frozen=True, slots=True)
class Symbol:
    """An event type with a condition on the event's own attributes.

    ``step`` has the type and the condition. Its alias is ignored.
    """

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

    Attributes:
        type: Event type, or ``OTHER`` if no guard and no pattern uses the type.
        symbols: Names of the guards' symbols that apply to the event.
        is_later: Whether the event is later than the previous event of its trace. This is always true unless events
            with equal timestamps are simultaneous.
    """

    type: str
    symbols: frozenset[str] = frozenset()
    is_later: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorState:
    """A guard's memory of a trace, as plain data that can be saved.

    Attributes:
        seen: Names of the types and symbols that have occurred and matter to the guard.
        settled: If ties are simultaneous, the names seen before the time of the newest event. Otherwise None.
        places: The states of the guard's rule automata.
    """

    seen: Seen = frozenset()
    settled: Seen | None = None
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BitGoal:
    """The conditions for reaching a pattern state or a step, as bit sets of names (types and symbols).

    Attributes:
        needs: Names of events that must still occur. The goal is dead if such a name is blocked.
        implies: Names that must be in the trace when the goal is reached. The goal is dead if such a name is excluded.
        conflicts: Sets of names. The goal is dead once all names of a set are certain.
    """

    needs: int = 0
    implies: int = 0
    conflicts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BitRules:
    """A guard's rules over names (types and symbols). A name is an index, and a set of names is a bit mask.

    Attributes:
        start: Sets of a new trace: names seen, certain to occur, excluded from the trace, and blocked from now on.
        requires: For each name, the names that are certain once this name is certain, including the name itself.
        excludes: For each name, the names that are excluded once this name is certain.
        blocks: For each name, the names that cannot occur after this name.
        clauses: Pairs (set of names, implied name). Without an implied name, the names of the set cannot all occur.
        broken: Sets of names that are never all certain in a conforming trace.
    """

    start: tuple[int, int, int, int]
    requires: tuple[int, ...]
    excludes: tuple[int, ...]
    blocks: tuple[int, ...]
    clauses: tuple[tuple[int, int | None], ...] = ()
    broken: tuple[int, ...] = ()


class BitGuard(Protocol):
    """A guard in the form of bit tables: rules over sets of names instead of numbered monitor states.

    It is used for traces that would need more monitor states than the guard's policy allows.
    """

    @property
    def rules(self) -> BitRules: ...

    def goals(self, question: Question) -> tuple[BitGoal, ...]:
        """Return the goals of a question, which decide the guard's answer.

        A query has one goal for each of its states, in order. A step has alternative goals, at least one of which must
        be alive.
        """
        ...

    def names_in(self, event: EventClass) -> int:
        """Return the guard's names (types and symbols) that apply to an event, as bits."""
        ...

    def mask(self, names: Iterable[str]) -> int:
        """Return the bits of the given names. Names without a bit are ignored."""
        ...

    def names(self, mask: int) -> Seen:
        """Return the names whose bits are set."""
        ...


class Guard(Protocol):
    """A constraint set for the matcher.

    It computes monitor states, and decides which pattern states can still complete.
    """

    @property
    def types(self) -> frozenset[str]:
        """Event types that can change the monitor state, including the types of its symbols."""
        ...

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols (conditions on events) that the guard distinguishes."""
        ...

    @property
    def policy(self) -> Policy: ...

    @property
    def start(self) -> MonitorState:
        """The monitor state of a new trace."""
        ...

    def step(self, state: MonitorState, event: EventClass) -> MonitorState | None:
        """Return the monitor state after one more event, or None if the event breaks a constraint."""
        ...

    def live(self, state: MonitorState, query: Query) -> NDArray[np.bool_]:
        """Return a mask of ``query.states``, true where some conforming continuation completes the pattern state."""
        ...

    @property
    def bits(self) -> BitGuard | None:
        """The guard as bit tables, or None if it has none.

        Bit tables are used for traces that would need more monitor states than the policy allows. Without them, such
        traces become unguarded.
        """
        ...

    def can_occur(self, state: MonitorState, atom: Atom) -> bool:
        """Return whether some conforming continuation has an event that a step accepts."""
        ...
