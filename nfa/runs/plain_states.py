"""Plain states, whose runs can be parked, and the keys by which parked runs are indexed.

``nfa.kernels.runs.parking`` explains and parks the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nfa.automata.pattern_automaton import Transition
from nfa.conditions.bytecode import ConditionScope
from nfa.conditions.predicates import Leaf, leaf_of
from nfa.conditions.residuals import event_of
from nfa.kernels.conditions import NIL
from nfa.syntax import Both, Comparison, Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The value by which the parked runs of a state are indexed.

    The value is an attribute of the newest event that a run has bound to one of the steps ``atoms``.

    Attributes:
        leaf: The attribute of the bound event.
        atoms: The steps, as bits.
        asked: For each transition from the state, the attribute of the current event that must equal the value.
    """

    leaf: Leaf = ()
    atoms: int = 0
    asked: Sequence[Leaf] = field(default_factory=tuple)


def is_plain(transitions: Sequence[Transition]) -> bool:
    """Return whether a state is plain: no event can close a gap of its runs.

    ``transitions`` are all transitions from the state.
    """
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
    """Return the key for the parked runs of a state, or None if no equality is suitable.

    The key is the first equality that all steps from the state require. ``steps`` has their conditions and scopes.
    """
    requirements = [equalities(condition, scope) for condition, scope in steps]
    for leaf, atoms in requirements[0] if requirements else ():
        if all((leaf, atoms) in requirement for requirement in requirements):
            return Key(leaf=leaf, atoms=atoms, asked=[requirement[leaf, atoms] for requirement in requirements])
    return None


def equalities(condition: Expression | None, scope: ConditionScope) -> Mapping[tuple[Leaf, int], Leaf]:
    """Return the equalities that a condition requires between an earlier event and the current event.

    Keys are (attribute of the earlier event, atoms that bind this event). Values are attributes of the current event.
    """
    requirements: dict[tuple[Leaf, int], Leaf] = {}
    for part in condition.operands if isinstance(condition, Both) else (condition,):
        if not isinstance(part, Comparison) or part.operator != "=":
            continue
        for own_side, other_side in ((part.left, part.right), (part.right, part.left)):
            own_leaf, earlier = _column(own_side), _column(other_side)
            if own_leaf is None or earlier is None:
                continue
            current_leaf, alias = own_leaf[0], earlier[1]
            if own_leaf[1] not in (None, scope.own) or alias is None or alias == scope.own:
                continue
            atoms = scope.atoms.get(alias, 0)
            if atoms and scope.repetitions.get(alias, NIL) == NIL:
                requirements.setdefault((earlier[0], atoms), current_leaf)
    return requirements


def _column(expression: Expression) -> tuple[Leaf, str | None] | None:
    leaf, aliases = leaf_of(expression), event_of(expression)
    return None if not leaf or isinstance(leaf, str) or not aliases else (leaf, aliases[0])
