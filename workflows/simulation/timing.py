"""Samples traces of a process tree in time: each activity takes its duration.

An activity can begin when its predecessor in its sequence is done; its event comes when it is done itself. The branches
of a block run concurrently and independently, and the block is done with the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from random import Random
from typing import TypeAlias

from workflows.simulation.sampling import choose, choose_some
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
    iterate_activities,
)

TimedTrace: TypeAlias = list[tuple[int, Activity]]
_Sampled: TypeAlias = tuple[TimedTrace, int]


def has_durations(tree: ProcessTree) -> bool:
    """Whether any activity has a duration."""
    return any(activity.duration is not None for activity in iterate_activities(tree))


def sample_timed(tree: ProcessTree, rng: Random) -> TimedTrace:
    """One trace of the tree, each event with its time in microseconds since the trace began; times never fall.

    An activity without a duration takes no time.
    """
    return _sample(tree, 0, rng)[0]


def _sample(tree: ProcessTree, start_us: int, rng: Random) -> _Sampled:
    """The events of a part that begins at a time, and the time when it is done."""
    match tree:
        case Activity():
            end_us = start_us + (tree.duration.draw_us(rng) if tree.duration is not None else 0)
            return [(end_us, tree)], end_us
        case Silent():
            return [], start_us
        case Sequence(parts):
            return _one_by_one(parts, start_us, rng)
        case ExclusiveChoice(branches, probabilities):
            return _sample(choose(branches, probabilities, rng), start_us, rng)
        case Parallel(branches):
            return _all_at_once(branches, start_us, rng)
        case InclusiveChoice(branches, probabilities):
            return _all_at_once(choose_some(branches, probabilities, rng), start_us, rng)
        case Instances():
            bodies = [tree.body]
            while rng.random() < tree.again:
                bodies.append(tree.body)
            return _all_at_once(bodies, start_us, rng)
        case Loop():
            return _sample_loop(tree, start_us, rng)


def _one_by_one(parts: Iterable[ProcessTree], start_us: int, rng: Random) -> _Sampled:
    trace: TimedTrace = []
    for part in parts:
        events, start_us = _sample(part, start_us, rng)
        trace += events
    return trace, start_us


def _all_at_once(branches: Iterable[ProcessTree], start_us: int, rng: Random) -> _Sampled:
    """Run branches concurrently; events of equal time are in a random order of branches, each in its own order."""
    sampled = [_sample(branch, start_us, rng) for branch in branches]
    rng.shuffle(sampled)
    merged = sorted((event for trace, _ in sampled for event in trace), key=itemgetter(0))
    return merged, max(end_us for _, end_us in sampled)


def _sample_loop(loop: Loop, start_us: int, rng: Random) -> _Sampled:
    trace, end_us = _sample(loop.body, start_us, rng)
    done = 1
    while done < loop.repetitions if loop.repetitions is not None else rng.random() < loop.again:
        events, end_us = _one_by_one((loop.redo, loop.body), end_us, rng)
        trace += events
        done += 1
    return trace, end_us
