"""Compilation of patterns' automata to the tables of the run kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.automata.pattern_automaton import PatternAutomaton, Transition
from nfa.automata.progress import Negation
from nfa.conditions.bytecode import ColumnTable, CompiledCondition, ConditionCompiler, ConditionScope
from nfa.conditions.filter_index import NO_CELL
from nfa.conditions.listening import Listening
from nfa.conditions.lookups import deadline_of
from nfa.conditions.predicates import PredicateTable
from nfa.conditions.residuals import split_condition
from nfa.conditions.texts import TextPool
from nfa.guards.protocol import TRACE_END
from nfa.kernels.runs import tables
from nfa.kernels.runs.tables import ANY, LATEST, NEXT, NIL, ORDERED, STRICT, TIMEOUTS, RunProgram
from nfa.runs.plain_states import is_plain, key_of
from nfa.syntax import ANY_TYPE, Atom, Expression, Pattern
from streams import USUAL_BUDGET, WorkBudget

_MODES = {"any": ANY, "next": NEXT, "strict": STRICT}
_RULES = {
    "none": tables.NO_RULE,
    "once_per_key": tables.ONCE_PER_KEY,
    "skip_to_next": tables.SKIP_TO_NEXT,
    "skip_past_last": tables.SKIP_PAST_LAST,
    "skip_to_first": tables.SKIP_TO_FIRST,
    "skip_to_last": tables.SKIP_TO_LAST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRuns:
    """Patterns compiled for the run kernel.

    Attributes:
        symbols: The distinct pairs of a step's event types and its predicate row.
        starts: For each condition, the index of the first word of its code.
        ends: For each condition, the index after the last word of its code.
        columns: The attributes of events that conditions read.
        width: Upper bound of the number of results that one event has in one run. It is the largest number of
            transitions of a state, multiplied by the largest number of alternative ends of a match.
        leads: The largest number of leading NOTs of a pattern.
    """

    automata: tuple[PatternAutomaton, ...]
    program: RunProgram
    symbols: tuple[tuple[tuple[str, ...], int], ...]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    compiler: ConditionCompiler
    columns: ColumnTable
    width: int
    leads: int

    @property
    def depth(self) -> int:
        return self.compiler.depth


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardColumns:
    """The columns of a pattern in a guard's ``live`` tables.

    Attributes:
        first_state: The column of the automaton's first state. The other states follow in order.
        negations: The column of each trailing NOT. It says whether the event of the NOT can still occur. A NOT without
            a column waits until its deadline.
    """

    first_state: int
    negations: Mapping[Atom, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPattern:
    """A pattern of the run engine, with its columns in a guard's tables and its work limits.

    ``source`` is the previous number of a pattern with the same states, whose runs the new pattern takes over. If
    ``source`` is ``NIL``, the new pattern starts without runs.
    """

    automaton: PatternAutomaton
    columns: GuardColumns
    budget: WorkBudget = USUAL_BUDGET
    source: int = int(NIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunListening:
    """The events to which the run engine's patterns listen.

    ``listening`` uses the lane's pattern numbers. ``numbers`` has the lane's number for each number of the engine.
    """

    listening: Listening = field(default_factory=Listening)
    numbers: Sequence[int] = ()

    def cells(self, pattern: int, code: int) -> list[int]:
        """Return the sorted cells of the filter index to which a pattern listens for events of a type."""
        return self.listening.cells_of_all(self.numbers[pattern], code) if self.numbers else [NO_CELL]

    def tested(self, pattern: int, atom: Atom, codes: Mapping[str, int]) -> Atom:
        """Return a step of a pattern without the conjuncts that the filter index already checks."""
        if not self.numbers or atom.is_any_type:
            return atom
        types = [codes[name] for name in dict.fromkeys(atom.types)]
        return self.listening.reduced_for_all(self.numbers[pattern], types, atom)


def listeners(
    automata: Sequence[PatternAutomaton], codes: Mapping[str, int], heard: RunListening
) -> list[tuple[int, int, int]]:
    """Return which patterns must see (listen to) which events, as sorted triples (cell, type code, pattern number)."""
    entries = []
    for number, automaton in enumerate(automata):
        types = listened_types(automaton)
        for code in every_event(codes) if types is None else [codes[name] for name in types]:
            entries += [(cell, code, number) for cell in heard.cells(number, code)]
    return sorted(entries)


def is_ordered(automaton: PatternAutomaton, *, is_simultaneous: bool) -> bool:
    """Return whether matches of a pattern must be ranked before they are emitted.

    An after-match rule, LIMIT and timeouts require this. It is also required if equal matches may have to wait, or if
    simultaneous events may refute a match.
    """
    pattern = automaton.pattern
    if pattern.after.rule != "none" or pattern.limit is not None or pattern.timeouts:
        return True
    if automaton.may_repeat and automaton.is_trailing:
        return True
    return is_simultaneous and any(
        negation.is_strict for transition in automaton.transitions for negation in transition.edge.negations
    )


def listened_types(automaton: PatternAutomaton) -> frozenset[str] | None:
    """Return the event types that can change a run of a pattern, or None if every type can."""
    atoms = [*automaton.atoms, *automaton.outline.negated, *untils_of(automaton)]
    if any(atom.is_any_type for atom in atoms):
        return None
    for transition in automaton.transitions:
        edge = transition.edge
        if transition.slot >= 0 and (edge.mode == "strict" or any(negation.is_strict for negation in edge.negations)):
            return None
    return frozenset(name for atom in atoms for name in atom.types)


def untils_of(automaton: PatternAutomaton) -> list[Atom]:
    """Return the conditions of a pattern's UNTILs, each as a step."""
    return [repeat.until for repeat in automaton.outline.repeats if repeat.until is not None]


def atoms_to_test(automaton: PatternAutomaton) -> list[Atom]:
    """Return all steps of a pattern whose conditions are tested on events, including NOTs and UNTILs."""
    return [*automaton.atoms, *automaton.outline.negated, *untils_of(automaton)]


def every_event(codes: Mapping[str, int]) -> list[int]:
    """Return the codes of all types except ``TRACE_END``. Rows of this type end a trace, but are not events."""
    return [code for code in range(len(codes) + 1) if code != codes.get(TRACE_END)]


def compile_runs(
    patterns: Sequence[RunPattern],
    codes: Mapping[str, int],
    predicates: PredicateTable,
    texts: TextPool,
    *,
    is_simultaneous: bool,
    heard: RunListening | None = None,
) -> CompiledRuns:
    """Compile patterns in the order of their numbers. Texts in their conditions are interned in ``texts``.

    The code after the last code in ``codes`` represents all other types. ``predicates`` has the unary conditions of all
    steps. ``heard`` limits the events to which patterns listen. If it is None, patterns listen to all events of their
    types.
    """
    heard = heard or RunListening()
    leaves = ColumnTable()
    writer = _Writer(predicates, ConditionCompiler(leaves, texts), leaves, is_simultaneous)
    automata = [pattern.automaton for pattern in patterns]
    for number, (pattern, automaton) in enumerate(zip(patterns, automata, strict=True)):
        writer.tested = {atom: heard.tested(number, atom, codes) for atom in atoms_to_test(automaton)}
        writer.add(automaton, pattern.columns)
    steps = np.diff(writer.rows["step_from"])
    return CompiledRuns(
        automata=tuple(automata),
        program=writer.program(listeners(automata, codes, heard), [*sorted(codes, key=codes.__getitem__), None], heard),
        symbols=tuple(writer.symbols),
        starts=np.array([condition.start for condition in writer.conditions], np.int64),
        ends=np.array([condition.end for condition in writer.conditions], np.int64),
        compiler=writer.compiler,
        columns=leaves,
        width=int(steps.max(initial=1)) * int(np.diff(writer.rows["finish_from"]).max(initial=1)),
        leads=int(np.diff(writer.rows["lead_from"]).max(initial=0)),
    )


_RANGES = (
    "state_from",
    "lead_from",
    "until_from",
    "span_from",
    "step_from",
    "watch_from",
    "trail_from",
    "finish_from",
    "alias_from",
    "hear_from",
)
_BITS = frozenset(
    "rule_atoms key_atoms until watch_slot slot leads resets leaves finish_slots begins goes_on inside opens_spans"
    " in_spans".split()
)
_TIMES = frozenset(
    "most work work_in_all allowance worked worked_at within span_within watch_within trail_within limit".split()
)
_FLAGS = frozenset("is_simultaneous is_suspended accepts parks watch_strict has_nots is_measured is_greedy".split())


@dataclass
class _Writer:
    predicates: PredicateTable
    compiler: ConditionCompiler
    columns: ColumnTable
    is_simultaneous: bool
    tested: Mapping[Atom, Atom] = field(default_factory=dict)  # current pattern's steps without implied conjuncts
    parked: list[list[tuple[int, tuple[str, ...]]]] = field(default_factory=list)  # by pattern: steps and their types
    symbols: dict[tuple[tuple[str, ...], int], int] = field(default_factory=dict)
    conditions: list[CompiledCondition] = field(default_factory=list)
    rows: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = {name: [0] if name in _RANGES else [] for name in RunProgram._fields}
        self.rows["is_simultaneous"].append(self.is_simultaneous)

    def add(self, automaton: PatternAutomaton, columns: GuardColumns) -> None:
        rows, pattern = self.rows, automaton.pattern
        scopes = _Scopes(automaton)
        first_state = len(rows["accepts"])
        self.parked.append([])
        rows["within"].append((pattern.within_us or 0) if pattern.has_window else LATEST)
        business = pattern.within_business
        rows["deadline"].append(NIL if business is None else self.columns.number(deadline_of(business)))
        rows["work"].append(USUAL_BUDGET.per_trace)  # the engine later writes the actual limits and suspensions
        rows["work_in_all"].append(USUAL_BUDGET.in_all)
        rows["allowance"].append(USUAL_BUDGET.per_event)
        for written in ("is_suspended", "worked", "worked_at"):
            rows[written].append(0)
        is_ranked = is_ordered(automaton, is_simultaneous=self.is_simultaneous)
        rows["flags"].append(ORDERED * is_ranked + TIMEOUTS * pattern.timeouts)
        self._add_rule(automaton)
        rows["where"].append(self._condition(pattern.where, scopes.of_match()))
        self._add_untils(automaton, scopes)
        rows["span_within"] += [span.within_us for span in automaton.outline.spans]  # type: ignore[union-attr]
        rows["span_from"].append(len(rows["span_within"]))
        conditions = [self._residual(atom, scopes.of_atom(number)) for number, atom in enumerate(automaton.atoms)]
        negations = [
            self._residual(atom, scopes.of_negated(number)) for number, atom in enumerate(automaton.outline.negated)
        ]
        leads = self._add_leads(automaton, negations)
        by_state: dict[int, list[Transition]] = {}
        for transition in automaton.transitions:
            by_state.setdefault(transition.source, []).append(transition)
        for state in range(len(automaton.states)):
            rows["accepts"].append(automaton.accepting[state])
            rows["column"].append(columns.first_state + state)
            rows["until"].append(_bits(automaton.under_way[state]))
            watched = set()
            for transition in by_state.get(state, ()):
                self._add_step(automaton, transition, first_state, conditions, leads)
                if transition.slot >= 0 and transition.slot not in watched:
                    watched.add(transition.slot)
                    self._add_watches(automaton, transition, negations)
            self._add_parking(automaton, by_state.get(state, ()), scopes)
            rows["step_from"].append(len(rows["source"]))
            rows["watch_from"].append(len(rows["watch_slot"]))
            self._add_finishes(automaton, state, negations, columns.negations)
        rows["state_from"].append(len(rows["accepts"]))
        number, size = len(rows["state_from"]) - 2, len(automaton.states)
        self._own("pattern_at", range(columns.first_state, columns.first_state + size), number)
        self._own("waits_at", columns.negations.values(), number)

    def _add_parking(self, automaton: PatternAutomaton, steps: Sequence[Transition], scopes: _Scopes) -> None:
        """Write whether runs in the current state are parked, and the key by which parked runs are indexed.

        ``steps`` are the steps from the state. Their rows must have been added last.
        """
        rows, first = self.rows, len(self.rows["source"]) - len(steps)
        atoms = [(automaton.atoms[transition.atom], scopes.of_atom(transition.atom)) for transition in steps]
        parks = not rows["flags"][-1] and not self.is_simultaneous and is_plain(steps)
        key = key_of([(split_condition(atom)[1], scope) for atom, scope in atoms]) if parks else None
        rows["parks"].append(parks)
        rows["key_column"].append(NIL if key is None else self.columns.number(key.leaf))
        rows["key_atoms"].append(0 if key is None else key.atoms)
        rows["asks"] += [NIL] * len(steps) if key is None else [self.columns.number(leaf) for leaf in key.asked]
        if parks:
            self.parked[-1] += [(first + place, atom.types) for place, (atom, _) in enumerate(atoms)]

    def _add_rule(self, automaton: PatternAutomaton) -> None:
        rows, pattern = self.rows, automaton.pattern
        aliases = sorted(automaton.aliases)
        rows["rule"].append(_RULES[pattern.after.rule])
        rows["rule_atoms"].append(
            _bits(number for number, atom in enumerate(automaton.atoms) if atom.alias == pattern.after.alias)
        )
        rows["most"].append(LATEST if pattern.limit is None else pattern.limit)
        rows["alias_rank"] += [aliases.index(atom.alias) for atom in automaton.atoms]
        rows["alias_from"].append(len(rows["alias_rank"]))
        rows["alias_count"].append(len(aliases))

    def _add_finishes(
        self, automaton: PatternAutomaton, state: int, conditions: Sequence[int], columns: Mapping[Atom, int]
    ) -> None:
        rows = self.rows
        for finish in automaton.finishes[state]:
            rows["finish_slots"].append(_bits(finish.slots))
            for negation in finish.negations:
                atom = automaton.outline.negated[negation.number]
                rows["trail_symbol"].append(self._symbol(atom))
                rows["trail_condition"].append(conditions[negation.number])
                rows["trail_within"].append(LATEST if negation.within_us is None else negation.within_us)
                rows["trail_column"].append(columns.get(atom, NIL))
            rows["trail_from"].append(len(rows["trail_symbol"]))
        rows["finish_from"].append(len(rows["finish_slots"]))

    def _own(self, name: str, columns: Iterable[int], pattern: int) -> None:
        for column in columns:
            for table in ("pattern_at", "waits_at"):
                missing = column + 1 - len(self.rows[table])
                self.rows[table] += [int(NIL)] * missing
            self.rows[name][column] = pattern

    def program(
        self, listeners: Sequence[tuple[int, int, int]], names: Sequence[str | None], heard: RunListening
    ) -> RunProgram:
        """Return the program for sorted ``listeners``, which are triples (cell, type code, pattern).

        ``names`` has the event type of each code, and None for the code of all other types.
        """
        for _, code, number in listeners:
            name = names[code]
            steps = [step for step, types in self.parked[number] if takes_every_type(types) or name in types]
            self.rows["hear_step"] += steps
            self.rows["hear_from"].append(len(self.rows["hear_step"]))
        codes = [code for cell, code, _ in listeners if cell == NO_CELL]
        self.rows["listen_from"] = np.searchsorted(codes, np.arange(len(names) + 1)).tolist()
        self.rows["listeners"] = [number for _, _, number in listeners]
        begin, end = heard.listening.index.ranges(np.array([cell for cell, _, _ in listeners], np.int32))
        self.rows["cell_begin"], self.rows["cell_end"] = begin.tolist(), end.tolist()
        return RunProgram(**{name: _array(name, values) for name, values in self.rows.items()})

    def _add_leads(self, automaton: PatternAutomaton, negations: Sequence[int]) -> dict[Negation, int]:
        leads: dict[Negation, int] = {}
        for transition in automaton.transitions:
            if transition.slot < 0:
                for negation in transition.edge.negations:
                    leads.setdefault(negation, len(leads))
        self.rows["lead_symbol"] += [self._symbol(automaton.outline.negated[lead.number]) for lead in leads]
        self.rows["lead_condition"] += [negations[lead.number] for lead in leads]
        self.rows["lead_from"].append(len(self.rows["lead_symbol"]))
        return leads

    def _add_untils(self, automaton: PatternAutomaton, scopes: _Scopes) -> None:
        for number, repeat in enumerate(automaton.outline.repeats):
            until = repeat.until
            self.rows["until_symbol"].append(NIL if until is None else self._symbol(until))
            condition = NIL if until is None else self._residual(until, scopes.of_until(number, until))
            self.rows["until_condition"].append(condition)
        self.rows["until_from"].append(len(self.rows["until_symbol"]))

    def _add_step(
        self,
        automaton: PatternAutomaton,
        transition: Transition,
        first_state: int,
        conditions: Sequence[int],
        leads: Mapping[Negation, int],
    ) -> None:
        step, edge = transition.step, transition.edge
        is_first = transition.slot < 0
        values: dict[str, Any] = {
            "source": first_state + transition.source,
            "target": first_state + transition.target,
            "atom": transition.atom,
            "symbol": self._symbol(automaton.atoms[transition.atom]),
            "condition": conditions[transition.atom],
            "slot": 0 if is_first else 1 << transition.slot,
            "mode": ANY if is_first else _MODES[edge.mode],
            "limit": LATEST if is_first or edge.limit_us is None else edge.limit_us,
            "has_nots": not is_first and bool(edge.negations),
            "is_measured": edge.is_measured,
            "is_greedy": step.greedy is not None,
            "leads": _bits(leads[negation] for negation in edge.negations) if is_first else 0,
            "resets": _bits(transition.resets),
            "leaves": _bits(transition.leaves),
            "begins": _bits(step.begins),
            "goes_on": _bits(step.goes_on),
            "inside": _bits(step.within),
            "opens_spans": _bits(step.opens_spans),
            "in_spans": _bits(step.in_spans),
        }
        for name, value in values.items():
            self.rows[name].append(value)

    def _add_watches(self, automaton: PatternAutomaton, transition: Transition, negations: Sequence[int]) -> None:
        for negation in transition.edge.negations:
            self.rows["watch_slot"].append(1 << transition.slot)
            self.rows["watch_symbol"].append(self._symbol(automaton.outline.negated[negation.number]))
            self.rows["watch_condition"].append(negations[negation.number])
            self.rows["watch_within"].append(LATEST if negation.within_us is None else negation.within_us)
            self.rows["watch_strict"].append(negation.is_strict)

    def _symbol(self, atom: Atom) -> int:
        symbol = (tuple(sorted(set(atom.types))), self.predicates.row_of(self.tested.get(atom, atom)))
        return self.symbols.setdefault(symbol, len(self.symbols))

    def _residual(self, atom: Atom, scope: ConditionScope) -> int:
        return self._condition(split_condition(atom)[1], scope)

    def _condition(self, expression: Expression | None, scope: ConditionScope) -> int:
        if expression is None:
            return int(NIL)
        self.conditions.append(self.compiler.compile_condition(expression, scope))
        return len(self.conditions) - 1


class _Scopes:
    """Builds the scopes of a pattern's conditions.

    If a repetition contains both alias and condition, only events of the current iteration count.
    """

    def __init__(self, automaton: PatternAutomaton) -> None:
        self._outline = automaton.outline
        self._atoms: dict[str, int] = {}
        for number, atom in enumerate(automaton.atoms):
            self._atoms[atom.alias] = self._atoms.get(atom.alias, 0) | 1 << number

    def of_match(self) -> ConditionScope:
        return ConditionScope(atoms=self._atoms)

    def of_atom(self, number: int) -> ConditionScope:
        alias = self._outline.atoms[number].alias
        return ConditionScope(
            own=alias, atoms=self._atoms, repetitions=self._repetitions(self._outline.ancestors[number])
        )

    def of_negated(self, number: int) -> ConditionScope:
        return self._beside(self._outline.negated[number].alias, self._outline.negated_ancestors[number])

    def of_until(self, repeat: int, until: Atom) -> ConditionScope:
        node = next(node for node, other in self._outline.repeat_nodes.items() if other == repeat)
        return self._beside(until.alias, self._outline.node_ancestors[node])

    def _beside(self, own_alias: str, place: Sequence[int]) -> ConditionScope:
        atoms = {alias: bits for alias, bits in self._atoms.items() if alias != own_alias}
        return ConditionScope(own=own_alias, atoms=atoms, repetitions=self._repetitions(place))

    def _repetitions(self, place: Sequence[int]) -> dict[str, int]:
        """Return, for each alias, the innermost repetition that contains both the alias and a condition.

        ``place`` are the tree nodes around the condition.
        """
        innermost: dict[str, int] = {}
        for number, atom in enumerate(self._outline.atoms):
            shared = set(self._outline.ancestors[number]).intersection(place)
            around = [self._outline.repeat_nodes[node] for node in shared if node in self._outline.repeat_nodes]
            if around:
                innermost[atom.alias] = min(innermost.get(atom.alias, max(around)), max(around))
        return innermost


def _bits(numbers: Iterable[int]) -> int:
    return reduce(or_, (1 << number for number in numbers), 0)


def _array(name: str, values: Sequence[Any]) -> NDArray[Any]:
    if name in _BITS:
        return np.array(values, np.uint64)
    if name in _TIMES:
        return np.array(values, np.int64)
    return np.array(values, np.bool_ if name in _FLAGS else np.int32)


def takes_every_type(pattern_types: tuple[str, ...]) -> bool:
    """Return whether a step that names the types ``pattern_types`` accepts events of every type."""
    return pattern_types == (ANY_TYPE,)


def needs_trace_end(pattern: Pattern, automaton: PatternAutomaton) -> bool:
    """Return whether some match of a pattern is decided only by the end of its trace."""
    return automaton.is_trailing and not pattern.has_window
