"""Samples traces of a process tree, with or without time.

An activity begins when its predecessor in the sequence is done. Its event occurs when the activity is done. The
branches of a block run concurrently and independently, and the block is done when its last branch is done. Without
time, each step of a block is taken by a uniformly chosen unfinished branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from random import Random
from typing import TypeAlias

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
    """Return whether any activity has a duration."""
    return any(activity.duration is not None for activity in iterate_activities(tree))


def sample_trace(tree: ProcessTree, rng: Random) -> list[Activity]:
    """Return a random trace of a tree, without time."""
    return [activity for _, activity in _Sampling(rng=rng, is_timed=False).sample(tree, 0)[0]]


def sample_timed(tree: ProcessTree, rng: Random) -> TimedTrace:
    """Return a random trace of a tree, each event with its time in microseconds since the beginning of the trace.

    Times never decrease. An activity without a duration takes no time.
    """
    return _Sampling(rng=rng, is_timed=True).sample(tree, 0)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sampling:
    rng: Random
    is_timed: bool

    def sample(self, tree: ProcessTree, start_us: int) -> _Sampled:
        """Return the events of a part of the tree that begins at ``start_us``, and the time when the part is done."""
        match tree:
            case Activity(duration=duration):
                end_us = start_us + (duration.draw_us(self.rng) if self.is_timed and duration is not None else 0)
                return [(end_us, tree)], end_us
            case Silent():
                return [], start_us
            case Sequence(parts):
                return self._in_turn(parts, start_us)
            case ExclusiveChoice(branches, probabilities):
                return self.sample(self._chosen(branches, probabilities), start_us)
            case Parallel(branches):
                return self._at_once(branches, start_us)
            case InclusiveChoice(branches, probabilities):
                return self._at_once(self._some(branches, probabilities or (0.5,) * len(branches)), start_us)
            case Instances():
                return self._at_once(self._again((tree.body,), None, tree.again), start_us)
            case Loop():
                return self._in_turn(self._again((tree.redo, tree.body), tree.repetitions, tree.again), start_us)

    def _again(self, parts: tuple[ProcessTree, ...], rounds: int | None, share: float) -> Iterator[ProcessTree]:
        """Yield the parts of a loop in the order of execution: the last part, then all parts for each further round.

        ``rounds`` is the number of rounds. If it is None, each further round has probability ``share``.
        """
        yield parts[-1]
        done = 1
        while done < rounds if rounds is not None else self.rng.random() < share:
            yield from parts
            done += 1

    def _chosen(self, branches: tuple[ProcessTree, ...], probabilities: tuple[float, ...]) -> ProcessTree:
        """Return a random branch. A branch of probability 0 is never drawn, not even by a rounding error."""
        point = self.rng.random()
        if not probabilities:
            return branches[int(point * len(branches))]
        for branch, probability in zip(branches, probabilities, strict=True):
            if point < probability:
                return branch
            point -= probability
        return next(branch for branch, share in zip(branches[::-1], probabilities[::-1], strict=True) if share > 0.0)

    def _some(self, branches: tuple[ProcessTree, ...], shares: tuple[float, ...]) -> list[ProcessTree]:
        selection: list[ProcessTree] = []
        while not selection:
            selection = [branch for branch, share in zip(branches, shares, strict=True) if self.rng.random() < share]
        return selection

    def _in_turn(self, parts: Iterable[ProcessTree], start_us: int) -> _Sampled:
        trace: TimedTrace = []
        for part in parts:
            events, start_us = self.sample(part, start_us)
            trace += events
        return trace, start_us

    def _at_once(self, branches: Iterable[ProcessTree], start_us: int) -> _Sampled:
        """Return the events of branches that begin at the same time.

        Events with equal times are in a random branch order.
        """
        sampled = [self.sample(branch, start_us) for branch in branches]
        if not self.is_timed:
            return self._merged([trace[::-1] for trace, _ in sampled if trace]), start_us
        self.rng.shuffle(sampled)
        merged = sorted((event for trace, _ in sampled for event in trace), key=itemgetter(0))
        return merged, max(end_us for _, end_us in sampled)

    def _merged(self, unfinished: list[TimedTrace]) -> TimedTrace:
        """Interleave traces at random. Each trace is given in reverse order, and is emptied."""
        merged: TimedTrace = []
        while unfinished:
            place = int(self.rng.random() * len(unfinished))
            merged.append(unfinished[place].pop())
            if not unfinished[place]:
                del unfinished[place]
        return merged
