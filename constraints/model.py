"""The vocabulary of constraints, as frozen values, and the consequences of a set of them.

There are two families (constraint-aware CEP, section 2). *Order* constraints restrict which names may follow which.
*Occurrence* constraints are Horn clauses over the names of the entire trace. No event follows an end event, so an end
event acts like an order constraint with every type, including types that no constraint names. *Rules* express more than
both families; each is a small automaton.

A constraint names event types, or *symbols*: events of a type that satisfy a condition (section 4.5). An event shows
its type and every symbol whose condition it satisfies.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

from constraints.heads import Heads
from constraints.implication import Condition, implies
from constraints.process.automaton import ProcessAutomaton
from nfa import Atom, OnViolation, Prune, Symbol
from streams import Ties

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_SYMBOL_NAME = re.compile(r"([A-Za-z_]\w*(\.[A-Za-z_]\w*)*|`[^`]+`) \[.+\]", re.ASCII | re.DOTALL)


def quoted(name: str) -> str:
    """Return a name in its printed form.

    Plain and dotted names and symbols are printed unchanged. Other names are in backticks (doubled inside).
    """
    return name if _PLAIN_NAME.fullmatch(name) or _SYMBOL_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _printed(kind: str, names: Iterable[str]) -> str:
    return f"{kind}({', '.join(quoted(name) for name in names)})"


@dataclass(frozen=True, slots=True)
class Prior:
    """The constraint that no ``earlier`` event follows a ``later`` event.

    Neither of them has to occur. ``prior(A, A)`` allows at most one A.
    """

    earlier: str
    later: str
    kind: ClassVar[str] = "prior"

    @property
    def names(self) -> tuple[str, ...]:
        return self.earlier, self.later

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


@dataclass(frozen=True, slots=True)
class Clause:
    """A Horn clause over the types of the entire trace: all of ``body`` imply ``head``.

    If ``head`` is None, the names in ``body`` cannot all occur in one trace. Clauses of one or two types print under
    their everyday names, longer ones as ``implication(A, B, K)`` (A and B imply K) and ``not_together(A, B, C)``.
    """

    body: frozenset[str]
    head: str | None

    def __post_init__(self) -> None:
        if not self.body and self.head is None:
            raise ValueError("a clause without body and head is always false")
        if self.head in self.body:
            raise ValueError(f"a clause with {self.head!r} on both sides is always true")

    @property
    def kind(self) -> str:
        if self.head is None:
            return {1: "absence", 2: "exclusive"}.get(len(self.body), "not_together")
        return {0: "existence", 1: "require"}.get(len(self.body), "implication")

    @property
    def names(self) -> tuple[str, ...]:
        return (*sorted(self.body), *(() if self.head is None else (self.head,)))

    @property
    def is_long(self) -> bool:
        """Whether the clause has more than two names, so that no constraint on a pair of types can express it."""
        return len(self.body) > (2 if self.head is None else 1)

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Two names do not both occur in one trace.

    The constraint is symmetric, so the names are stored in alphabetical order.
    """

    first: str
    second: str
    kind: ClassVar[str] = "exclusive"

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise ValueError(f"{self.first!r} cannot exclude itself; at most one is Prior, never is Clause")
        if self.second < self.first:
            first, second = self.second, self.first
            object.__setattr__(self, "first", first)
            object.__setattr__(self, "second", second)

    @property
    def names(self) -> tuple[str, ...]:
        return self.first, self.second

    @property
    def clause(self) -> Clause:
        return Clause(frozenset(self.names), None)

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


@dataclass(frozen=True, slots=True)
class Require:
    """A trace with ``trigger`` also has ``required``, before or after it."""

    trigger: str
    required: str
    kind: ClassVar[str] = "require"

    def __post_init__(self) -> None:
        if self.trigger == self.required:
            raise ValueError(f"that {self.trigger!r} requires itself is always true")

    @property
    def names(self) -> tuple[str, ...]:
        return self.trigger, self.required

    @property
    def clause(self) -> Clause:
        return Clause(frozenset({self.trigger}), self.required)

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


@dataclass(frozen=True, slots=True)
class End:
    """An end event: ``type`` closes the monitor of its trace, and every later event deviates."""

    type: str
    kind: ClassVar[str] = "end"

    @property
    def names(self) -> tuple[str, ...]:
        return (self.type,)

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint on the finished trace that neither an order nor a Horn clause expresses.

    ``kind`` is its name in ``constraints.documents.vocabulary``, such as ``response``. ``names`` are in the order of
    the printed form. ``existence``, ``absence`` and ``exactly`` have a ``count``.
    """

    kind: str
    names: tuple[str, ...]
    count: int | None = None

    def __str__(self) -> str:
        amount = "" if self.count is None else f"{self.count}, "
        return f"{self.kind}({amount}{', '.join(quoted(name) for name in self.names)})"


Constraint: TypeAlias = Prior | Exclusive | Require | Clause
Part: TypeAlias = Constraint | End | Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a constraint set.

    Attributes:
        unknown_types: Whether an event whose type is neither in ``types`` nor in a constraint is a deviation.
        completion: Whether a trace is assumed to continue until it has everything that it requires. ``not_assumed`` is
            for streams whose traces may stop at any event; every clause with a head is then ignored.
        types: Event types of the process besides those that constraints name.
        frequencies: The share of the traces that show a name, by name.
        beyond_cap: What happens if ``max_monitor_states`` do not suffice. Either traces continue with bit tables, or
            constraints are left out from the start until the rest fits, beginning with the constraints that save least.
        reopen: What happens to later events of the key after an end event has closed the monitor. With ``never``, they
            deviate. With ``new_transaction``, the end event ends the trace, and a later event of the key opens a new
            one.
    """

    prune: Prune = Prune.STATE
    on_violation: OnViolation = OnViolation.REPORT
    unknown_types: Literal["ignore", "deviate"] = "ignore"
    completion: Literal["assumed", "not_assumed"] = "assumed"
    types: frozenset[str] = frozenset()
    frequencies: Mapping[str, float] = field(default_factory=dict, hash=False)
    max_monitor_states: int = 65_536
    beyond_cap: Literal["bit_tables", "leave_out"] = "bit_tables"
    reopen: Literal["never", "new_transaction"] = "never"


def clause_of(constraint: Constraint, *, assumes_completion: bool = True) -> Clause | None:
    """Return the Horn clause of a constraint.

    The result is None for an order, and for a clause that unfinished traces need not satisfy.
    """
    if isinstance(constraint, Prior):
        return None
    clause = constraint if isinstance(constraint, Clause) else constraint.clause
    return clause if assumes_completion or clause.head is None else None


def _everyday(constraint: Constraint) -> Constraint:
    if not isinstance(constraint, Clause):
        return constraint
    match constraint.kind, constraint.names:
        case "exclusive", (first, second):
            return Exclusive(first, second)
        case "require", (trigger, required):
            return Require(trigger, required)
        case _:
            return constraint


@dataclass(frozen=True, kw_only=True)
class Process:
    """The workflow that a stream's traces follow besides hand-written constraints.

    Exact mode uses its automaton. ``derived`` and ``derived_ends`` are the constraints and end events of the set that
    follow from the workflow and were not written by hand. The automaton implies all of them. Without an automaton
    nothing else is known about the workflow.
    """

    workflow: str
    version: int = 1
    derived: frozenset[Constraint] = frozenset()
    derived_ends: frozenset[str] = frozenset()
    automaton: ProcessAutomaton | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "derived", frozenset(map(_everyday, self.derived)))

    @cached_property  # cached, because it is read for each pair of types
    def types(self) -> frozenset[str]:
        letters = () if self.automaton is None else self.automaton.letters
        return self.derived_ends.union(letters, *(part.names for part in self.derived))

    def about(self, constraints: Iterable[Constraint], end_events: frozenset[str]) -> Process:
        """Return the workflow with its derived constraints and end events restricted to the given ones."""
        return replace(
            self, derived=self.derived.intersection(constraints), derived_ends=self.derived_ends & end_events
        )


# No slots: cached properties need a dictionary.
@dataclass(frozen=True)
class ConstraintSet:
    """The constraints on the traces of one stream.

    Attributes:
        constraints: Orders and clauses in the order of the upload, without repetitions; a clause that is equivalent to
            an ``Exclusive`` or ``Require`` is replaced by it.
        end_events: Types that no event follows, so they close the monitor of a trace. After an end event of the
            workflow, events of types unknown to the workflow are still allowed.
        rules: Rules in the order of the upload, without repetitions.
        symbols: The symbols that some part names.
        process: The workflow from which some of the parts follow, if any.
    """

    constraints: tuple[Constraint, ...] = ()
    end_events: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()
    symbols: Mapping[str, Symbol] = field(default_factory=dict, hash=False)
    settings: Settings = Settings()
    process: Process | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", tuple(dict.fromkeys(map(_everyday, self.constraints))))
        object.__setattr__(self, "rules", tuple(dict.fromkeys(self.rules)))
        names = self.names
        symbols = {name: symbol for name, symbol in self.symbols.items() if name in names}
        object.__setattr__(self, "symbols", symbols)

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The occurrence constraints as Horn clauses.

        Clauses with a head are included only if traces are assumed to complete.
        """
        is_assumed = self.settings.completion == "assumed"
        return tuple(
            filter(None, (clause_of(constraint, assumes_completion=is_assumed) for constraint in self.constraints))
        )

    @cached_property
    def heads(self) -> Heads:
        """The clauses with a head, prepared for computing the names that a trace requires."""
        return Heads((clause.body, clause.head) for clause in self.clauses if clause.head is not None)

    @cached_property
    def earlier(self) -> Mapping[str, Set[str]]:
        """For each name F, every name E with ``prior(E, F)``.

        End events are left out, because they follow all names.
        """
        earlier: dict[str, set[str]] = {}
        for constraint in self.constraints:
            if isinstance(constraint, Prior):
                earlier.setdefault(constraint.later, set()).add(constraint.earlier)
        return earlier

    @cached_property
    def conditions(self) -> Mapping[str, Mapping[str, Condition]]:
        """For each type, its symbols by name. Each symbol has its condition, split into conjuncts."""
        conditions: dict[str, dict[str, Condition]] = {}
        for name, symbol in self.symbols.items():
            conditions.setdefault(symbol.type, {})[name] = Condition(symbol.step)
        return conditions

    @cached_property
    def implied(self) -> Mapping[str, frozenset[str]]:
        """For each symbol, the other names that its events show: their type and all implied symbols."""
        return {
            name: frozenset({event_type}).union(
                other for other, conclusion in of_type.items() if other != name and implies(premise, conclusion)
            )
            for event_type, of_type in self.conditions.items()
            for name, premise in of_type.items()
        }

    @classmethod
    def of(
        cls,
        parts: Iterable[Part],
        *,
        symbols: Mapping[str, Symbol] | None = None,
        settings: Settings | None = None,
        process: Process | None = None,
    ) -> ConstraintSet:
        listed = tuple(parts)
        constraints = tuple(part for part in listed if not isinstance(part, End | Rule))
        end_events = frozenset(part.type for part in listed if isinstance(part, End))
        return cls(
            constraints,
            end_events,
            tuple(part for part in listed if isinstance(part, Rule)),
            symbols or {},
            settings or Settings(),
            None if process is None else process.about(map(_everyday, constraints), end_events),
        )

    def of_parts(self, parts: Iterable[Part]) -> ConstraintSet:
        """Return a set with only the given parts, and with the same symbols, settings and process."""
        return ConstraintSet.of(parts, symbols=self.symbols, settings=self.settings, process=self.process)

    @property
    def own(self) -> ConstraintSet:
        """The hand-written constraints: the set without the workflow and the constraints that follow from it."""
        if self.process is None:
            return self
        return replace(
            self,
            constraints=tuple(constraint for constraint in self.constraints if constraint not in self.process.derived),
            end_events=self.end_events - self.process.derived_ends,
            process=None,
        )

    @property
    def in_tables(self) -> ConstraintSet:
        """The set without the automaton of its workflow, for code that can only use constraints."""
        if self.process is None or self.process.automaton is None:
            return self
        return replace(self, process=replace(self.process, automaton=None))

    @property
    def is_exact(self) -> bool:
        """Whether the automaton of a workflow decides which traces conform."""
        return self.process is not None and self.process.automaton is not None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Everything that an explanation can cite: end events, sorted, then the constraints, then the rules."""
        return (*(End(name) for name in sorted(self.end_events)), *self.constraints, *self.rules)

    @property
    def trace_ends(self) -> frozenset[str]:
        """End events after which a new trace of the same key begins.

        They are usually none, because streams declare their own end events.
        """
        return self.end_events if self.settings.reopen == "new_transaction" else frozenset()

    @property
    def closing_ends(self) -> frozenset[str]:
        """Hand-written end events, which no event of any type follows.

        End events of a workflow are left out, because other types than those of the workflow may follow them.
        """
        return self.end_events if self.process is None else self.end_events - self.process.derived_ends

    def decides_absences(self, ties: Ties, types: Collection[str]) -> bool:
        """Check whether an end event can decide a NOT at the end of a pattern.

        An end event decides the NOT if none of the forbidden ``types`` can follow. The set must prune by state, and
        events with equal timestamps must be ordered.
        """
        process = self.process
        is_known = process is not None and bool(process.derived_ends) and process.types.issuperset(types)
        return (is_known or bool(self.closing_ends)) and self.settings.prune is Prune.STATE and ties == "log"

    @property
    def names(self) -> frozenset[str]:
        """Every type and symbol that some part names, end events included."""
        return frozenset(name for part in self.parts for name in part.names)

    @property
    def types(self) -> frozenset[str]:
        return frozenset(map(self.type_of, self.names))

    def type_of(self, name: str) -> str:
        """Return the event type of a name. Unless the name is a symbol, this is the name itself."""
        symbol = self.symbols.get(name)
        return name if symbol is None else symbol.type

    def shown_by(self, atom: Atom) -> frozenset[str]:
        """Return the names of every event that satisfies a step: its type, and symbols implied by the condition."""
        if atom.is_any_type or len(atom.types) > 1:
            return frozenset()
        of_type = self.conditions.get(atom.type, {})
        same = next((name for name, other in of_type.items() if other.atom == atom), None)
        if same is not None:
            return self.implied[same] | {same}
        condition = Condition(atom)
        return frozenset({atom.type}).union(name for name, other in of_type.items() if implies(condition, other))

    def comes_before(self, first: str, second: str) -> bool:
        """Check whether constraints order ``first`` before ``second``.

        If so, no ``second`` may be followed by a ``first``.
        """
        if second in self.closing_ends or first in self.earlier.get(second, ()):
            return True
        return self.process is not None and second in self.process.derived_ends and first in self.process.types

    def blocks(self, seen: Iterable[str], name: str) -> bool:
        """Check whether order constraints or end events forbid ``name`` after the names ``seen``."""
        return any(self.comes_before(name, other) for other in seen)

    def shown_with(self, names: Iterable[str]) -> frozenset[str]:
        """Return the given names, and all further names that events with these names show."""
        return frozenset(names).union(*(self.implied.get(name, ()) for name in names))

    def horn_closure(self, names: Iterable[str]) -> frozenset[str]:
        """Return ``names`` with all names that follow from them by clauses with a head, and by ``implied``."""
        closed = self.shown_with(frozenset(names) | self.heads.certain)
        while (after := self.shown_with(self.heads.closure(closed))) != closed:
            closed = after
        return closed

    def is_ruled_out(self, names: frozenset[str]) -> bool:
        """Check whether some clause forbids a trace that shows all of ``names``."""
        return any(clause.head is None and clause.body <= names for clause in self.clauses)


def following(
    own: ConstraintSet,
    *,
    workflow: str,
    version: int,
    constraints: Iterable[Constraint],
    end_events: Iterable[str],
    automaton: ProcessAutomaton | None,
) -> ConstraintSet:
    """Return a set for traces that follow a workflow and satisfy the hand-written constraints in ``own``.

    If ``own`` already follows another workflow, this workflow is replaced. Versions count from 1. ``constraints`` hold
    on every complete trace of the workflow. No event of the workflow follows its ``end_events``. Without an automaton,
    only constraints and end events are used.
    """
    hand_written, derived = own.own, tuple(constraints)
    process = Process(
        workflow=workflow,
        version=version,
        derived=frozenset(derived),
        derived_ends=frozenset(end_events) - hand_written.end_events,
        automaton=automaton,
    )
    process = replace(process, derived=process.derived - frozenset(hand_written.constraints))
    return replace(
        hand_written,
        constraints=(*hand_written.constraints, *derived),
        end_events=hand_written.end_events | process.derived_ends,
        process=process,
    )
