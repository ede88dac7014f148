"""States whose runs can be parked, and the value under which their runs wait (``nfa.kernels.runs.parking``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from nfa.automata.pattern_automaton import Transition
from nfa.conditions.bytecode import ConditionScope
from nfa.kernels.conditions import NIL
from nfa.syntax import Attribute, Both, Comparison, Expression

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The value under which runs in a state wait: an attribute of the newest event that one of ``atoms`` (bits) bound.

    For each step from the state, ``asked`` is the attribute of the current event that must equal it.
    """

    path: Path = ()
    atoms: int = 0
    asked: Sequence[Path] = field(default_factory=tuple)


def is_plain(transitions: Sequence[Transition]) -> bool:
    """Whether events cannot affect the gaps of runs in the state with these outgoing steps."""
    return bool(transitions) and all(
        transition.slot >= 0
        and transition.edge.mode == "any"
        and transition.edge.limit_us is None
        and not transition.edge.negations
        and not transition.leaves
        and transition.step.greedy is None
        and not (transition.step.goes_on or transition.step.within or transition.step.in_spans)
        for transition in transitions
    )


def key_of(steps: Sequence[tuple[Expression | None, ConditionScope]]) -> Key | None:
    """The first equality that all steps from a state, given by condition and scope, require; None without one."""
    found = [equalities(condition, scope) for condition, scope in steps]
    for path, atoms in found[0] if found else ():
        if all((path, atoms) in one for one in found):
            return Key(path=path, atoms=atoms, asked=[one[path, atoms] for one in found])
    return None


def equalities(condition: Expression | None, scope: ConditionScope) -> Mapping[tuple[Path, int], Path]:
    """Equalities that a condition requires: attribute and atoms of an earlier event, the current event's attribute."""
    found: dict[tuple[Path, int], Path] = {}
    for part in condition.operands if isinstance(condition, Both) else (condition,):
        if not isinstance(part, Comparison) or part.operator != "=":
            continue
        for own, other in ((part.left, part.right), (part.right, part.left)):
            if not isinstance(own, Attribute) or not isinstance(other, Attribute) or not own.path or not other.path:
                continue
            is_own = own.of is None or own.of == scope.own
            if not is_own or other.of is None or other.of == scope.own:
                continue
            atoms = scope.atoms.get(other.of, 0)
            if atoms and scope.repetitions.get(other.of, NIL) == NIL:
                found.setdefault((other.path, atoms), own.path)
    return found
