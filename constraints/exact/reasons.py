"""The reasons why a workflow, together with hand-written constraints, leaves no place for a remainder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from constraints.exact.outlook import ExactOutlook
from constraints.model import Part
from constraints.reasoning.rule_clash import least_part
from constraints.remainder import NOTHING, Remainder
from nfa import MonitorState


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowClash:
    """A minimal clash: without any one constraint, atom or gap, the rest is possible in the workflow.

    The hand-written constraints that take part are mostly none. The atoms of ``remainder`` have no place, and its gaps
    matter; it has neither if no trace can continue.
    """

    constraints: tuple[Part, ...]
    remainder: Remainder


def find_workflow_clash(
    outlook: ExactOutlook, state: MonitorState, remainder: Remainder = NOTHING
) -> WorkflowClash | None:
    """A minimal reason why ``remainder`` cannot complete after ``state``; None if it can."""
    if outlook.can_complete(state, remainder):
        return None
    known, own_parts = outlook.constraint_set, outlook.constraint_set.own.parts

    def clashes(parts: Sequence[Part], part: Remainder) -> bool:
        gone = frozenset(own_parts).difference(parts)
        kept = known.of_parts(one for one in known.parts if one not in gone)
        some = ExactOutlook(kept, outlook.process, outlook.automaton, outlook.ties)
        rules = [place for rule, place in zip(known.rules, state.places[1:], strict=True) if rule in kept.rules]
        return not some.can_complete(replace(state, places=(state.places[0], *rules)), part)

    gaps = least_part(remainder.gaps, lambda some: clashes(own_parts, replace(remainder, gaps=tuple(some))))
    whole = replace(remainder, gaps=tuple(gaps))
    parts = least_part(own_parts, lambda some: clashes(some, whole))
    atoms = least_part(range(len(whole.atoms)), lambda some: clashes(parts, whole.only(frozenset(some))))
    return WorkflowClash(constraints=tuple(parts), remainder=whole.only(frozenset(atoms)))
