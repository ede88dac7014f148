"""Finds silent steps that may be taken first, so that other orders of steps need not be explored.

An eager group is a set of silent transitions with the same inputs. No other transition takes from these places, and
whenever a trace is complete, one of the places is empty. So once a group is enabled, every continuation to an end fires
one of its steps at some time, or empties the places. If the step fires at once instead, the events are the same. So
only the group needs to be explored. It is a stubborn set (A. Valmari, Stubborn sets for reduced state space generation,
1989), which preserves the language and the existence of paths that cannot reach an end.

A step that fires first brings a trace nearer to its end, unless another step empties the places of the group instead.
In this case a cycle of silent steps could continue forever and hide all other transitions. So groups that form such a
cycle are excluded.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from workflows.nets.net import Places, Transition, WorkflowNet

_NONE = -1


def eager_groups(net: WorkflowNet) -> NDArray[np.int64]:
    """Return for each transition the index of its eager group, or -1. Smaller groups have lower indices.

    An eager group is a set of silent transitions that may fire first, so that other orders need not be explored.
    """
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
    """Check whether the silent steps ``members`` may fire at once without a change to what the ``others`` can do.

    If one of the ``others`` empties some places of the steps, it must empty all of them. If it waits until an output of
    the steps is empty, it must also wait until one of their inputs is empty.
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
    """Return the eager groups that cannot fire forever.

    A group can fire forever if ``others`` can empty its inputs, and if each of its steps leads to such a group.
    """
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
