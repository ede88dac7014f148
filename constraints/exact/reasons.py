"""The reasons why a workflow, together with hand-written constraints, leaves no place for a remainder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from constraints.exact.outlook import ExactOutlook
from constraints.model import Part
from constraints.reasoning.rule_clash import LeastClash, least_clash
from constraints.remainder import NOTHING, Remainder
from nfa import MonitorState


def find_workflow_clash(
    outlook: ExactOutlook, state: MonitorState, remainder: Remainder = NOTHING
) -> LeastClash | None:
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

    return least_clash(own_parts, remainder, clashes)
