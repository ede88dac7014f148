"""Samples traces of a process tree, with or without time.

An activity begins when its predecessor in the sequence is done; its event comes when the activity is done. The branches
of a block run concurrently and independently, and the block is done with its last branch. Without time, a block picks
uniformly among its unfinished branches at each step.
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
    """Whether any activity has a duration."""
    return any(activity.duration is not None for activity in iterate_activities(tree))


def sample_trace(tree: ProcessTree, rng: Random) -> list[Activity]:
    """One trace of the tree, without time."""
    return [activity for _, activity in _Sampling(rng=rng, is_timed=False).sample(tree, 0)[0]]


def sample_timed(tree: ProcessTree, rng: Random) -> TimedTrace:
    """One trace of the tree, each event with its time in microseconds since the trace began; times never fall.

    An activity without a duration takes no time.
    """
    return _Sampling(rng=rng, is_timed=True).sample(tree, 0)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sampling:
    rng: Random
    is_timed: bool

    def sample(self, tree: ProcessTree, start_us: int) -> _Sampled:
        """The events of a part that begins at a time, and the time when it is done."""
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
        """The parts in the order of their execution: the last one, then in each further round all parts.

        ``rounds`` is the number of rounds; None: random, each further round with probability ``share``.
        """
        yield parts[-1]
        done = 1
        while done < rounds if rounds is not None else self.rng.random() < share:
            yield from parts
            done += 1

    def _chosen(self, branches: tuple[ProcessTree, ...], probabilities: tuple[float, ...]) -> ProcessTree:
        """A branch drawn by its probability; never a branch of probability 0, not even by rounding."""
        point = self.rng.random()
        if not probabilities:
            return branches[int(point * len(branches))]
        for branch, probability in zip(branches, probabilities, strict=True):
            if point < probability:
                return branch
            point -= probability
        return next(branch for branch, share in zip(branches[::-1], probabilities[::-1], strict=True) if share > 0.0)

    def _some(self, branches: tuple[ProcessTree, ...], shares: tuple[float, ...]) -> list[ProcessTree]:
        """At least one branch, each by its probability."""
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
        """Run branches concurrently; events of equal time are in a random order of branches, each in its own order."""
        sampled = [self.sample(branch, start_us) for branch in branches]
        if not self.is_timed:
            return self._merged([trace[::-1] for trace, _ in sampled if trace]), start_us
        self.rng.shuffle(sampled)
        merged = sorted((event for trace, _ in sampled for event in trace), key=itemgetter(0))
        return merged, max(end_us for _, end_us in sampled)

    def _merged(self, unfinished: list[TimedTrace]) -> TimedTrace:
        """A random interleaving of traces, each of which is given in reverse order."""
        merged: TimedTrace = []
        while unfinished:
            place = int(self.rng.random() * len(unfinished))
            merged.append(unfinished[place].pop())
            if not unfinished[place]:
                del unfinished[place]
        return merged
