"""Computes which event types occur together: for each small set of types, the subsets that occur in some trace.

A *group* is a set of 1 to 3 event types. Its *family* contains a subset if some trace has exactly this subset of the
group. For example, if every trace has A, and only some traces have B, the family of {A, B} consists of {A} and {A, B}.
A subset is a number with bit ``i`` for the member ``i``. A family is a number with bit ``s`` for the subset ``s``.

The families of a block follow from the families of its parts. Sequential or parallel parts: each union of one subset
per part. Alternatives: the subsets of all parts. Repetition: the closure under union. The families of all groups are
computed at once, by tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from workflows.relations.outline import Block, Outline
from workflows.tree import Activity, ExclusiveChoice, InclusiveChoice, Instances, Loop, Parallel, Sequence, Silent

NOTHING_SHOWN = 1  # the family with the empty subset only

Numbers = NDArray[np.intp]
Families = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _BlockFamilies:
    """The families of a block: for each group with a member in the block, the subsets that occur in the block.

    A group is a set of 1 to 3 event types. ``groups`` has the indices of the groups, ascending.
    """

    groups: Numbers
    families: Families


class GroupFamilies:
    """For each group of ``size`` event types (1 to 3), the subsets that are exactly its types in some trace of a tree.

    These subsets are the family of the group (see this module). Each row of ``members``, (groups, size), has the
    members of one group as ascending indices into the list of types.
    """

    def __init__(self, outline: Outline, labels: tuple[str, ...], size: int) -> None:
        listed = list(combinations(range(len(labels)), size))
        self.members: Numbers = np.array(listed, np.intp).reshape(len(listed), size)
        self._size = size
        self._leaves = self._of_labels(labels)
        tree_families = self._of_blocks(outline)
        self.families: Families = np.full(len(listed), NOTHING_SHOWN, np.uint8)
        self.families[tree_families.groups] = tree_families.families

    def _of_labels(self, labels: tuple[str, ...]) -> dict[str, _BlockFamilies]:
        groups: list[list[Numbers]] = [[] for _ in labels]
        alone: list[list[Families]] = [[] for _ in labels]
        for member, column in enumerate(self.members.T):
            order = np.argsort(column, kind="stable")
            bounds = np.searchsorted(column[order], np.arange(len(labels) + 1))
            for label, (first, last) in enumerate(pairwise(bounds)):
                groups[label].append(order[first:last])
                alone[label].append(np.full(last - first, 1 << (1 << member), np.uint8))
        families = {}
        for label, name in enumerate(labels):
            joined = np.concatenate(groups[label])
            order = np.argsort(joined)
            families[name] = _BlockFamilies(joined[order], np.concatenate(alone[label])[order])
        return families

    def _of_blocks(self, outline: Outline) -> _BlockFamilies:
        waiting: dict[int, _BlockFamilies] = {}
        for place, block in enumerate(outline.blocks):
            waiting[place] = self._of_block(block, [waiting.pop(part) for part in block.parts])
        return waiting.popitem()[1]

    def _of_block(self, block: Block, parts: list[_BlockFamilies]) -> _BlockFamilies:
        match block.node:
            case Activity(name):
                return self._leaves[name]
            case Silent():
                return _BlockFamilies(np.empty(0, np.intp), np.empty(0, np.uint8))
            case Sequence() | Parallel():
                return self._together(parts)
            case ExclusiveChoice():
                return self._either(parts, is_inclusive=False)
            case InclusiveChoice():
                return self._either(parts, is_inclusive=True)
            case Instances():
                return self._repeated(parts[0], self._size)
            case Loop(repetitions=count):
                body, redo = parts
                again = self._size if count is None else min(count - 1, self._size)
                return self._looped(body, redo, again, is_open=count is None)

    def _together(self, parts: Iterable[_BlockFamilies]) -> _BlockFamilies:
        """Return the families of a block whose parts all occur and make their choices independently."""
        whole, touched = self._blank()
        for part in parts:
            whole[part.groups] = unions(self._size)[whole[part.groups], part.families]
            touched[part.groups] += 1
        groups = np.flatnonzero(touched)
        return _BlockFamilies(groups, whole[groups])

    def _either(self, parts: list[_BlockFamilies], *, is_inclusive: bool) -> _BlockFamilies:
        """Return the families of a choice between parts: exactly one occurs, or one or more if ``is_inclusive``."""
        whole, touched = self._blank()
        whole[:] = 0
        for part in parts:
            before, after = whole[part.groups], part.families
            joint = unions(self._size)[before, after] if is_inclusive else 0
            whole[part.groups] = before | after | joint
            touched[part.groups] += 1
        groups = np.flatnonzero(touched)
        others = np.where(touched[groups] < len(parts), NOTHING_SHOWN, 0).astype(np.uint8)
        return _BlockFamilies(groups, whole[groups] | others)

    def _repeated(self, part: _BlockFamilies, most: int) -> _BlockFamilies:
        """Return the families of one to ``most`` runs of a part. More runs than a group has members change nothing."""
        table, families = unions(self._size), part.families
        for _ in range(most - 1):
            families = part.families | table[families, part.families]
        return _BlockFamilies(part.groups, families)

    def _looped(self, body: _BlockFamilies, redo: _BlockFamilies, again: int, *, is_open: bool) -> _BlockFamilies:
        """Return the families of a loop: the body, then ``again`` times the redo part and the body.

        If ``is_open``, fewer than ``again`` rounds are also possible.
        """
        if not again:
            return body
        once = self._together([redo, body])
        if is_open:
            rounds = self._repeated(once, again)
            rounds = _BlockFamilies(rounds.groups, rounds.families | np.uint8(NOTHING_SHOWN))
            return self._together([body, rounds])
        return self._together([body, *[once] * again])

    def _blank(self) -> tuple[Families, NDArray[np.int32]]:
        count = len(self.members)
        return np.full(count, NOTHING_SHOWN, np.uint8), np.zeros(count, np.int32)


@cache
def unions(size: int) -> Families:
    """Return a table that combines two families of groups of ``size`` types.

    The entry for two families has all unions of a subset from the first and a subset from the second.
    """
    subsets = range(1 << size)
    families = np.arange(1 << (1 << size))
    table = np.zeros((len(families), len(families)), np.uint8)
    for first in subsets:
        for second in subsets:
            has_both = ((families >> first) & 1)[:, None] & ((families >> second) & 1)[None, :]
            table |= (has_both << (first | second)).astype(np.uint8)
    table.flags.writeable = False
    return table
