"""Finds patterns, alternatives, event types and constraint sets that are impossible before the first event.

A pattern is satisfiable if one of its terms is alive in the empty trace (constraint-aware CEP, section 3.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from constraints.errors import ContradictoryConstraints, UnsatisfiablePattern
from constraints.exact.outlook import ExactOutlook, find_workflow_clash
from constraints.model import ConstraintSet, Part, Prior, quoted
from constraints.reasoning.clash import Clash, find_clash
from constraints.reasoning.cycles import prior_cycles
from constraints.reasoning.outlook import Outlook
from constraints.reasoning.reasoner import Reasoner
from constraints.reasoning.rule_clash import find_rule_clash
from constraints.remainder import NOTHING, Remainder, remainder_of, single
from constraints.wording import listed, listed_atoms, listed_parts, listed_types
from nfa import Atom, PatternState, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadTerm:
    """An alternative of a pattern that no conforming trace completes, with a minimal set of constraints as the reason.

    Attributes:
        atoms: A minimal set of the term's atoms that clash with the constraints.
        forbidden: Types of NOTs that take part in the clash; empty if the atoms alone are impossible.
    """

    term: int
    atoms: tuple[Atom, ...]
    constraints: tuple[Part, ...]
    forbidden: tuple[str, ...] = ()
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCheck:
    """The result of checking a pattern. ``dead`` lists the terms that can never match, in order.

    ``asks_for_violation`` is true if all terms are dead, but some would be alive without their NOTs. Such a pattern
    describes a violation of the constraints.
    """

    dead: tuple[DeadTerm, ...]
    is_satisfiable: bool
    asks_for_violation: bool = False

    def require_satisfiable(self) -> None:
        """Reject a pattern that cannot match.

        Raises:
            UnsatisfiablePattern: No term can match; ``details`` has the atoms and constraints of each term.
        """
        if self.is_satisfiable:
            return
        message = "the pattern can never match: " + "; ".join(dict.fromkeys(term.text for term in self.dead))
        if self.asks_for_violation:
            message += (
                "; it describes a violation of the constraints; to find violations, register it with constraints: off"
            )
        raise UnsatisfiablePattern(
            message,
            terms=[
                {
                    "atoms": [atom.alias for atom in term.atoms],
                    "constraints": [str(part) for part in term.constraints],
                    "reason": term.text,
                }
                for term in self.dead
            ],
            **({"is_violation": True} if self.asks_for_violation else {}),
        )


def check_query(query: Query, constraint_set: ConstraintSet) -> QueryCheck:
    """Find the terms that no conforming trace completes, each with a minimal reason."""
    search = _Search(Outlook(constraint_set), ExactOutlook.of(constraint_set))
    reasons = {
        index: reason
        for index in range(len(query.terms))
        if (reason := search.reason(remainder_of(query, PatternState(index, frozenset())))) is not None
    }
    terms = range(len(query.terms))
    is_satisfiable = query.can_complete([index not in reasons for index in terms])
    would_be = query.can_complete([index not in reasons or bool(reasons[index].remainder.forbidden) for index in terms])
    return QueryCheck(
        dead=tuple(
            DeadTerm(
                term=index,
                atoms=reason.remainder.atoms,
                constraints=reason.constraints,
                forbidden=reason.remainder.forbidden,
                text=_sentence(reason),
            )
            for index, reason in reasons.items()
        ),
        is_satisfiable=is_satisfiable,
        asks_for_violation=would_be and not is_satisfiable,
    )


class _Search:
    """Searches for the reasons (clashes) why remainders of a pattern cannot complete.

    The constraints (``outlook``) are tried first, then the workflow (``exact``). A clash without gaps is reused for
    each remainder that contains the clashing atoms in the same order.
    """

    def __init__(self, outlook: Outlook, exact: ExactOutlook | None = None) -> None:
        self._outlook = outlook
        self._exact = exact
        self._known: list[Clash] = []

    @property
    def reasoner(self) -> Reasoner:
        return self._outlook.reasoner

    @property
    def is_certain(self) -> bool:
        """Whether every remainder without a clash can really complete.

        False if there are rules or a search was given up.
        """
        return not self._outlook.constraint_set.rules and (self._exact is None or not self._exact.given_up)

    def reason(self, remainder: Remainder) -> Clash | None:
        outlook, exact = self._outlook, self._exact
        is_possible = outlook.can_complete(outlook.start, remainder)
        if is_possible and (exact is None or exact.can_complete(exact.start, remainder)):
            return None
        known_clash = next((earlier for earlier in self._known if self._explains(earlier, remainder)), None)
        if known_clash is not None:
            return known_clash
        if is_possible and exact is not None:
            clash = find_workflow_clash(exact, exact.start, remainder)
        else:
            clash = self._by_constraints(remainder)
        if clash is not None:
            self._known.append(clash)
        return clash

    def _explains(self, clash: Clash, remainder: Remainder) -> bool:
        return not clash.remainder.gaps and remainder.positives.restricted_to(clash.remainder.atoms) == clash.remainder

    def _by_constraints(self, remainder: Remainder) -> Clash | None:
        outlook = self._outlook
        clash = find_clash(outlook.constraint_set, remainder=remainder, reasoner=outlook.reasoner)
        if clash is not None:
            return clash
        needs_gaps = outlook.can_complete(outlook.start, remainder.positives)
        return find_rule_clash(outlook, outlook.start, remainder if needs_gaps else remainder.positives)


def _sentence(reason: Clash) -> str:
    atoms, parts = reason.remainder.atoms, listed_parts(reason.constraints)
    verb = "clash" if len(atoms) > 1 else "clashes"
    if reason.workflow is not None:
        return _by_workflow(reason)
    if reason.reason is None:
        leave = "leaves" if len(reason.constraints) == 1 else "leave"
        return f"{parts} {leave} no place for {listed_atoms(atoms)}"
    if reason.remainder.forbidden:
        missing = f"without {listed_types(reason.remainder.forbidden)} where the pattern forbids it"
        return f"no trace has {listed_atoms(atoms)} {missing}, which clashes with {parts}"
    if reason.reason == "order":
        return f"no trace has {listed_atoms(atoms)} in the order that the pattern requires, which {verb} with {parts}"
    return f"{listed_atoms(atoms)} {verb} with {parts}"


def _by_workflow(reason: Clash) -> str:
    atoms, forbidden = reason.remainder.atoms, reason.remainder.forbidden
    keeping = f" that keeps {listed_parts(reason.constraints)}" if reason.constraints else ""
    atoms_text = f"{listed_atoms(atoms)}{' as the pattern requires' if len(atoms) > 1 else ''}" if atoms else "a match"
    without = f" without {listed_types(forbidden)} where the pattern forbids it" if forbidden else ""
    return f"no trace of the workflow {reason.workflow}{keeping} has {atoms_text}{without}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWarning:
    """A property of a constraint set that is legal but probably not intended, with a minimal reason.

    If ``kind`` is ``impossible-type``, the type can never occur. If it is ``prior-cycle``, the types cannot all occur
    in one trace, and they are listed in the order of the cycle.
    """

    kind: Literal["impossible-type", "prior-cycle"]
    types: tuple[str, ...]
    constraints: tuple[Part, ...]
    text: str


def check_set(constraint_set: ConstraintSet) -> tuple[SetWarning, ...]:
    """Search a constraint set for contradictions, independently of patterns.

    Returns:
        Warnings about types that can never occur, sorted. Then warnings about cycles of order constraints. A cycle is
            left out if another constraint already excludes two of its types from one trace.

    Raises:
        ContradictoryConstraints: No trace conforms at all; ``details`` has a minimal clash.
    """
    exact = ExactOutlook.of(constraint_set)
    contradiction = _Search(Outlook(constraint_set) if exact is None else exact.own, exact).reason(NOTHING)
    if contradiction is not None:
        parts = contradiction.constraints
        advice = "; leave out any one of them" if len(parts) > 1 else ""
        together = " together" if len(parts) > 1 else ""
        trace = "no trace" if contradiction.workflow is None else f"no trace of the workflow {contradiction.workflow}"
        raise ContradictoryConstraints(
            f"{trace} can keep {listed_parts(parts)}{together}{advice}",
            constraints=[str(part) for part in parts],
        )
    search = _Search(Outlook(constraint_set), exact)
    return (*_impossible_types(constraint_set, search), *_cycles(constraint_set))


def _impossible_types(constraint_set: ConstraintSet, search: _Search) -> list[SetWarning]:
    warnings = []
    reasoner, possible = search.reasoner, 0
    closures = {name: reasoner.closure(reasoner.mask((name,))) for name in constraint_set.names}
    for name in sorted(closures, key=lambda candidate: (-closures[candidate].bit_count(), candidate)):
        if reasoner.mask((name,)) & possible:
            continue
        reason = search.reason(single(name, constraint_set.symbols))
        if reason is not None:
            warnings.append(_impossible_type(name, reason))
        elif search.is_certain:  # a trace with the type also has all names that the type requires
            possible |= closures[name]
    return sorted(warnings, key=lambda warning: warning.types)


def _impossible_type(name: str, reason: Clash) -> SetWarning:
    causes = [listed_parts(reason.constraints)] if reason.constraints else []
    causes += [] if reason.workflow is None else [f"the workflow {reason.workflow}"]
    return SetWarning(
        kind="impossible-type",
        types=(name,),
        constraints=reason.constraints,
        text=f"{quoted(name)} can never occur, because of {listed(causes)}",
    )


def _cycles(constraint_set: ConstraintSet) -> list[SetWarning]:
    hand_written = constraint_set.own.constraints
    if not any(isinstance(part, Prior) for part in hand_written):
        return []
    return [
        SetWarning(
            kind="prior-cycle",
            types=cycle.types,
            constraints=cycle.constraints,
            text=f"{listed_types(cycle.types)} cannot all occur in one trace, "
            f"because of the cycle {listed_parts(cycle.constraints)}",
        )
        for cycle in prior_cycles(constraint_set)
        if not frozenset(hand_written).isdisjoint(cycle.constraints)
    ]
