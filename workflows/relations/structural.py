"""Derives constraints of a net from its structure. The result is sound for every net, but not complete.

An event may follow another one only if tokens can move from one step to the other, or if both steps may be concurrent.
A trace may lack an event type only if the other steps can complete a trace, as far as single places show
(``useful_steps``). Inhibitor arcs are ignored, and reset arcs may remove tokens but need not. Both allow more traces,
never fewer.
"""

from __future__ import annotations

import numpy as np

from constraints import bits_of
from workflows.errors import UnsoundWorkflow
from workflows.nets.net import WorkflowNet
from workflows.relations.concurrency import common, concurrency
from workflows.relations.extraction import Extraction, Method
from workflows.relations.table import Relation, RelationTable
from workflows.relations.useful_steps import useful, ways_ahead

WARNING = "found from the structure of the net: all of these constraints hold, others may hold as well"


def extraction_of_structure(net: WorkflowNet) -> Extraction:
    """Return constraints that hold on every complete trace of a net, found from its structure in polynomial time.

    Other constraints may hold, too. Raises ``UnsoundWorkflow`` if the structure shows that no trace completes.
    """
    steps = useful(net, range(len(net.transitions)))
    if steps is None:
        raise UnsoundWorkflow("no trace of the model completes, because no path leads from its start to an end")
    by_label: dict[str, list[int]] = {}
    for step in sorted(steps):
        label = net.transitions[step].label
        if label is not None:
            by_label.setdefault(label, []).append(step)
    events = tuple(sorted(by_label))
    groups = [by_label[name] for name in events]
    follows = _follows(net, sorted(steps), groups)
    lacks, optional = _absences(net, steps, groups)
    table = RelationTable(events=events, follows=follows, lacks=lacks, optional=optional)
    dead = sorted(net.labels.difference(events))
    warnings = [f"{', '.join(dead)}: in no complete trace"] if dead else []
    return table.to_extraction(Method.STRUCTURAL, [WARNING, *warnings])


def _follows(net: WorkflowNet, steps: list[int], groups: list[list[int]]) -> Relation:
    """Return a mask (A, B) of the pairs of types for which the structure allows an A and later a B.

    ``groups`` has the ``steps`` (transitions) of each type.
    """
    beside = _beside(net, steps)
    ahead = ways_ahead(net, steps)
    members = [bits_of(group) for group in groups]
    follows = np.zeros((len(groups), len(groups)), np.bool_)
    for number, group in enumerate(groups):
        reached = 0
        for step in group:
            reached |= ahead[step] | beside[step]
        follows[number] = [bool(reached & other) for other in members]
    return follows


def _beside(net: WorkflowNet, steps: list[int]) -> dict[int, int]:
    """Return for each step (transition) the set of steps that may happen at the same time, as bits.

    The set contains the step itself if two of its firings may be concurrent.
    """
    transitions = [net.transitions[step] for step in steps]
    places = concurrency(len(net.places), net.initial, transitions)
    everything = (1 << len(net.places)) - 1
    inputs = {step: bits_of(net.transitions[step].inputs) for step in steps}
    steps_beside = {}
    for step in steps:
        free = common(places, net.transitions[step].inputs, everything)
        steps_beside[step] = bits_of(other for other in steps if not inputs[other] & ~free)
    return steps_beside


def _absences(net: WorkflowNet, steps: frozenset[int], groups: list[list[int]]) -> tuple[Relation, Relation]:
    """Return two masks: which types a trace with a given type may lack, and which types any trace may lack.

    The first, (A, B), is true if a trace may have an A but no B. The second, (B,), is true if a trace may have no B.
    ``groups`` has the ``steps`` (transitions) of each type.
    """
    lacks = np.zeros((len(groups), len(groups)), np.bool_)
    optional = np.zeros(len(groups), np.bool_)
    for number, group in enumerate(groups):
        remaining_steps = useful(net, steps.difference(group))
        if remaining_steps is not None:
            optional[number] = True
            lacks[:, number] = [not remaining_steps.isdisjoint(other) for other in groups]
    return lacks, optional
