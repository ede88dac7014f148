"""Finds silent steps that may be taken first, so that other orders need not be explored.

Eager steps form groups: silent transitions with the same inputs. No other transition takes from these places, and one
of the places is empty whenever a trace completes. Where a group is enabled, every way to the end fires a step of the
group at some time (or empties these places), and the way has the same events if this step fires at once. So only the
group needs to be explored: a stubborn set (A. Valmari, Stubborn sets for reduced state space generation, 1989), which
preserves the language and also ways that cannot reach an end.

A step that fires first brings a way nearer to its end, unless the way empties the places of the group instead. Such
groups must lead away from each other: silent steps that can only continue for ever would hide all other transitions.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from workflows.nets.net import Places, Transition, WorkflowNet

_NONE = -1


def eager_groups(net: WorkflowNet) -> NDArray[np.int64]:
    """For each transition, the index of its eager group, smaller groups first; -1 for transitions without a group."""
    consumers: defaultdict[int, list[int]] = defaultdict(list)
    for number, transition in enumerate(net.transitions):
        for place in set(transition.inputs):
            consumers[place].append(number)
    by_inputs: defaultdict[Places, list[int]] = defaultdict(list)
    for number, transition in enumerate(net.transitions):
        by_inputs[transition.inputs].append(number)
    in_finals = frozenset(place for final in net.finals for place in final)
    others = [transition for transition in net.transitions if transition.resets or transition.waits]
    groups = [
        members
        for inputs, members in by_inputs.items()
        if not in_finals.issuperset(inputs)
        and all(consumers[place] == members for place in set(inputs))
        and _is_eager([net.transitions[number] for number in members], others)
    ]
    groups = _without_endless(net, groups, others)
    numbers = np.full(len(net.transitions), _NONE, np.int64)
    for group, members in enumerate(sorted(groups, key=len)):
        numbers[members] = group
    return numbers


def _is_eager(members: list[Transition], others: list[Transition]) -> bool:
    """Whether it makes no difference to the other transitions when these silent steps fire.

    A transition of ``others`` that empties some of the steps' places must empty all of them. A transition that waits
    for an empty output must also wait for an empty input.
    """
    if any(member.label is not None or member.resets or member.waits for member in members):
        return False
    inputs = frozenset(members[0].inputs)
    outputs = frozenset(place for member in members for place in member.outputs)
    around = inputs | outputs
    return all(
        (around.isdisjoint(other.resets) or around.issubset(other.resets))
        and (outputs.isdisjoint(other.waits) or not inputs.isdisjoint(other.waits))
        for other in others
    )


def _without_endless(net: WorkflowNet, groups: list[list[int]], others: list[Transition]) -> list[list[int]]:
    """The groups without those that may be emptied and whose steps lead only to each other, again and again."""
    emptied = frozenset(place for other in others for place in other.resets)
    endless = [members for members in groups if not emptied.isdisjoint(net.transitions[members[0]].inputs)]
    while True:
        places = frozenset(place for members in endless for place in net.transitions[members[0]].inputs)
        stuck = [
            members
            for members in endless
            if not any(places.isdisjoint(net.transitions[number].outputs) for number in members)
        ]
        if len(stuck) == len(endless):
            return [members for members in groups if members not in endless]
        endless = stuck
