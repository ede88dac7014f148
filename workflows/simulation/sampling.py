"""Samples traces of a process tree, without time.

A parallel block picks uniformly among its unfinished branches at each step.
"""

from __future__ import annotations

from random import Random

from workflows.tree import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
)


def sample_trace(tree: ProcessTree, rng: Random) -> list[Activity]:
    """One trace of the tree."""
    match tree:
        case Activity():
            return [tree]
        case Silent():
            return []
        case Sequence(parts):
            return [activity for part in parts for activity in sample_trace(part, rng)]
        case ExclusiveChoice(branches, probabilities):
            return sample_trace(choose(branches, probabilities, rng), rng)
        case Parallel(branches):
            return _merge([sample_trace(branch, rng) for branch in branches], rng)
        case InclusiveChoice(branches, probabilities):
            return _merge([sample_trace(branch, rng) for branch in choose_some(branches, probabilities, rng)], rng)
        case Instances():
            instances = [sample_trace(tree.body, rng)]
            while rng.random() < tree.again:
                instances.append(sample_trace(tree.body, rng))
            return _merge(instances, rng)
        case Loop():
            return _sample_loop(tree, rng)


def choose(branches: tuple[ProcessTree, ...], probabilities: tuple[float, ...], rng: Random) -> ProcessTree:
    """One branch, by its probability; never one of probability 0, not even by rounding."""
    point = rng.random()
    if not probabilities:
        return branches[int(point * len(branches))]
    for branch, probability in zip(branches, probabilities, strict=True):
        if point < probability:
            return branch
        point -= probability
    return next(branch for branch, share in zip(branches[::-1], probabilities[::-1], strict=True) if share > 0.0)


def choose_some(branches: tuple[ProcessTree, ...], probabilities: tuple[float, ...], rng: Random) -> list[ProcessTree]:
    """At least one branch, each by its probability."""
    shares = probabilities or (0.5,) * len(branches)
    chosen: list[ProcessTree] = []
    while not chosen:
        chosen = [branch for branch, share in zip(branches, shares, strict=True) if rng.random() < share]
    return chosen


def _merge(traces: list[list[Activity]], rng: Random) -> list[Activity]:
    unfinished = [trace[::-1] for trace in traces if trace]
    merged: list[Activity] = []
    while unfinished:
        place = int(rng.random() * len(unfinished))
        merged.append(unfinished[place].pop())
        if not unfinished[place]:
            del unfinished[place]
    return merged


def _sample_loop(loop: Loop, rng: Random) -> list[Activity]:
    trace = sample_trace(loop.body, rng)
    done = 1
    while done < loop.repetitions if loop.repetitions is not None else rng.random() < loop.again:
        trace += sample_trace(loop.redo, rng)
        trace += sample_trace(loop.body, rng)
        done += 1
    return trace
