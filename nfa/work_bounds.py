"""Estimates how a pattern's work grows with the length of its trace, and warns if nothing bounds the work.

In the run engine an event meets partial matches one by one. Their number in a trace of n events is bounded by a power
of n. The exponent is called the *growth*. Each event that a partial match may choose freely adds one to the growth. A
repetition under ANY may bind every subset of events, which makes the growth infinite. The growth is zero if the
shared-node engine runs the pattern.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from nfa.automata.pattern_automaton import PatternAutomaton, build_automaton
from nfa.conditions.predicates import PredicateTable
from nfa.conditions.texts import TextPool
from nfa.kernels.runs.tables import ANY as ANY_MODE
from nfa.kernels.runs.tables import LATEST, NIL, STRICT, RunProgram
from nfa.lanes.layout import is_run_by_shared_engine
from nfa.language.placement import first_position
from nfa.language.stream_checks import Notice, check_stream, warnings_of
from nfa.row_bounds import row_notices
from nfa.runs.program import GuardColumns, RunPattern, atoms_to_test, compile_runs
from nfa.silent_nulls import null_notices
from nfa.syntax import ANY_TYPE, Atom, Node, Pattern, Repeat, parts_of

_FEW = 2  # if traces end, repetitions of at most this number of elements cause no warning


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEnds:
    """How traces of a stream may end. The checks and warnings about patterns depend on this.

    With ``has_closing``, a guard knows an event after which the trace has no further events; see ``check_stream``, also
    for ``further_key``.
    """

    has_trace_end: bool
    has_closing: bool = False
    further_key: str = ""
    is_log_ordered: bool = True

    def check(self, pattern: Pattern) -> None:
        """Refuse a pattern that would wait for ever for the end of a trace."""
        check_stream(
            pattern,
            has_trace_end=self.has_trace_end,
            has_closing=self.has_closing,
            further_key=self.further_key,
        )

    def warnings_of(self, pattern: Pattern) -> tuple[Notice, ...]:
        """Return warnings about accepted parts that are probably mistakes, in the order of the text."""
        notices = (
            *warnings_of(
                pattern,
                has_trace_end=self.has_trace_end,
                has_closing=self.has_closing,
                further_key=self.further_key,
            ),
            *row_notices(pattern),
            *null_notices(pattern),
        )
        grows = _unbounded_work(pattern, has_trace_end=self.has_trace_end, is_log_ordered=self.is_log_ordered)
        if grows is not None:
            notices = (
                *(warning for warning in notices if warning.code != "no-within"),
                grows,
            )  # a clause WITHIN corrects these, too
        return tuple(sorted(notices, key=lambda notice: (notice.position.line, notice.position.column)))


def growth_of(pattern: Pattern, *, is_log_ordered: bool = True) -> float:
    """Return the growth of a pattern, a bound of the number of partial matches that one event may meet.

    The bound is a power of the length of the trace, and the growth is its exponent. Zero means that a window or the
    length of the pattern bounds the number. Infinity means that each subset of the events may be a partial match.
    """
    if pattern.has_window or is_run_by_shared_engine(pattern, is_log_ordered=is_log_ordered):
        return 0.0
    automaton = build_automaton(pattern)
    return _growth(automaton, _program_of(automaton, is_log_ordered=is_log_ordered))


def _unbounded_work(pattern: Pattern, *, has_trace_end: bool, is_log_ordered: bool) -> Notice | None:
    growth = growth_of(pattern, is_log_ordered=is_log_ordered)
    if growth == 0:
        return None
    repeat = next(_many(pattern.event), None)
    if has_trace_end and (repeat is None or growth < _FEW):
        return None
    ways = ["SELECT NEXT or STRICT", "an equality between steps (b.id = a.id)"]
    if repeat is not None:
        ways.insert(0, "a repetition of fewer events or EACH NEXT")
    rate = "with every subset of the repeated events" if growth == math.inf else _power(int(growth))
    return Notice(
        "unbounded-work",
        "the work per event is not bounded: an event may meet all partial matches of its trace, whose number grows "
        f"{rate}; beyond a budget the pattern is given up in the trace, and after several such traces suspended. "
        f"WITHIN bounds it; what makes partial matches fewer: {', '.join(ways)}",
        first_position(pattern.event) if repeat is None else repeat.position,
    )


def _power(growth: int) -> str:
    return "with the trace" if growth == 1 else f"with power {growth} of the trace's length"


def _many(node: Node) -> Iterator[Repeat]:
    if not isinstance(node, Atom | Repeat) and node.within_us is not None:
        return
    if isinstance(node, Repeat) and (node.max is None or node.max > _FEW):
        yield node
    for part in parts_of(node):
        yield from _many(part)


def _program_of(automaton: PatternAutomaton, *, is_log_ordered: bool) -> RunProgram:
    atoms = atoms_to_test(automaton)
    names = sorted({name for atom in atoms for name in atom.types if name != ANY_TYPE})
    codes = {name: code for code, name in enumerate(names)}
    run_patterns = [RunPattern(automaton=automaton, columns=GuardColumns(first_state=0, negations={}))]
    compiled = compile_runs(
        run_patterns, codes, PredicateTable.of(atoms), TextPool(), is_simultaneous=not is_log_ordered
    )
    return compiled.program


def _growth(automaton: PatternAutomaton, p: RunProgram) -> float:
    growths = [0.0] * len(automaton.states)  # by state: growth of the partial matches that ever reach it
    for component in _components(p):
        inner_steps = [step for state in component for step in _steps(p, state) if p.target[step] in component]
        if inner_steps:  # a repetition: ANY chooses freely, other modes have one continuation per first event
            is_any = any(p.mode[step] == ANY_MODE for step in inner_steps)
            most = math.inf if is_any else max(growths[state] for state in component) + 1
            for state in component:
                growths[state] = most
        for state in component:
            for step in _steps(p, state):
                target = int(p.target[step])
                if target not in component:
                    growths[target] = max(growths[target], _passed_on(p, state, step, growths[state]))
    met_states = [state for state in range(1, len(growths)) if _is_met(automaton, p, state)]
    candidates = (growths[state] if _is_kept(automaton, p, state) else growths[state] - 1 for state in met_states)
    return float(max(candidates, default=0.0))


def _passed_on(p: RunProgram, state: int, step: int, growth: float) -> float:
    """Return the growth of the partial matches that ``step`` creates from partial matches of growth ``growth``."""
    if state == 0 or _is_found_by_value(p, state):
        return 1.0  # each event creates a bounded number
    return growth + int(p.mode[step] == ANY_MODE and p.limit[step] == LATEST)


def _steps(p: RunProgram, state: int) -> range:
    return range(p.step_from[state], p.step_from[state + 1])


def _components(p: RunProgram) -> list[set[int]]:
    """Return the strongly connected components of states, in topological order (R. Tarjan, 1972)."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    components: list[set[int]] = []
    waiting = [(0, iter(_steps(p, 0)))]
    while waiting:
        state, steps = waiting[-1]
        if state not in order:
            order[state] = lowest[state] = len(order)
            path.append(state)
            on_path.add(state)
        for step in steps:
            target = int(p.target[step])
            if target not in order:
                waiting.append((target, iter(_steps(p, target))))
                break
            if target in on_path:
                lowest[state] = min(lowest[state], order[target])
        else:
            waiting.pop()
            if waiting:
                lowest[waiting[-1][0]] = min(lowest[waiting[-1][0]], lowest[state])
            if lowest[state] == order[state]:
                place = path.index(state)
                components.append(set(path[place:]))
                on_path -= components[-1]
                del path[place:]
    return components[::-1]


def _is_kept(automaton: PatternAutomaton, p: RunProgram, state: int) -> bool:
    """Check whether partial matches may stay in a state for ever, so that they accumulate."""
    goes_on = any(p.mode[step] != STRICT and p.limit[step] == LATEST for step in _steps(p, state))
    waits = any(negation.within_us is None for finish in automaton.finishes[state] for negation in finish.negations)
    return goes_on or waits


def _is_met(automaton: PatternAutomaton, p: RunProgram, state: int) -> bool:
    trails = any(finish.negations or finish.slots for finish in automaton.finishes[state])
    return (len(_steps(p, state)) > 0 or trails) and not _is_found_by_value(p, state)


def _is_found_by_value(p: RunProgram, state: int) -> bool:
    return bool(p.parks[state]) and p.key_column[state] != NIL
