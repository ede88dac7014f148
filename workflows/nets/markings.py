"""Explores the reachable markings of a net, once for all analyses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from constraints import Adjacency, Flags, Numbers
from workflows.errors import AutomatonTooLarge, UnsoundWorkflow
from workflows.limits import CompileLimits
from workflows.nets.eager import eager_groups
from workflows.nets.marking_index import MarkingIndex
from workflows.nets.net import WorkflowNet
from workflows.nets.packing import FIELD_BITS, PackedTransitions, Packing, Words, heaviest

Progress: TypeAlias = Callable[[int], None]

_CELLS = 1 << 21  # limit of pairs of a marking and a transition that are processed at once
_REPORT_EVERY = 20_000
_ROOT = -1


# Without slots, because cached properties need a dictionary.
@dataclass(frozen=True, kw_only=True, eq=False)
class Markings:
    """Reachable markings of a net, enough to decide its language and its soundness.

    Silent steps of ``eager_groups`` are taken first, and other orders of steps are not explored. So some reachable
    markings may be missing, but the complete traces are the same. If some path cannot reach an end, the explored
    markings contain such a path.

    Attributes:
        rows: (markings, words), in breadth-first order; the initial marking has number 0.
        offsets: (markings + 1,), index of the first step from each marking.
        transitions: int32, the transition of each step.
        targets: int32, the marking after each step.
        found_by: int64, the step by which each marking was first reached; -1 for the initial marking.
    """

    net: WorkflowNet
    packing: Packing
    rows: Words
    offsets: Numbers
    transitions: NDArray[np.int32]
    targets: NDArray[np.int32]
    found_by: Numbers
    is_final: Flags

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def sources(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.offsets))

    @cached_property
    def completes(self) -> Flags:
        """Mask of the markings from which a final marking can be reached."""
        back = Adjacency.of(self.targets, self.sources, len(self))
        return back.reached(np.flatnonzero(self.is_final))

    def tokens(self, marking: int) -> dict[int, int]:
        return self.packing.tokens(self.rows[marking])

    def has_two(self, place: int) -> bool:
        """Check whether a place has more than one token in some marking."""
        more = self.packing.fields([(place, self.packing.most & ~1)])
        return bool((self.rows & more).any())

    def way_to(self, marking: int) -> list[int]:
        """Return the transitions of a path from the initial marking to ``marking``, by which it was found first."""
        way: list[int] = []
        while (step := int(self.found_by[marking])) != _ROOT:
            way.append(int(self.transitions[step]))
            marking = int(np.searchsorted(self.offsets, step, side="right")) - 1
        return way[::-1]


def explore(net: WorkflowNet, limits: CompileLimits, progress: Progress | None = None) -> Markings:
    """Explore the markings of a net. ``progress`` is called from time to time with the number of markings so far.

    Raises ``UnsoundWorkflow`` if a place is unbounded or has more than 127 tokens; the message names the place. Raises
    ``AutomatonTooLarge`` beyond the limit of markings.
    """
    heaviest_arc = max(heaviest(places) for places in _all_places(net))
    for bits in FIELD_BITS:
        packing = Packing(len(net.places), bits)
        if heaviest_arc > packing.most and bits < FIELD_BITS[-1]:
            continue
        markings = _Search(net, packing, limits.max_markings, progress).run()
        if markings is not None:
            return markings
    raise AssertionError("the widest fields end in an answer or an error")


def _all_places(net: WorkflowNet) -> list[tuple[int, ...]]:
    arcs = [places for transition in net.transitions for places in (transition.inputs, transition.outputs)]
    return [net.initial, *net.finals, *arcs, ()]


class _Search:
    """A breadth-first search over the markings of a net. Markings are packed with fields of one width per place."""

    def __init__(self, net: WorkflowNet, packing: Packing, max_markings: int, progress: Progress | None) -> None:
        self._net, self._packing = net, packing
        self._max_markings, self._progress = max_markings, progress
        self._reported = 0
        self._packed = PackedTransitions.of(net, packing)
        self._groups = eager_groups(net)
        eager = np.flatnonzero(self._groups >= 0)
        self._eager = eager[np.argsort(self._groups[eager], kind="stable")]
        self._index = MarkingIndex(packing.words)
        self._found_by: list[Numbers] = [np.array([_ROOT])]
        self._counts: list[Numbers] = []
        self._steps: list[NDArray[np.int32]] = []
        self._targets: list[NDArray[np.int32]] = []
        self._step_count = 0
        self._growth = _Growth(net)

    def run(self) -> Markings | None:
        """Explore all markings that are reachable from the initial marking.

        Return None if a place gets more tokens than its bits in a packed marking can count.
        """
        self._index.add(self._packing.pack(self._net.initial)[None, :])
        size = max(1, _CELLS // max(1, len(self._net.transitions)))
        done = level_end = 0
        while done < len(self._index):
            if done == level_end:
                level_end = len(self._index)
            until = min(done + size, level_end)
            if not self._expand(done, until):
                return None
            done = until
        self._report(len(self._index), is_last=True)
        return self._result()

    def _expand(self, begin: int, end: int) -> bool:
        """Fire all enabled transitions in the markings from ``begin`` to ``end``.

        Return whether the tokens fit the fields.
        """
        markings = self._index.rows[begin:end]
        enabled = self._packed.enabled(markings)
        grown = self._growth.grown(begin, self._keep_eager(enabled))
        if grown is not None:
            self._check_growth(grown)
        place, transitions = np.nonzero(enabled)
        after = self._packed.fire(markings[place], transitions)
        excess = after & self._packed.guards
        if excess.any():
            if self._packing.bits < FIELD_BITS[-1]:
                return False
            raise _unbounded(self._net, self._packing.tokens(excess[excess.any(axis=1)][0]))
        before = len(self._index)
        targets = self._index.add(after)
        self._record(np.bincount(place, minlength=end - begin), transitions.astype(np.int32), targets, before)
        self._growth.note(begin + place, transitions, targets)
        if len(self._index) > self._max_markings:
            self._refuse()
        self._report(len(self._index))
        return True

    def _refuse(self) -> NoReturn:
        """Raise the error for too many markings.

        It is ``UnsoundWorkflow`` if the largest marking proves that the net is unbounded, else ``AutomatonTooLarge``.
        """
        largest = self._growth.largest(len(self._index))
        if largest is not None:
            self._check_growth(largest)
        raise AutomatonTooLarge(
            f"the net has more than {self._max_markings} markings, the most that are explored",
            max_markings=self._max_markings,
        )

    def _keep_eager(self, enabled: Flags) -> Flags:
        """In each marking that enables an eager group, disable all transitions outside one such group.

        Returns the mask of these markings.
        """
        if not len(self._eager):
            return np.zeros(len(enabled), np.bool_)
        candidates = enabled[:, self._eager]
        rows = np.flatnonzero(candidates.any(axis=1))
        chosen = self._groups[self._eager[candidates[rows].argmax(axis=1)]]
        enabled[rows] &= self._groups[None, :] == chosen[:, None]
        has_eager = np.zeros(len(enabled), np.bool_)
        has_eager[rows] = True
        return has_eager

    def _record(self, counts: Numbers, transitions: NDArray[np.int32], targets: NDArray[np.int32], before: int) -> None:
        new = np.flatnonzero(targets >= before)
        numbers, first = np.unique(targets[new], return_index=True)
        assert len(numbers) == len(self._index) - before
        self._found_by.append(new[first] + self._step_count)
        self._counts.append(counts)
        self._steps.append(transitions)
        self._targets.append(targets)
        self._step_count += len(transitions)

    def _check_growth(self, marking: int) -> None:
        """Raise ``UnsoundWorkflow`` if the path to a marking can repeat forever and add tokens.

        This is so if some earlier marking on the path has, on each place, at most as many tokens as the marking.
        """
        found_by, offsets = np.concatenate(self._found_by), self._offsets()
        tokens = self._packing.tokens(self._index.rows[marking])
        step = int(found_by[marking])
        while step != _ROOT:
            ancestor = int(np.searchsorted(offsets, step, side="right")) - 1
            earlier = self._packing.tokens(self._index.rows[ancestor])
            if all(tokens.get(place, 0) >= count for place, count in earlier.items()):
                raise _unbounded(self._net, {p: c for p, c in tokens.items() if c > earlier.get(p, 0)})
            step = int(found_by[ancestor])

    def _offsets(self) -> Numbers:
        return np.concatenate([[0], np.cumsum(np.concatenate(self._counts))]).astype(np.int64)

    def _report(self, markings: int, *, is_last: bool = False) -> None:
        if self._progress is not None and (is_last or markings >= self._reported + _REPORT_EVERY):
            self._progress(markings)
            self._reported = markings

    def _result(self) -> Markings:
        rows = self._index.rows.copy()
        is_final = np.zeros(len(rows), np.bool_)
        for final in self._net.finals:
            if heaviest(final) <= self._packing.most:
                is_final |= (rows == self._packing.pack(final)).all(axis=1)
        return Markings(
            net=self._net,
            packing=self._packing,
            rows=rows,
            offsets=self._offsets(),
            transitions=np.concatenate(self._steps),
            targets=np.concatenate(self._targets),
            found_by=np.concatenate(self._found_by),
            is_final=is_final,
        )


class _Growth:
    """Tracks the number of tokens in each marking. A new maximum may show that the net is unbounded.

    In a net with resets or waits, no marking shows this. There, only the field width bounds the tokens.
    """

    def __init__(self, net: WorkflowNet) -> None:
        self._is_monotone = not any(transition.resets or transition.waits for transition in net.transitions)
        gains = [len(transition.outputs) - len(transition.inputs) for transition in net.transitions]
        self._gains = np.array(gains, np.int64)
        self._totals = np.full(1 << 10, len(net.initial), np.int64)
        self._record = len(net.initial)

    def note(self, sources: Numbers, transitions: Numbers, targets: NDArray[np.int32]) -> None:
        if not self._is_monotone or not len(targets):
            return
        needed = int(targets.max()) + 1
        if needed > len(self._totals):
            self._totals = np.concatenate([self._totals, np.zeros(max(needed, len(self._totals)), np.int64)])
        self._totals[targets] = self._totals[sources] + self._gains[transitions]

    def largest(self, count: int) -> int | None:
        return int(self._totals[:count].argmax()) if self._is_monotone else None

    def grown(self, begin: int, is_passing: Flags) -> int | None:
        """Return the marking from ``begin`` on that has more tokens than all markings before, or None if none has.

        Of several, it is the one with the most tokens. Markings in the mask ``is_passing`` are ignored, because eager
        steps leave them at once.
        """
        if not self._is_monotone or is_passing.all():
            return None
        totals = np.where(is_passing, -1, self._totals[begin : begin + len(is_passing)])
        most = int(totals.argmax())
        if totals[most] <= self._record:
            return None
        self._record = int(totals[most])
        return begin + most


def _unbounded(net: WorkflowNet, tokens: dict[int, int]) -> UnsoundWorkflow:
    names = [net.places[place] for place in sorted(tokens)]
    return UnsoundWorkflow(
        f"tokens gather without bound: {' and '.join(names)} can hold any number; "
        "a part that is left more often than it is joined again makes such places",
        places=list(names),
    )
