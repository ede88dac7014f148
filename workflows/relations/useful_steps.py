"""Finds the steps of a net that can belong to a complete trace, as far as single places show.

In a complete trace, every token that a step takes is an initial token or was added by another step. Every token that a
step adds remains until the end, or another step takes or resets it. So a step is excluded if the other steps cannot
provide its tokens, or cannot remove its outputs. An excluded step is in no complete trace. But a step that is not
excluded may be in none either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence

from constraints import bits_of
from workflows.nets.net import Places, Transition, WorkflowNet


def useful(net: WorkflowNet, allowed: Collection[int]) -> frozenset[int] | None:
    """Return the ``allowed`` steps that can belong to a complete trace of such steps, as far as single places show.

    Return None if there is no such trace. Steps are transitions, given by index.
    """
    steps = frozenset(allowed)
    endings = frozenset(place for final in net.finals for place in final)
    while True:
        fed, marked = _closure(net, steps, lambda step: step.inputs, lambda step: step.outputs, frozenset(net.initial))
        drained, emptied = _closure(
            net, steps, lambda step: step.outputs, lambda step: step.inputs + step.resets, endings
        )
        remaining = fed & drained
        can_end = any(marked.issuperset(final) for final in net.finals)
        if not can_end or not emptied.issuperset(net.initial):
            return None
        if remaining == steps:
            return remaining
        steps = remaining


def _closure(
    net: WorkflowNet,
    steps: frozenset[int],
    needs: Callable[[Transition], Places],
    gives: Callable[[Transition], Places],
    begin: frozenset[int],
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the steps that can happen if places are filled but never emptied, and the places that are filled.

    At first, the places in ``begin`` are filled. A step happens when the places that it ``needs`` are filled. Then it
    fills the places that it ``gives``.
    """
    missing = {step: set(needs(net.transitions[step])) for step in steps}
    waiting_for: dict[int, list[int]] = {}
    for step, places in missing.items():
        for place in places:
            waiting_for.setdefault(place, []).append(step)
    provided_places: set[int] = set()
    closed_steps: set[int] = set()
    new: deque[int] = deque(begin)
    ready = [step for step, places in missing.items() if not places]
    while ready or new:
        for step in ready:
            closed_steps.add(step)
            new.extend(gives(net.transitions[step]))
        ready = []
        while new:
            place = new.popleft()
            if place in provided_places:
                continue
            provided_places.add(place)
            for step in waiting_for.get(place, ()):
                missing[step].discard(place)
                if not missing[step]:
                    ready.append(step)
    return frozenset(closed_steps), frozenset(provided_places)


def ways_ahead(net: WorkflowNet, steps: Sequence[int]) -> dict[int, int]:
    """Return for each step the set of steps that its tokens can reach, directly or through other ``steps``, as bits."""
    readers: dict[int, list[int]] = {}
    for step in steps:
        for place in set(net.transitions[step].inputs):
            readers.setdefault(place, []).append(step)
    steps_ahead: dict[int, int] = {}
    for step in steps:
        reached: set[int] = set()
        waiting = [step]
        while waiting:
            for place in net.transitions[waiting.pop()].outputs:
                for other in readers.get(place, ()):
                    if other not in reached:
                        reached.add(other)
                        waiting.append(other)
        steps_ahead[step] = bits_of(reached)
    return steps_ahead
