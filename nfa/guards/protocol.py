"""The seam to the component that knows what can still happen in a trace.

The matcher asks a *guard* three things: how a trace's monitor moves on an event, which pattern states can still
complete in a monitor state, and whether an event that must not follow can still come. It interns the answers as tables
and never learns why. ``constraints.Monitor`` is the guard that reasons from constraints (constraint-aware CEP,
section 4.2).
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

OTHER = ""  # stands for every event type that no guard and no pattern names; no event has it
TRACE_END = "\x00trace-end"  # stands for the end of a trace without an event; rows have it, no event does


class Prune(StrEnum):
    """What is done with partial matches that can no longer complete (constraint-aware CEP, sections 4.4 and 4.6)."""

    STATE = "state"  # each goes at the event that dooms it
    QUERY = "query"  # those of an alternative go together once none of them can complete, and none ever did
    SHADOW = "shadow"  # none goes; what would have gone, and which matches would have been lost, is told
    OFF = "off"  # none goes; only deviations are found


class OnViolation(StrEnum):
    """What is done with a trace that breaks a constraint (constraint-aware CEP, section 4.6)."""

    REPORT = "report"  # it is told, and the trace is no longer pruned
    FAIL_TRACE = "fail_trace"  # it is told, and nothing is looked for in the trace any more
    IGNORE = "ignore"  # it is counted, and pruning goes on as if the event had not come: matches may be lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a guard wants to be used.

    Attributes:
        prune: What is done with partial matches that can no longer complete.
        on_violation: What is done with a trace that breaks a constraint.
        max_monitor_states: Monitor states that are kept as tables; traces that would need more go on by the fallback.
    """

    prune: Prune = Prune.STATE
    on_violation: OnViolation = OnViolation.REPORT
    max_monitor_states: int = 65_536


@dataclass(frozen=True, slots=True)
class Symbol:
    """Events of one type that satisfy a condition on their own attributes, as constraints can name them.

    Attributes:
        step: A step of one type with a condition; its alias does not count.
    """

    step: Atom

    @property
    def type(self) -> str:
        """The event type."""
        return self.step.type

    @property
    def name(self) -> str:
        """How constraints and monitor states name it, such as ``Quote [price > 1000]``."""
        return describe_atom(self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventClass:
    """What a guard receives of an event.

    Attributes:
        type: Its type; ``OTHER`` for any type that nobody names.
        symbols: Names of the guard's symbols that it satisfies, besides its type.
        is_later: Whether it is later than the trace's event before it. Always true unless events of one time are
            not ordered.
    """

    type: str
    symbols: frozenset[str] = frozenset()
    is_later: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorState:
    """What a guard remembers of a trace: plain data, so that saved state can name it.

    Attributes:
        seen: Names of the types and symbols shown so far that matter to the guard.
        settled: Where events of one time are not ordered, those shown before the newest time; None elsewhere.
        places: The state of each of the guard's automata.
    """

    seen: Seen = frozenset()
    settled: Seen | None = None
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BitGoal:
    """What must still come for something to complete.

    Attributes:
        needs: Names of which another event must come; dead if one is blocked.
        implies: Names that the whole trace has then; dead if one can be in no conforming continuation.
        conflicts: Sets of names; dead once one of them is certain as a whole.
    """

    needs: int = 0
    implies: int = 0
    conflicts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BitRules:
    """What a guard says of its names, which are numbered by place.

    Attributes:
        start: Of a new trace: seen, certain, excluded, blocked.
        requires: By name, what is certain once the name is, itself included.
        excludes: By name, what can be in no conforming continuation then.
        blocks: By name, what cannot come after it.
        clauses: Names that imply another one (its place), or that cannot all be (None).
        broken: Sets of names none of which is ever certain as a whole.
    """

    start: tuple[int, int, int, int]
    requires: tuple[int, ...]
    excludes: tuple[int, ...]
    blocks: tuple[int, ...]
    clauses: tuple[tuple[int, int | None], ...] = ()
    broken: tuple[int, ...] = ()


class BitGuard(Protocol):
    """A guard's other side, for traces beyond the cap of its monitor states."""

    @property
    def rules(self) -> BitRules:
        """What it says of its names."""
        ...

    def goals(self, question: Question) -> tuple[BitGoal, ...]:
        """One goal for each of a query's states, in their order; for a step, goals one of which it needs."""
        ...

    def shown(self, event: EventClass) -> int:
        """What an event shows."""
        ...

    def mask(self, names: Iterable[str]) -> int:
        """The bits of some names; names that do not matter here have none."""
        ...

    def names(self, mask: int) -> Seen:
        """The names whose bits are set."""
        ...


class Guard(Protocol):
    """What one constraint set says about traces."""

    @property
    def types(self) -> frozenset[str]:
        """Event types that can move the monitor, those of its symbols included."""
        ...

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """Conditions on events that it distinguishes."""
        ...

    @property
    def policy(self) -> Policy:
        """How it wants to be used."""
        ...

    @property
    def start(self) -> MonitorState:
        """The state of a new trace."""
        ...

    def step(self, state: MonitorState, event: EventClass) -> MonitorState | None:
        """Monitor state after one more event, or None when the trace deviates by it."""
        ...

    def live(self, state: MonitorState, query: Query) -> NDArray[np.bool_]:
        """Which of ``query.states`` can still complete in some conforming continuation."""
        ...

    @property
    def bits(self) -> BitGuard | None:
        """Its bit tables, for traces beyond the cap of monitor states; None: those go on unguarded."""
        ...

    def can_occur(self, state: MonitorState, atom: Atom) -> bool:
        """Whether some conforming continuation has an event that a step takes."""
        ...
