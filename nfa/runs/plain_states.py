"""States whose runs can be parked, and the value under which they wait (``nfa.kernels.runs.parking``)."""

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
    """The value under which runs in a state wait.

    Attributes:
        path: Attribute of an event that is bound already.
        atoms: Positive atoms that may have bound it, as bits; the newest of their events counts.
        asked: For each step on from the state the attribute of the current event that has to equal it.
    """

    path: Path = ()
    atoms: int = 0
    asked: Sequence[Path] = field(default_factory=tuple)


def is_plain(transitions: Sequence[Transition]) -> bool:
    """Whether nothing that an event does to a gap matters to runs in the state of which these are the steps on."""
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
    """The first equality that all steps on from a state ask for; None where there is no such value.

    Args:
        steps: For each what its condition asks of earlier events, and what its names stand for.
    """
    found = [equalities(condition, scope) for condition, scope in steps]
    for path, atoms in found[0] if found else ():
        if all((path, atoms) in one for one in found):
            return Key(path=path, atoms=atoms, asked=[one[path, atoms] for one in found])
    return None


def equalities(condition: Expression | None, scope: ConditionScope) -> Mapping[tuple[Path, int], Path]:
    """What a condition asks to be equal: attribute and atoms of an earlier event, and the own attribute."""
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
