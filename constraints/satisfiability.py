"""What is impossible before the first event: patterns, alternatives, event types, whole constraint sets.

A pattern is satisfiable if one of its terms is alive in the empty trace (constraint-aware CEP, section 3.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from constraints.clash import Clash, find_clash
from constraints.cycles import prior_cycles
from constraints.errors import ContradictoryConstraints, UnsatisfiablePattern
from constraints.model import ConstraintSet, Part, quoted
from constraints.reasoner import Reasoner
from constraints.remainder import Remainder, single
from constraints.wording import listed_atoms, listed_parts, listed_types
from nfa import Atom, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadTerm:
    """An alternative of a pattern that no conforming trace completes.

    Attributes:
        term: Its index in ``Query.terms``.
        atoms: A minimal set of its atoms in conflict.
        constraints: A minimal set of constraints that they clash with.
        text: The reason as a sentence without full stop.
    """

    term: int
    atoms: tuple[Atom, ...]
    constraints: tuple[Part, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCheck:
    """Which alternatives of a pattern can never match.

    Attributes:
        dead: In the order of the terms.
        is_satisfiable: Whether some term is left.
    """

    dead: tuple[DeadTerm, ...]
    is_satisfiable: bool

    def require_satisfiable(self) -> None:
        """Refuse a pattern that cannot match.

        Raises:
            UnsatisfiablePattern: No term is left; ``details`` has the atoms and constraints of each.
        """
        if self.is_satisfiable:
            return
        reasons = list(dict.fromkeys(term.text for term in self.dead))
        raise UnsatisfiablePattern(
            "the pattern can never match: " + "; ".join(reasons),
            terms=[
                {
                    "atoms": [atom.alias for atom in term.atoms],
                    "constraints": [str(part) for part in term.constraints],
                    "reason": term.text,
                }
                for term in self.dead
            ],
        )


def check_query(query: Query, constraint_set: ConstraintSet) -> QueryCheck:
    """Find the terms that no conforming trace completes, each with a minimal reason; one without atoms is none."""
    dead = []
    for index, term in enumerate(query.terms):
        clash = find_clash(constraint_set, remainder=Remainder(term.atoms, term.before)) if term.atoms else None
        if clash is not None:
            dead.append(
                DeadTerm(
                    term=index,
                    atoms=clash.remainder.atoms,
                    constraints=clash.constraints,
                    text=_sentence(clash),
                )
            )
    return QueryCheck(dead=tuple(dead), is_satisfiable=len(dead) < len(query.terms))


def _sentence(clash: Clash) -> str:
    atoms, parts = clash.remainder.atoms, listed_parts(clash.constraints)
    verb = "clash" if len(atoms) > 1 else "clashes"
    if clash.verdict.reason == "order":
        return f"no trace has {listed_atoms(atoms)} in the order that the pattern asks for, which {verb} with {parts}"
    return f"{listed_atoms(atoms)} {verb} with {parts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWarning:
    """Something in a constraint set that is legal, and probably not meant.

    Attributes:
        kind: ``impossible-type``: it can never occur; ``prior-cycle``: the types cannot all occur in one trace.
        types: The type, or the types in the order of the cycle.
        constraints: The minimal reason.
        text: A sentence without full stop.
    """

    kind: Literal["impossible-type", "prior-cycle"]
    types: tuple[str, ...]
    constraints: tuple[Part, ...]
    text: str


def check_set(constraint_set: ConstraintSet) -> tuple[SetWarning, ...]:
    """Look for contradictions in a constraint set, whatever the patterns.

    Returns:
        Types that can never occur, sorted, then cycles of order constraints through types that nothing else keeps
        apart.

    Raises:
        ContradictoryConstraints: No trace conforms at all; ``details`` has a minimal clash.
    """
    clash = find_clash(constraint_set)
    if clash is not None:
        parts = clash.constraints
        raise ContradictoryConstraints(
            f"no trace can keep {listed_parts(parts)} together; leave out any one of them",
            constraints=[str(part) for part in parts],
        )
    return (*_impossible_types(constraint_set), *_cycles(constraint_set))


def _impossible_types(constraint_set: ConstraintSet) -> list[SetWarning]:
    found = []
    reasoner = Reasoner(constraint_set)
    for name in sorted(constraint_set.types):
        is_possible = reasoner.is_alive(reasoner.mask(()), reasoner.goal(single(name)))
        clash = None if is_possible else find_clash(constraint_set, remainder=single(name))
        if clash is not None:
            found.append(
                SetWarning(
                    kind="impossible-type",
                    types=(name,),
                    constraints=clash.constraints,
                    text=f"{quoted(name)} can never occur, because of {listed_parts(clash.constraints)}",
                )
            )
    return found


def _cycles(constraint_set: ConstraintSet) -> list[SetWarning]:
    return [
        SetWarning(
            kind="prior-cycle",
            types=cycle.types,
            constraints=cycle.constraints,
            text=f"{listed_types(cycle.types)} cannot all occur in one trace, "
            f"because of the cycle {listed_parts(cycle.constraints)}",
        )
        for cycle in prior_cycles(constraint_set)
    ]
